"""The kernels of a compiled graph: each fusion function is lowered, checked and measured, or says why it has none."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ...dialect.errors import LoweringError, ProfuseError
from ...dialect.ops.speculation import FusionGroup
from ...dialect.reasons import Effect, Kind, Reason
from .proof.check_verdict import FAILED, CheckVerdict
from .request import CompileRequest, CompileResult, compiler_errors
from .timings import CHECK, GLUE, add, rest_of, startup


def compile_groups(
    result: CompileResult,
    request: CompileRequest,
    on_group: Callable[[str], object] | None,
    on_check: Callable[[str], object] | None,
) -> None:
    """Add the kernels of all fusion functions to the result of a pipeline, and to its failures why some have none.

    Args:
        result: of the pipeline of the request.
        request: what to compile.
        on_group, on_check: see `compile_graph`.
    """
    pinned = dict(request.pinned)
    for name in result.module.main.callees(FusionGroup):
        reason = pinned.get(name)
        if reason is None:
            if on_group is not None:
                on_group(name)
            reason = _compile_kernel(result, name, request, on_check)
        elif reason.kind is Kind.CHECK_CRASHED:
            result.checks[name] = CheckVerdict(FAILED, reason.why)
        if reason is not None:
            result.failures[name] = replace(reason, subject=name, effect=Effect.INTERPRETED)
            result.faulty |= reason.kind is not Kind.NOT_LOWERED


def _compile_kernel(
    result: CompileResult, name: str, request: CompileRequest, on_check: Callable[[str], object] | None
) -> Reason | None:
    """Add the kernel of a fusion function to a result; returns the reason why it has none, if so."""
    with rest_of(GLUE, result.seconds):
        with startup(result.seconds):
            from ...lowering.placement import compile_for
            from ...lowering.target import host_target
            from .proof.measure import measured
            from .proof.prove import prove

            target = request.target or host_target()
        function = result.module.functions[name]
        try:
            with compiler_errors(f"lowering @{name}"):
                artifact = compile_for(
                    function, target, keep_stages=request.keep_stages, in_place=request.in_place, exact=request.exact
                )
        except LoweringError as error:
            return Reason.of_error(Kind.NOT_LOWERED, error)
        except ProfuseError as error:  # an error of the compiler must not fail the user's call
            return Reason(Kind.COMPILER_FAULT, detail=f"{type(error).__name__}: {error}")
        for stage, seconds in artifact.seconds.items():
            add(result, stage, seconds)
        if on_check is not None:
            on_check(name)
        start = time.perf_counter()
        verdict = result.checks[name] = prove(artifact, function, request, result.module)
        is_wrong = verdict.outcome == FAILED
        if not is_wrong:
            result.kernels[name] = artifact
            times = measured(artifact, function, request, result.sizes.get(name, {}), result.module)
            if times is not None:
                result.times[name] = times
        if request.check != "off" or request.measure:
            add(result, CHECK, time.perf_counter() - start)
        # The kernel is neither used nor stored: a later process may have a corrected compiler.
        return Reason(Kind.WRONG_KERNEL, detail=verdict.detail) if is_wrong else None
