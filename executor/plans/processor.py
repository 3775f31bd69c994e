"""Where the values of a graph are, and what running it there takes.

An executor has one processor: the host's, or a device's for a graph that is called with device
arrays. All that depends on the kind of processor is a `Backend`, so that the tier machine is the
same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ...dialect.ir.device import HOST as HOST_DEVICE
from ...dialect.ir.program import Module, Program
from ...lowering.gpu.artifact import GpuArtifact
from ...lowering.placement import GPU, device_of_function
from ..interpret.evaluate import Adapt
from ..settings.events import Counters

if TYPE_CHECKING:
    from ...lowering.abi import KernelArtifact
    from ...lowering.target import Target
    from ..cuda.exchange.dlpack_exchange import Exchange


class Backend(Protocol):
    """What running graphs on one kind of processor takes: a module with these functions.

    Devices are named as users name them, ``"cpu"`` or ``"cuda:0"``.
    """

    def unavailable(self, device: str) -> str:
        """Why nothing can run on a device; "" = it can."""

    def target(self, device: str) -> Target:
        """What to compile for."""

    def adapter(self, module: Module, home: str) -> Adapt | None:
        """Makes tier 0 of a graph compute with values of the device; None = it does."""

    def runner(
        self, artifact: Any, device: str, counters: Counters, interpreted: Callable[..., Any]
    ) -> Callable[..., Any]:
        """What runs a compiled group on its operands; ``interpreted`` does the same op by op."""

    def exchanges(self, device: str) -> tuple[Sequence[Exchange | None], list[str]]:
        """How emitted code may read arrays there, in each way that it can, and why not in others.

        None among the ways stands for NumPy arrays.
        """

    def moved(self, leaves: Sequence[Any], device: str) -> list[Any]:
        """Host arrays among arguments as arrays of the device."""

    def call(
        self, run: Callable[[Any, list], list], executor: Any, leaves: Sequence[Any],
        captured: Sequence[Any],
    ) -> list:  # fmt: skip
        """Outputs of an executor, which ``run`` calls, for arguments and captured arrays.

        Raises DeviceError where neither the device nor the host can compute them.
        """


def _host() -> Any:
    from . import host

    return host


def _cuda() -> Any:
    from ..cuda import backend

    return backend


_BACKENDS: Mapping[str, Callable[[], Backend]] = {HOST_DEVICE: _host, GPU: _cuda}


def backend_of(device: str) -> Backend:
    """The backend of a device; it is loaded when it is first asked for."""
    return _BACKENDS[device.partition(":")[0]]()


@dataclass(frozen=True)
class Processor:
    """The processor that a graph's values are at home on.

    Attributes:
        device: ``"cpu"``, or such as ``"cuda:0"``.
    """

    device: str = HOST_DEVICE

    @property
    def is_host(self) -> bool:
        """Whether values are host arrays."""
        return self.device == HOST_DEVICE

    def target(self) -> Target:
        """What to compile for."""
        return backend_of(self.device).target(self.device)

    def adapter(self, module: Module) -> Adapt | None:
        """Makes tier 0 of a graph compute with this processor's values; None = it does."""
        return backend_of(self.device).adapter(module, self.device)

    def runner(
        self,
        artifact: KernelArtifact | GpuArtifact,
        function: Program,
        counters: Counters,
        interpreted: Callable[..., Any],
    ) -> Callable[..., Any]:
        """What runs a compiled group on its operands, on the processor that it is compiled for."""
        on_device = isinstance(artifact, GpuArtifact)
        device = device_of_function(function, self.device) if on_device else HOST_DEVICE
        return backend_of(device).runner(artifact, device, counters, interpreted)


HOST = Processor()
