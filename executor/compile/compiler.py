"""The only interface to the compiler: it takes a request and returns a result.

Executors call `compile_cached`. `compile_graph` is the only function here that loads MLIR.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module

from ...dialect.pipeline.options import keeping_loops
from ...dialect.reasons import Effect, Kind, Reason
from ..settings.events import Counters
from ..settings.knobs import knobs
from .group_kernels import compile_groups
from .ir_dump import Boundary, boundary_dump
from .request import CompileRequest, CompileResult, compiler_errors
from .timings import PIPELINE, rest_of, startup

# Dialects that the bindings import when they first meet an operation of theirs.
_DIALECTS = "builtin", "ub"
_GPU_DIALECTS = "gpu", "nvvm", "vector"


def compile_cached(
    request: CompileRequest, counters: Counters, compile_: Callable[[CompileRequest], CompileResult] | None = None
) -> CompileResult:
    """Look a request up in the disk cache (if the `cache` knob is on), and compile it on a miss.

    A hit imports no MLIR.

    Args:
        request: what to compile.
        counters: counts hits and misses.
        compile_: compiles on a miss; None = `compile_graph`.

    Raises what ``compile_`` raises; nothing is stored then.
    """
    compile_ = compile_ or compile_graph
    if not knobs.cache:
        return compile_(request)
    from .cache.lookup import cached

    return cached(request, compile_, counters)


@cache
def load_compiler(*, gradients: bool = False, gpu: bool = False) -> None:
    """Import what compiles, and MLIR with it.

    ``gradients``: also the passes that differentiate; ``gpu``: also what compiles for GPUs.

    Signals such as Ctrl-C wait meanwhile: modules that register passes, and dialects of MLIR,
    cannot be imported a second time after an import that ended half-way.
    """
    from ...dialect.interrupts import interrupts_held_back

    with interrupts_held_back():
        from ...dialect.passes import load_passes
        from ...lowering.cpu import cpu_stages  # noqa: F401
        from ...lowering.linalg.to_linalg import DIALECTS

        load_passes()
        for name in (*_DIALECTS, *DIALECTS, *(_GPU_DIALECTS if gpu else ())):
            import_module(f"mlir.dialects.{name}")
        if gpu:
            from ...lowering.gpu import gpu_stages  # noqa: F401
        if gradients:
            from ...dialect.autodiff import passes  # noqa: F401


@compiler_errors("compiling the graph")
def compile_graph(
    request: CompileRequest,
    on_group: Callable[[str], object] | None = None,
    boundary: Boundary | None = None,
    on_check: Callable[[str], object] | None = None,
) -> CompileResult:
    """Run the pipeline and compile every fusion function.

    A fusion function that cannot be lowered is reported in ``failures`` of the result.

    Args:
        request: what to compile.
        on_group: called with the name of each fusion function before it is compiled.
        boundary: called between passes, see `run_pipeline`; None = write the dumps of the request.
        on_check: called with the name of each fusion function before its kernel first runs.

    Raises PipelineError or IRError for errors of the pipeline itself, InternalError for any other.
    """
    refusals: list[Reason] = []
    while True:
        result = _compiled(request, on_group, boundary, on_check)
        result.refusals += refusals
        kept, alone = _loops_without_kernel(result)
        pipeline = keeping_loops(keeping_loops(request.pipeline, alone, "alone"), kept)
        if pipeline == request.pipeline:
            return result
        # A loop without a kernel runs round by round, with kernels for what a round computes.
        request = replace(request, pipeline=pipeline)
        refusals += kept.values()


def _compiled(
    request: CompileRequest,
    on_group: Callable[[str], object] | None,
    boundary: Boundary | None,
    on_check: Callable[[str], object] | None,
) -> CompileResult:
    """`compile_graph` by the pipeline of the request, whichever loops have kernels by it."""
    timings: dict[str, float] = {}
    with startup(timings):
        from ...dialect.pipeline.standard import differentiates

        load_compiler(
            gradients=differentiates(request.pipeline), gpu=request.target is not None and bool(request.target.gpu)
        )
        from ...dialect.mlir.context import context
        from ...dialect.mlir.decode import decode_module
        from ...dialect.mlir.observed_sizes import observed_sizes
        from ...dialect.mlir.parse import parse_module
        from ...dialect.pipeline.execution import run_pipeline

        context()
    start = time.perf_counter()
    module = parse_module(request.ir, "graph.mlir")
    timings["parse"] = time.perf_counter() - start
    trace: list[str] = []
    dumped = boundary_dump(request.dump, request.name) if request.dump else None
    reasons: dict[str, list[Reason]] = {}
    with rest_of(PIPELINE, timings):
        run_pipeline(
            module,
            request.pipeline,
            verify_each=request.verify_each,
            timings=timings,
            trace=trace,
            boundary=boundary or dumped,
            repro_dir=request.repro_dir or None,
            reasons=reasons,
        )
    start = time.perf_counter()
    decoded, sizes = decode_module(module), observed_sizes(module)
    refusals = [reason for noted in reasons.values() for reason in noted]
    result = CompileResult(decoded, str(module), refusals=refusals, sizes=sizes, trace=trace, seconds=timings)
    timings["decode"] = time.perf_counter() - start
    compile_groups(result, request, on_group, on_check)
    return result


def _loops_without_kernel(result: CompileResult) -> tuple[dict[int, Reason], list[int]]:
    """The loops that became fusion groups of which no kernel could be made, and why.

    Those that others went with come second: alone they may have one.
    """
    from ...dialect.passes.speculate.fuse_loops import has_several, number_of

    kept, alone = {}, []
    for name, reason in result.failures.items():
        number = number_of(name)
        if reason.kind is not Kind.NOT_LOWERED or number is None:
            continue
        if has_several(name):
            alone.append(number)
        else:
            kept[number] = replace(reason, effect=Effect.LOOP_IN_PLAN)
    return kept, alone
