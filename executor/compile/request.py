"""The one door to the compiler: a request in, a result out, both plain values.

`compile_cached` is what executors call; `compile_graph` is the only function that loads MLIR. A
request and its result hold nothing but text, numbers and bytes (plus decoded programs), so that the
same pair can cross a process boundary and lie on a disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...dialect.errors import InternalError, LoweringError, ProfuseError
from ...dialect.ir.program import Module
from ...dialect.reasons import Effect, Kind, Reason
from ..settings.events import Counters
from ..settings.knobs import knobs
from .ir_dump import Boundary, boundary_dump
from .proof.verdict import FAILED, Verdict
from .timings import CHECK, GLUE, PIPELINE, STARTUP, add, rest_of

if TYPE_CHECKING:
    from ...lowering.abi import KernelArtifact
    from ...lowering.gpu.artifact import GpuArtifact
    from ...lowering.target import Target


_NOTICED = 1e-3  # seconds from which loading something counts as startup: it is there else


def optimizing_pipeline(
    behavior: str,
    min_size: int,
    max_values: int,
    max_ops: int,
    stable_sizes: Iterable[int] = (),
    *,
    fuse: bool = True,
    before: str = "",
    after: str = "",
) -> str:
    """The pipeline string that turns an instrumented graph into a guarded, fused one.

    R1.12, R1.24 - R1.27, R1.36, R1.41, R1.45.
    The profile-insensitive part comes first here, with the observers in place, so that the first
    call needs no MLIR; see docs/architecture.md.

    Args:
        behavior: ``"static"`` or ``"dynamic"``.
        min_size, max_values, max_ops, stable_sizes: options of the passes that fuse and guard.
        fuse: False = form no groups, hence no guards and no fallbacks.
        before, after: passes of users, run before anything is fused and after all is guarded.
    """
    options = []
    if fuse:
        options += [f"min-size={min_size}", f"max-values={max_values}", f"max-ops={max_ops}"]
        if behavior == "dynamic":
            options.append("dynamic=true")
            listed = ":".join(map(str, sorted(stable_sizes)))
            options += [f"stable-sizes={listed}"] if listed else []
    else:
        options.append("general-fuser=no-fuser")
    options += [
        f"{name}=({text})"
        for name, text in (("pre-fusion", before), ("post-fusion", after))
        if text
    ]
    driven = f"profile-driven{{{' '.join(options)}}}"
    return f"profile-insensitive,{driven},final,prepare-kernels"


def keyed_pipeline(
    min_size: int,
    max_values: int,
    max_ops: int,
    units: str = "",
    contiguous: str = "",
    *,
    fuse: bool = True,
    before: str = "",
    after: str = "",
) -> str:
    """The pipeline string for a graph whose input types a spec has fixed (R2.10).

    Args:
        min_size, max_values, max_ops: options of `form-fusions`.
        units, contiguous: options of `assume-sizes`.
        fuse: False = the graph has to be differentiated: leave out the rest (R2.12).
        before, after: passes of users, the first and the last of those (R2.12).
    """
    if not fuse:
        return "required,propagate,differentiable-optimization,dce"
    given = {"unit-axes": units, "contiguous": contiguous}
    given |= {n: f"({t})" for n, t in (("pre-fusion", before), ("post-fusion", after)) if t}
    options = [f"min-size={min_size}", f"max-values={max_values}", f"max-ops={max_ops}"]
    options += [f"{name}={text}" for name, text in given.items() if text]
    return f"spec-driven{{{' '.join(options)}}},final,prepare-kernels"


@contextmanager
def compiler_errors(doing: str) -> Iterator[None]:
    """Any error of the compiler's own in the ``with`` block as an InternalError that says so.

    Whatever is wrong with the compiler, running out of stack or memory included, is then one
    failed compile, which callers of the compiler count, explain and work around; it never
    reaches the call of a user. Errors that are raised on purpose pass.
    """
    try:
        yield
    except ProfuseError:
        raise
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise InternalError(
            f"{doing} failed: {said}",
            hint="this is an error of the compiler, results are not affected; please report it, "
            "with what f.ir('graph') gives",
        ) from error


@dataclass(frozen=True)
class CompileRequest:
    """What to compile.

    Attributes:
        ir: the instrumented graph with its profiled types, as IR text.
        pipeline: pass pipeline, runnable by `profuse-opt -p`.
        target: CPU name, features and triple the object code is for, and the GPU if there is one;
            None = the CPU of the process that compiles, which the one that asks then need not
            find out.
        keep_stages: keep every stage's text with each kernel (slower).
        verify_each: verify the IR after every pass.
        repro_dir: where a failing pipeline writes its input; "" = a temporary directory.
        dump: where the graph at every pass boundary goes, as the knob says; "" = nowhere.
        name: what dumps call the graph.
        pinned: fusion functions to leave without a kernel, each with the reason: compiling them
            has cost a worker.
        in_place: kernels may be asked to write results to where their inputs are.
        check, check_ms, check_bytes: how kernels are compared with their definition before they
            serve, as the knobs say.
    """

    ir: str
    pipeline: str
    target: Target | None
    keep_stages: bool = False
    verify_each: bool = False
    repro_dir: str = ""
    dump: str = ""
    name: str = ""
    pinned: tuple[tuple[str, Reason], ...] = ()
    in_place: bool = False
    check: str = "off"
    check_ms: int = 20
    check_bytes: int = 64 << 20


@dataclass
class CompileResult:
    """The optimised graph, its kernels by fusion-function name, and what it cost.

    Attributes:
        module: decoded optimised graph with its fusion and fallback functions.
        ir: its text.
        kernels: fusion function name -> object code and ABI.
        failures: fusion function name -> why it has no kernel.
        checks: fusion function name -> what its kernel's check has found.
        refusals: why ops are not fused, or not as generally as they might be.
        trace: names of the passes that ran, in order.
        seconds: stage or pass name -> seconds.
        faulty: some failure is an error of the compiler, not a missing lowering: not to be kept.
        found_in: what had it, ``"the disk cache"`` or a path; "" = it was compiled.
        missed: why the disk cache did not have it; "" = it has, or was not asked.
    """

    module: Module
    ir: str
    kernels: dict[str, KernelArtifact | GpuArtifact] = field(default_factory=dict)
    failures: dict[str, Reason] = field(default_factory=dict)
    checks: dict[str, Verdict] = field(default_factory=dict)
    refusals: list[Reason] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    faulty: bool = False
    found_in: str = ""
    missed: str = ""


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
    from ...dialect.mlir.context import context, parse_module
    from ...dialect.mlir.decode import decode_module
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
    decoded = decode_module(module)
    refusals = [reason for noted in reasons.values() for reason in noted]
    result = CompileResult(
        decoded, str(module), refusals=refusals, trace=trace, seconds=timings
    )  # fmt: skip
    timings["decode"] = time.perf_counter() - start
    pinned = dict(request.pinned)
    for name in kernel_names(decoded):
        if name in pinned:
            result.failures[name], result.faulty = _no_kernel(pinned[name], name), True
            if pinned[name].kind is Kind.CHECK_CRASHED:
                result.checks[name] = Verdict(FAILED, pinned[name].why)
            continue
        if on_group is not None:
            on_group(name)
        with rest_of(GLUE, timings):
            _compile_kernel(result, name, request, on_check)
    return result


def _no_kernel(reason: Reason, name: str) -> Reason:
    """Why a fusion function is left to the interpreter."""
    return replace(reason, subject=name, effect=Effect.INTERPRETED)


def kernel_names(module: Module) -> list[str]:
    """Fusion functions that the optimised graph calls, in order."""
    names = [
        instr.attrs["callee"]
        for instr in module.main.body.walk()
        if instr.op.name == "fusion_group"
    ]
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
        result.failures[name] = _no_kernel(Reason.of_error(Kind.NOT_LOWERED, error), name)
        return
    except ProfuseError as error:  # a fault of ours is no reason to fail the user's call
        said = f"{type(error).__name__}: {error}"
        result.failures[name] = _no_kernel(Reason(Kind.COMPILER_FAULT, detail=said), name)
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
        wrong = Reason(Kind.WRONG_KERNEL, detail=verdict.detail)
        result.failures[name], result.faulty = _no_kernel(wrong, name), True
    else:
        result.kernels[name] = artifact
