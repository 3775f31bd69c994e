"""Where the values of a graph are, and what running it there takes.

An executor has one: the host's, or a device's for a graph that is called with device arrays. All
that depends on it is here, so that the tier machine is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...dialect.ir.device import HOST as HOST_DEVICE
from ...dialect.ir.program import Module, Program
from ...lowering.gpu.artifact import GpuArtifact
from ...lowering.placement import device_of_function
from ..interpret.evaluate import Adapt
from ..settings.events import Counters

if TYPE_CHECKING:
    from ...lowering.abi import KernelArtifact
    from ...lowering.target import Target


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
        from ...lowering.target import host_target

        if self.is_host:
            return host_target()
        from ..cuda.target import device_target

        return device_target(self.device)

    def adapter(self, module: Module) -> Adapt | None:
        """Makes tier 0 of a graph compute with this processor's values; None = it does."""
        if self.is_host:
            return None
        from ..cuda.tier0 import adapter

        return adapter(module, self.device)

    def runner(
        self,
        artifact: KernelArtifact | GpuArtifact,
        function: Program,
        counters: Counters,
        interpreted: Callable[..., Any],
    ) -> Callable[..., Any]:
        """What runs a compiled group on its operands."""
        if not isinstance(artifact, GpuArtifact):
            from .kernel_call import kernel_runner

            return kernel_runner(artifact, counters, interpreted)
        from ..cuda.launch import GroupRunner

        return GroupRunner(artifact, device_of_function(function, self.device), interpreted)


HOST = Processor()
