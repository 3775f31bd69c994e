"""What the compiler is asked and what it answers, as plain values; pipelines to ask for.

A request and its result hold nothing but text, numbers and bytes (plus decoded programs), so that
the same pair can cross a process boundary and lie on a disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...dialect.errors import InternalError, ProfuseError
from ...dialect.ir.program import Module
from ...dialect.reasons import Reason
from .proof.verdict import Verdict

if TYPE_CHECKING:
    from ...lowering.abi import KernelArtifact
    from ...lowering.gpu.artifact import GpuArtifact
    from ...lowering.target import Target


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


DIFFERENTIATED = "required,propagate,differentiable-optimization,dce"
"""The pipeline for graphs that have to be differentiated: nothing in them is fused (R2.12)."""


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
        return DIFFERENTIATED
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
        trace: names of the pipeline's passes, in order, those included that were skipped.
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
