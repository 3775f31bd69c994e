"""The stages of a GPU function: graph -> linalg -> gpu -> nvvm -> ptx -> cubin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ..stages import GRAPH, LINALG, KernelCompile, Stage, run
from .artifact import GpuArtifact

if TYPE_CHECKING:
    from mlir import ir

    from ...dialect.ir.program import Program


@dataclass(kw_only=True)
class _GpuCompile(KernelCompile):
    """A compile for a chip, such as ``"sm_90"``."""

    chip: str


def _emit(module: ir.Module, compile_: _GpuCompile) -> ir.Module:
    from .gpu_module import emit_gpu

    with module.context, compile_.timed("gpu"):
        gpu_module, plan = emit_gpu(module.body.operations[0].operation, compile_.chip)
    compile_.artifact = GpuArtifact(plan.name, compile_.chip, plan, stages=compile_.stages, seconds=compile_.seconds)
    return gpu_module


def _to_nvvm(module: ir.Module, compile_: _GpuCompile) -> ir.Module:
    from .nvvm import to_nvvm

    with compile_.timed("nvvm"):
        to_nvvm(module, compile_.chip)
    return module


def _to_ptx(module: ir.Module, compile_: _GpuCompile) -> str:
    from .nvvm import to_ptx

    with compile_.timed("ptx"):
        return to_ptx(module)


def _assemble(ptx: str, compile_: _GpuCompile) -> bytes:
    from .nvvm import assemble

    with compile_.timed("cubin"):
        cubin = assemble(ptx, compile_.chip)
    compile_.artifact.usage = cubin.usage
    return cubin.code


STAGES = (
    GRAPH,
    LINALG,
    Stage("gpu", _emit),
    Stage("nvvm", _to_nvvm),
    Stage("ptx", _to_ptx),
    Stage("cubin", _assemble, text=None),
)


def compile_gpu(function: Program, chip: str, *, until: str = "cubin", keep_stages: bool = False) -> GpuArtifact:
    """Compile one fusion function for a chip, up to a stage from ``"gpu"`` on.

    Raises LoweringError for a function without kernels, and where ptxas is missing.
    """
    compile_ = _GpuCompile(keep_stages, chip=chip)
    output = run(STAGES, function, compile_, until=until)
    if until == "cubin":
        compile_.artifact.code = output
    return compile_.artifact


def compile_image(function: Program, chip: str, image: str, *, keep_stages: bool = False) -> GpuArtifact:
    """Compile one fusion function to the image that a driver loads.

    Args:
        image: ``"cubin"``, ``"ptx"`` (the driver assembles it), or ``"gpu"`` (for emulation).

    Raises what `compile_gpu` raises.
    """
    if image == "cubin":
        return compile_gpu(function, chip, keep_stages=keep_stages)
    artifact = compile_gpu(function, chip, until=image, keep_stages=True)
    artifact.code = artifact.stages[image].encode()
    if not keep_stages:
        artifact.stages = {}
    return artifact
