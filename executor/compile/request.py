"""Compile requests and results as plain values.

A request and its result contain only text, numbers, bytes and decoded programs. So both can be sent
to another process and stored on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError, ProfuseError
from ...dialect.ir.program import Module
from ...dialect.reasons import Reason
from .proof.check_verdict import CheckVerdict, Times

if TYPE_CHECKING:
    from ...lowering.abi import KernelArtifact
    from ...lowering.gpu.artifact import GpuArtifact
    from ...lowering.target import Target


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

    @property
    def is_foreign(self) -> bool:
        """True if kernels are for another CPU than this one, which cannot run them."""
        from ...lowering.target import host_target

        return self.target is not None and self.target.machine != host_target().machine


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
    checks: dict[str, CheckVerdict] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=dict)
    demoted: dict[str, KernelArtifact | GpuArtifact] = field(default_factory=dict)
    refusals: list[Reason] = field(default_factory=list)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    faulty: bool = False
    found_in: str = ""
    missed: str = ""
