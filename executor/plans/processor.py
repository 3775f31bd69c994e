"""Processors: the host and the devices, on which graphs run.

An executor has one processor: the host, or a device for a graph whose arguments are device arrays.
All code that depends on the kind of processor is in a `Backend`, so that one executor class serves
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import HOST as HOST_DEVICE
from ...dialect.ir.program import Module, Program
from ...lowering.abi import KernelArtifact
from ...lowering.placement import GPU, device_of_function
from ..interpret.evaluate import Adapt
from ..settings.events import Counters

if TYPE_CHECKING:
    from ...lowering.gpu.artifact import GpuArtifact
    from ...lowering.target import Target
    from ..cuda.exchange.dlpack_exchange import Exchange


class Backend(Protocol):
    """The functions by which graphs run on one kind of processor; a backend is a module of them.

    Device names are those that users write: ``"cpu"`` or ``"cuda:0"``.
    """

    def unavailable(self, device: str) -> str:
        """The reason why nothing can run on a device; "" = the device is available."""

    def target(self, device: str) -> Target:
        """The target for which graphs of the device are compiled."""

    def adapter(self, module: Module, home: str) -> Adapt | None:
        """Adapts the evaluation of ops to values of the device ``home``; None = not needed."""

    def runner(
        self, artifact: Any, device: str, counters: Counters, interpreted: Callable[..., Any]
    ) -> Callable[..., Any]:
        """A callable that runs a compiled group on its operands.

        Args:
            artifact: the kernel.
            device: the device that runs the kernel.
            counters: counts launches.
            interpreted: runs the same group op by op.
        """

    def exchanges(self, device: str) -> tuple[Sequence[Exchange | None], list[str]]:
        """The ways in which emitted code can read arrays of a device, and why others are missing.

        A way is an `Exchange`, or None for NumPy arrays.
        """

    def moved(self, leaves: Sequence[Any], device: str) -> list[Any]:
        """The arguments, with host arrays copied to the device."""

    def call(
        self, run: Callable[[Any, list], list], executor: Any, leaves: Sequence[Any], captured: Sequence[Any]
    ) -> list:
        """Run an executor on arguments and captured arrays; returns its outputs.

        Args:
            run: calls the executor with a list of inputs.
            executor: the executor.
            leaves: the arguments, without their containers.
            captured: the arrays that the graph has captured.

        Raises DeviceError if neither the device nor the host can compute the outputs.
        """


def _host() -> Any:
    from . import host_backend

    return host_backend


def _cuda() -> Any:
    from ..cuda import backend

    return backend


_BACKENDS: Mapping[str, Callable[[], Backend]] = {HOST_DEVICE: _host, GPU: _cuda}


def backend_of(device: str) -> Backend:
    """The backend of a device; its module is imported on first use."""
    return _BACKENDS[device.partition(":")[0]]()


@dataclass(frozen=True)
class Processor:
    """The processor on which the values of a graph are.

    Attributes:
        device: ``"cpu"``, or the name of a device such as ``"cuda:0"``.
    """

    device: str = HOST_DEVICE

    @property
    def is_host(self) -> bool:
        """True if the values are host arrays."""
        return self.device == HOST_DEVICE

    def target(self) -> Target:
        """The target for which graphs of this processor are compiled."""
        return backend_of(self.device).target(self.device)

    def adapter(self, module: Module) -> Adapt | None:
        """Adapts the evaluation of ops to this processor's values; None = not needed."""
        return backend_of(self.device).adapter(module, self.device)

    def runner(
        self,
        artifact: KernelArtifact | GpuArtifact,
        function: Program,
        counters: Counters,
        interpreted: Callable[..., Any],
    ) -> Callable[..., Any]:
        """A callable that runs a compiled group on the processor for which it was compiled."""
        on_device = not isinstance(artifact, KernelArtifact)
        device = device_of_function(function, self.device) if on_device else HOST_DEVICE
        return backend_of(device).runner(artifact, device, counters, interpreted)


HOST = Processor()
