"""The stages of a GPU function: graph -> linalg -> gpu -> nvvm -> ptx -> cubin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...dialect.errors import LoweringError
from .abi import LaunchPlan

if TYPE_CHECKING:
    from ...dialect.program import Program
    from .nvvm import Usage

STAGES = ("linalg", "gpu", "nvvm", "ptx", "cubin")


@dataclass
class GpuArtifact:
    """A compiled function: machine code of its kernels, and how to run them.

    Attributes:
        name: of the fusion function.
        chip: that the code is for, such as ``"sm_90"``.
        code: the cubin; empty when compiling stopped before it.
        plan: launches and library products.
        usage: kernel -> registers, spills and shared memory, where there is code.
        stages: stage name -> text, when they were kept.
        seconds: stage name -> seconds spent.
    """

    name: str
    chip: str
    plan: LaunchPlan
    code: bytes = b""
    usage: dict[str, Usage] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def compile_gpu(
    function: Program, chip: str, *, until: str = "cubin", keep_stages: bool = False
) -> GpuArtifact:
    """Compile one fusion function for a chip, up to a stage.

    Raises LoweringError for what has no kernel, and where ptxas is missing.
    """
    from ..to_linalg import to_linalg
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
        module, plan = emit_gpu(linalg.body.operations[0].operation)
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


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = time.perf_counter() - start
