"""The stages of a GPU function: graph -> linalg -> gpu -> nvvm -> ptx -> cubin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...dialect.errors import LoweringError
from .artifact import GpuArtifact

if TYPE_CHECKING:
    from ...dialect.ir.program import Program

STAGES = ("linalg", "gpu", "nvvm", "ptx", "cubin")


def compile_gpu(
    function: Program, chip: str, *, until: str = "cubin", keep_stages: bool = False
) -> GpuArtifact:
    """Compile one fusion function for a chip, up to a stage.

    Raises LoweringError for what has no kernel, and where ptxas is missing.
    """
    from ..linalg.to_linalg import to_linalg
    from .module import emit_gpu
    from .nvvm import assemble, to_nvvm, to_ptx

    if until not in STAGES[1:]:
        raise LoweringError(f"there is no stage {until!r}", hint=f"use one of {STAGES[1:]}")
    seconds: dict[str, float] = {}
    stages: dict[str, str] = {}

    def note(stage: str, text: Any) -> None:
        if keep_stages:
            stages[stage] = str(text)

    with _timed(seconds, "linalg"):
        linalg = to_linalg(function)
    note("linalg", linalg)
    with linalg.context, _timed(seconds, "gpu"):
        module, plan = emit_gpu(linalg.body.operations[0].operation, chip)
    note("gpu", module)
    artifact = GpuArtifact(plan.name, chip, plan, stages=stages, seconds=seconds)
    if until == "gpu":
        return artifact
    with _timed(seconds, "nvvm"):
        to_nvvm(module, chip)
    note("nvvm", module)
    if until == "nvvm":
        return artifact
    with _timed(seconds, "ptx"):
        ptx = to_ptx(module)
    note("ptx", ptx)
    if until == "ptx":
        return artifact
    with _timed(seconds, "cubin"):
        cubin = assemble(ptx, chip)
    artifact.code, artifact.usage = cubin.code, cubin.usage
    return artifact


def compile_image(
    function: Program, chip: str, image: str, *, keep_stages: bool = False
) -> GpuArtifact:
    """Compile one fusion function to what a driver loads.

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


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = time.perf_counter() - start
