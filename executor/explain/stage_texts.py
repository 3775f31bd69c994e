"""Texts of a graph's stages; for a stage of lowering, the graph is compiled once more."""

from __future__ import annotations

from dataclasses import replace

from ...dialect.dataclass import dataclass
from ...dialect.errors import ArgumentError
from ...dialect.ir.program import Module
from ..compile.compiler import compile_graph
from ..compile.request import CompileRequest, CompileResult
from ..interpret.record import Record
from ..tiers.choice import AnyExecutor

GRAPH_STAGES = ("graph", "profiled", "optimized")


@dataclass(frozen=True)
class Stages:
    """The data of one specialisation from which `stage_text` makes texts; None = not reached.

    Attributes:
        module: the graph.
        record: the profile.
        request: the compile request.
        result: the result of the compile.
        released: True = the executor has dropped the graph's profile (`release_profiling_graph`).
    """

    module: Module
    record: Record | None = None
    request: CompileRequest | None = None
    result: CompileResult | None = None
    released: bool = False


def stages_of(executor: AnyExecutor) -> list[Stages]:
    """The stages of each executor of a fallback chain, or of each plan of a spec-keyed executor."""
    return [
        Stages(e.module, e.record, compilation and compilation.request, compilation and compilation.result, e.released)
        for e in executor.chain()
        for compilation in e.compiled() or [None]
    ]


def stage_text(stages: Stages, stage: str) -> str:
    """IR text of one stage; raises ArgumentError if it is unknown, released, or not reached."""
    if stage == "graph":
        return stages.module.to_mlir()
    if stage != "optimized" and stages.released:
        raise ArgumentError(
            f"stage {stage!r} was released after optimisation",
            hint="unset the release_profiling_graph knob, then flush and call again",
        )
    if stage == "profiled":
        if stages.record is None:
            raise ArgumentError("this graph has not been profiled", hint="call it once")
        return stages.record.module.to_mlir()
    if stages.result is None:
        raise ArgumentError(f"this graph has no stage {stage!r} yet", hint="call it again, so that it is compiled")
    if stage == "optimized":
        return stages.result.ir
    assert stages.request is not None
    kernels = compile_graph(replace(stages.request, keep_stages=True, check="off", measure=False)).kernels
    if not kernels:
        raise ArgumentError(f"there is no {stage}: this graph has no kernel", hint="explain() says why")
    texts = []
    for name, artifact in kernels.items():
        if stage not in artifact.stages:
            names = ", ".join(dict.fromkeys((*GRAPH_STAGES, *artifact.stages)))
            raise ArgumentError(f"there is no stage {stage!r}", hint=f"stages: {names}")
        texts.append(f"// @{name}\n{artifact.stages[stage]}")
    return "\n".join(texts)
