"""Compile requests and results as plain values, and the pipelines of requests.

A request and its result contain only text, numbers, bytes and decoded programs. So both can be sent
to another process and stored on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError, ProfuseError
from ...dialect.ir.gradient_mode import LOOP_BYTES
from ...dialect.ir.program import Module
from ...dialect.reasons import Reason
from .proof.verdict import Times, Verdict

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
    gradients: bool = False,
    inlines: bool = True,
    budget: float = 1.0,
    loop_bytes: int = LOOP_BYTES,
    on_tape: bool = False,
    exact: bool = False,
    whole_loops: bool = False,
    before: str = "",
    after: str = "",
) -> str:
    """The pipeline string that turns an instrumented graph into a guarded, fused one.

    R1.12, R1.24 - R1.27, R1.36, R1.41, R1.45.
    The profile-insensitive passes run here, on a graph that has its observers already, and not
    before profiling. So the first call needs no MLIR; see docs/architecture.md.

    Args:
        behavior: ``"static"`` or ``"dynamic"``.
        min_size: option of `form-fusions`: least number of ops in a group.
        max_values: option of `form-fusions`: largest number of operands and results of a group.
        max_ops: option of `form-fusions`: largest number of ops in a group.
        stable_sizes: sizes that stay literal in dynamic guards.
        fuse: False = form no groups, hence no guards and no fallbacks.
        gradients: True = differentiate subgraphs, which executors of their own fuse (R1.27).
        inlines: False = no differentiable subgraph is too small (R1.29, R1.34).
        budget: share of what subgraphs would keep for their gradients that they may keep.
        loop_bytes: what the gradient of a loop may keep of its rounds.
        on_tape: True = keep the ops that only gradients differ by.
        exact: True = fuse only what kernels compute to the last bit as NumPy does.
        whole_loops: True = no loop runs round by round because that takes less time.
        before: users' passes that run before fusion.
        after: users' passes that run after guards have been inserted.
    """
    first = f"profile-insensitive{'{gradients=true}' if on_tape else ''}"
    options = ["gradients=true"] if on_tape else []
    if gradients:
        inner = [*([] if inlines else ["threshold=1"]), *_budget(budget, loop_bytes)]
        options.append(f"no-grad=(grad{{{' '.join(inner)}}})" if inner else "no-grad=grad")
        return f"{first},profile-driven{{{' '.join(options)}}},final,dce"
    options += ["exact=true"] if exact else []
    options += ["whole=true"] if whole_loops else []
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
    return f"{first},{driven},final,prepare-kernels"


def keyed_pipeline(
    min_size: int,
    max_values: int,
    max_ops: int,
    units: str = "",
    contiguous: str = "",
    *,
    gradients: bool = False,
    inlines: bool = True,
    budget: float = 1.0,
    loop_bytes: int = LOOP_BYTES,
    on_tape: bool = False,
    exact: bool = False,
    whole_loops: bool = False,
    before: str = "",
    after: str = "",
) -> str:
    """The pipeline string for a graph whose input types a spec has fixed (R2.10).

    Args:
        min_size: option of `form-fusions`: least number of ops in a group.
        max_values: option of `form-fusions`: largest number of operands and results of a group.
        max_ops: option of `form-fusions`: largest number of ops in a group.
        units: option of `assume-sizes`: axes of size 1.
        contiguous: option of `assume-sizes`: C-contiguous inputs.
        gradients: True = differentiate subgraphs, which are fused by executors of their own.
        inlines: False = no differentiable subgraph is too small (R2.15).
        budget: share of what subgraphs would keep for their gradients that they may keep.
        loop_bytes: what the gradient of a loop may keep of its rounds.
        on_tape: True = keep the ops that only gradients differ by.
        exact: True = fuse only what kernels compute to the last bit as NumPy does.
        whole_loops: True = no loop runs round by round because that takes less time.
        before: users' passes that run before fusion (R2.12).
        after: users' passes that run after fusion (R2.12).
    """
    kept = ["gradients=true"] if on_tape else []
    if gradients:
        kept += _budget(budget, loop_bytes)
        if not inlines:
            kept += ["threshold=1", "inline-subgraphs=(inline-diff-graphs{threshold=1})"]
        return f"spec-driven-grad{{{' '.join(kept)}}},final,dce"
    given = {"unit-axes": units, "contiguous": contiguous}
    given |= {n: f"({t})" for n, t in (("pre-fusion", before), ("post-fusion", after)) if t}
    kept += ["exact=true"] if exact else []
    kept += ["whole=true"] if whole_loops else []
    options = [*kept, f"min-size={min_size}", f"max-values={max_values}", f"max-ops={max_ops}"]
    options += [f"{name}={text}" for name, text in given.items() if text]
    return f"spec-driven{{{' '.join(options)}}},final,prepare-kernels"


def keeping_loops(pipeline: str, numbers: Iterable[int], option: str = "keep") -> str:
    """A pipeline string by which these loops, too, stay what they are (`fuse-loops`).

    ``option="alone"``: by which no others go with them.
    """
    wanted = sorted(numbers)
    known = re.search(rf"(?<=\b{option}=)[0-9:]+", pipeline)
    if not wanted:
        return pipeline
    if known is not None:
        listed = ":".join(map(str, sorted({*map(int, known[0].split(":")), *wanted})))
        return f"{pipeline[: known.start()]}{listed}{pipeline[known.end() :]}"
    listed = ":".join(map(str, wanted))
    return re.sub(
        r"\b(profile-driven|spec-driven)\{", rf"\1{{{option}={listed} ", pipeline, count=1
    )


def _budget(share: float, loop_bytes: int) -> list[str]:
    """The options of `differentiate-diff-graphs` that say what may be kept."""
    options = [] if share >= 1 else [f"budget={round(100 * share)}"]
    return options if loop_bytes == LOOP_BYTES else [*options, f"loop-bytes={loop_bytes}"]


@contextmanager
def compiler_errors(doing: str) -> Iterator[None]:
    """Turn unexpected exceptions in the ``with`` block into an InternalError; others pass.

    An unexpected exception, such as RecursionError or MemoryError, is then one failed compile. The
    callers of the compiler count and explain failed compiles and work around them, so no such
    exception reaches the user's call. ``doing`` describes the failed step.
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
    """The input of one compile.

    Attributes:
        ir: the instrumented graph with its profiled types, as IR text.
        pipeline: the pass pipeline, in the syntax of `profuse-opt -p`.
        target: CPU name, features and triple of the object code, and the GPU if there is one; None
            = the CPU of the process that compiles.
        keep_stages: True = keep the text of every stage with each kernel (slower).
        verify_each: True = verify the IR after every pass.
        repro_dir: folder for the inputs of failing pipelines; "" = a temporary folder.
        dump: destination of the graph at every pass boundary, as in the knob; "" = no dumps.
        name: name of the graph in dumps and logs.
        exact: True = kernels round every operation as NumPy does, and fuse none.
        pinned: (fusion function, reason) pairs of functions that get no kernel, because a worker
            was lost while it compiled them.
        in_place: True = kernels may write results into the memory of their inputs.
        check: the mode of kernel checks, as in the knob.
        check_ms: time budget of one kernel's check in milliseconds.
        check_bytes: bytes that the arrays of a checked or measured run may need.
        measure: True = measure kernels against op-by-op evaluation.
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
    exact: bool = False
    check: str = "off"
    check_ms: int = 20
    check_bytes: int = 64 << 20
    measure: bool = False


@dataclass
class CompileResult:
    """The result of one compile: the optimised graph, its kernels, and timings.

    Attributes:
        module: the decoded optimised graph, with its fusion and fallback functions.
        ir: IR text of the module.
        kernels: fusion function name -> object code and ABI.
        failures: fusion function name -> why the function has no kernel.
        checks: fusion function name -> verdict of its kernel's check.
        times: fusion function name -> measured times of its kernel, where they were measured.
        demoted: fusion function name -> kernel that is not used because it is slower than op-by-op
            evaluation; ``failures`` has the reason. Results that are stored have no such entry.
        refusals: why ops are not fused, or are fused for fewer sizes than possible.
        sizes: fusion function -> symbol -> size that the profile has observed for it.
        trace: names of the pipeline's passes, in order, skipped passes included.
        seconds: stage or pass name -> seconds.
        faulty: True if an error of the compiler caused a failure. Such a result is not stored.
        found_in: where the result was found: ``"the disk cache"`` or a path; "" = it was compiled.
        missed: why the disk cache did not have the result; "" = it had, or was not asked.
    """

    module: Module
    ir: str
    kernels: dict[str, KernelArtifact | GpuArtifact] = field(default_factory=dict)
    failures: dict[str, Reason] = field(default_factory=dict)
    checks: dict[str, Verdict] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=dict)
    demoted: dict[str, KernelArtifact | GpuArtifact] = field(default_factory=dict)
    refusals: list[Reason] = field(default_factory=list)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    faulty: bool = False
    found_in: str = ""
    missed: str = ""
