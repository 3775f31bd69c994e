"""The one door to the compiler: a request in, a result out.

`compile_cached` is what executors call; `compile_graph` is the only function that loads MLIR.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...dialect.errors import LoweringError, ProfuseError
from ...dialect.ir.program import Module
from ...dialect.ops.speculation import FusionGroup
from ..settings.events import Counters
from ..settings.knobs import knobs
from .ir_dump import Boundary, boundary_dump
from .proof.verdict import CRASHED, FAILED, Verdict
from .request import CompileRequest, CompileResult, compiler_errors
from .timings import CHECK, GLUE, PIPELINE, STARTUP, add, rest_of

_NOTICED = 1e-3  # seconds from which loading something counts as startup: it is there else

# Statistics of passes that say why something is not fused, or not as general as it might be.
_REASONS = ("refused", "dissolved", "stable sizes", "kept")


def compile_cached(
    request: CompileRequest,
    counters: Counters,
    compile_: Callable[[CompileRequest], CompileResult] | None = None,
) -> CompileResult:
    """What ``compile_`` returns, out of the disk cache where it is there (the `cache` knob).

    ``compile_``: None = `compile_graph`. A hit imports no MLIR. Raises what ``compile_`` raises;
    such compiles are not kept.
    """
    compile_ = compile_ or compile_graph
    if not knobs.cache:
        return compile_(request)
    from .cache.lookup import cached

    return cached(request, compile_, counters)


@compiler_errors("compiling the graph")
def compile_graph(
    request: CompileRequest,
    on_group: Callable[[str], object] | None = None,
    boundary: Boundary | None = None,
    on_check: Callable[[str], object] | None = None,
) -> CompileResult:
    """Run the pipeline and compile every fusion function.

    ``on_group`` is told the name of each fusion function before it is compiled, ``on_check`` before
    its kernel is run for the first time. One that cannot
    be lowered is reported in ``failures``; errors of the pipeline itself are raised as
    PipelineError or IRError, any other as InternalError. ``boundary`` is called between passes,
    see `run_pipeline`; None = what the request dumps.
    """
    start = time.perf_counter()
    from ...dialect.mlir.context import context
    from ...dialect.mlir.decode import decode_module
    from ...dialect.mlir.parse import parse_module
    from ...dialect.pipeline.run import run_pipeline

    context()
    loading = time.perf_counter() - start
    # Only the first compile of a process loads MLIR.
    timings = {STARTUP: loading} if loading > _NOTICED else {}
    start = time.perf_counter()
    module = parse_module(request.ir, "graph.mlir")
    timings["parse"] = time.perf_counter() - start
    trace: list[str] = []
    dumped = boundary_dump(request.dump, request.name) if request.dump else None
    with rest_of(PIPELINE, timings):
        statistics = run_pipeline(
            module,
            request.pipeline,
            verify_each=request.verify_each,
            timings=timings,
            trace=trace,
            boundary=boundary or dumped,
            repro_dir=request.repro_dir or None,
        )
    start = time.perf_counter()
    decoded = decode_module(module)
    result = CompileResult(decoded, str(module), trace=trace, seconds=timings)
    timings["decode"] = time.perf_counter() - start
    for counts in statistics.values():
        for what, count in counts.items():
            if what.startswith(_REASONS):
                result.refusals[what] = result.refusals.get(what, 0) + count
            if what.startswith("unfused: "):
                result.unfused.append(what.removeprefix("unfused: "))
    pinned = dict(request.pinned)
    for name in kernel_names(decoded):
        if name in pinned:
            result.failures[name], result.faulty = pinned[name], True
            if pinned[name].startswith(CRASHED):
                result.checks[name] = Verdict(FAILED, pinned[name])
            continue
        if on_group is not None:
            on_group(name)
        with rest_of(GLUE, timings):
            _compile_kernel(result, name, request, on_check)
    return result


def kernel_names(module: Module) -> list[str]:
    """Fusion functions that the optimised graph calls, in order."""
    names = [instr.attrs["callee"] for instr in module.main.body.walk() if instr.op is FusionGroup]
    return list(dict.fromkeys(names))


def _compile_kernel(
    result: CompileResult,
    name: str,
    request: CompileRequest,
    on_check: Callable[[str], object] | None,
) -> None:
    start = time.perf_counter()
    from ...lowering.placement import compile_for
    from ...lowering.target import host_target
    from .proof.prove import prove

    function = result.module.functions[name]
    target = request.target or host_target()
    if (loading := time.perf_counter() - start) > _NOTICED:
        add(result, STARTUP, loading)
    try:
        with compiler_errors(f"lowering @{name}"):
            artifact = compile_for(
                function, target, keep_stages=request.keep_stages, in_place=request.in_place
            )
    except LoweringError as error:
        result.failures[name] = str(error)
        return
    except ProfuseError as error:  # a fault of ours is no reason to fail the user's call
        result.failures[name] = f"{type(error).__name__}: {error}"
        result.faulty = True
        return
    for stage, seconds in artifact.seconds.items():
        add(result, stage, seconds)
    if on_check is not None:
        on_check(name)
    start = time.perf_counter()
    verdict = result.checks[name] = prove(artifact, function, request, result.module)
    if request.check != "off":
        add(result, CHECK, time.perf_counter() - start)
    if verdict.outcome == FAILED:
        # Neither kept nor used: the next process may have a compiler that does better.
        result.failures[name], result.faulty = f"its kernel is wrong: {verdict.detail}", True
    else:
        result.kernels[name] = artifact
