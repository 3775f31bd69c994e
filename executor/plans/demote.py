"""Demotion: kernels that were measured to be slower than what they replace are not used."""

from __future__ import annotations

from dataclasses import replace

from ...dialect.reasons import Effect, Kind, Reason
from ..compile.proof.check_verdict import Times
from ..compile.request import CompileResult
from ..settings.knobs import knobs
from .threads import wanted_threads


def demote(result: CompileResult) -> CompileResult:
    """The result without the kernels that are too slow; the result itself if all are fast enough.

    A kernel is too slow if a launch takes `knobs.demote` times as long as the op-by-op evaluation
    of its fusion function. It is taken for granted that threads share a launch without a loss, so
    a kernel is never demoted that several threads might make faster.
    """
    factor = knobs.demote
    if not factor or not any(t.slowdown() > factor for t in result.times.values()):
        return result
    threads = wanted_threads()
    slow = {
        name: times
        for name, times in result.times.items()
        if name in result.kernels and times.slowdown(threads) > factor
    }
    if not slow:
        return result
    return replace(
        result,
        kernels={name: k for name, k in result.kernels.items() if name not in slow},
        demoted={name: result.kernels[name] for name in slow},
        failures=result.failures | {name: _reason(name, times) for name, times in slow.items()},
    )


def _reason(name: str, times: Times) -> Reason:
    return Reason(Kind.SLOWER, detail=str(times), subject=name, effect=Effect.INTERPRETED)
