"""The processor that a fusion function is for, by the devices of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dialect.errors import LoweringError
from ..dialect.guards.checks import devices_of
from ..dialect.ir.device import HOST
from .target import Target

if TYPE_CHECKING:
    from ..dialect.ir.program import Program
    from .abi import KernelArtifact
    from .gpu.artifact import GpuArtifact

GPU = "cuda"
NO_GPU = "it is for a GPU, and there is none to compile for"


def device_of_function(function: Program, home: str = HOST) -> str:
    """The device that a fusion function runs on, such as ``"cuda:0"``.

    ``home``: the device for a function none of whose arguments names one.
    """
    devices = devices_of(function.type_of(value) for value in function.inputs)
    return next(iter(sorted(devices, reverse=True)), home)


def compile_for(
    function: Program, target: Target, *, keep_stages: bool = False, in_place: bool = False, exact: bool = False
) -> KernelArtifact | GpuArtifact:
    """Compile one fusion function for the processor that its arguments are on.

    ``in_place``: kernels of the host may write results onto inputs, see `KernelABI.in_place`.
    ``exact``: they round every operation, and fuse none.

    Raises LoweringError, also where the target has no GPU for a function that needs one.
    """
    home = GPU if target.gpu else HOST
    if not device_of_function(function, home).startswith(GPU):
        from .cpu.cpu_stages import compile_program

        return compile_program(function, target, keep_stages=keep_stages, in_place=in_place, exact=exact)
    if not target.gpu:
        raise LoweringError(NO_GPU)
    from .gpu.gpu_stages import compile_image

    return compile_image(function, target.gpu, target.gpu_image, keep_stages=keep_stages)
