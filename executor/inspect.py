"""Texts of a graph's stages, recompiling with stages kept where they were not."""

from __future__ import annotations

from dataclasses import replace

from ..dialect.errors import ArgumentError
from .compile import compile_graph
from .engine import Executor

GRAPH_STAGES = ("graph", "profiled", "optimized")


def stage_text(executor: Executor, stage: str) -> str:
    """IR text of one stage; raises ArgumentError where the graph has not reached it."""
    if stage == "graph":
        return executor.module.to_mlir()
    if stage != "optimized" and executor.released:
        raise ArgumentError(
            f"stage {stage!r} was released after optimisation",
            hint="unset the release_profiling_graph knob, then flush and call again",
        )
    if stage == "profiled":
        if executor.record is None:
            raise ArgumentError("this graph has not been profiled", hint="call it once")
        return executor.record.module.to_mlir()
    if executor.result is None:
        raise ArgumentError(
            f"this graph has no stage {stage!r} yet", hint="call it again, so that it is compiled"
        )
    if stage == "optimized":
        return executor.result.ir
    assert executor.request is not None
    kernels = compile_graph(replace(executor.request, keep_stages=True)).kernels
    texts = []
    for name, artifact in kernels.items():
        if stage not in artifact.stages:
            known = ", ".join((*GRAPH_STAGES, *artifact.stages))
            raise ArgumentError(f"there is no stage {stage!r}", hint=f"stages: {known}")
        texts.append(f"// @{name}\n{artifact.stages[stage]}")
    return "\n".join(texts)
