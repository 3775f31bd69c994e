"""The state of a jitted function as plain values: tier, specialisations, counts and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ...dialect.errors import ArgumentError
from ...dialect.ir.device import HOST
from ...dialect.ir.types import TensorType
from ...dialect.reasons import Reason
from ..compile.request import CompileResult
from ..compile.timings import grouped
from ..plans.guard import PlanGuard
from ..plans.plan import Plan
from ..settings.events import Counters
from ..tiers.choice import AnyExecutor
from ..tiers.keyed import KeyedState
from ..tiers.profiling import DebugState

if TYPE_CHECKING:
    from ...lowering.gpu.artifact import Usage


@dataclass(frozen=True)
class Specialization:
    """One guarded group of the fallback chain.

    Attributes:
        guard: what the guard expects of each operand, as text.
        behavior: ``"static"`` or ``"dynamic"``.
        depth: bailout depth of its executor: the specialisations that were left, this one included;
            0 for a spec-keyed executor.
        kernels: names of the native kernels behind the guard.
        hits, misses: how often the guard passed and failed.
        seconds: compile time of its executor.
        object_bytes: size of the kernels' object code.
        callee: the fusion function behind the guard.
        run_seconds: time its group has run, estimated from one hit in ``pf.knobs.time_every``;
            0.0 before the second hit.
        forced: the ``misses`` that stress mode caused.
        executor: name of its executor.
        stages: the parts of ``seconds``: ``parse``, ``passes``, ``decode``, ``lowering``,
            ``LLVM``, ``check``, ``load``, or ``disk cache``.
        usage: GPU kernel -> the resources of a multiprocessor that it needs (registers, spills, …).
        checked: result of the comparison of the kernel with tier 0, in words.
        measured: times of the kernel and of the evaluation that it replaces, in words; "" =
            they were not measured.
    """

    guard: str
    behavior: str
    depth: int
    kernels: tuple[str, ...]
    hits: int
    misses: int
    seconds: float
    object_bytes: int = 0
    callee: str = ""
    run_seconds: float = 0.0
    forced: int = 0
    executor: str = ""
    stages: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict, compare=False)
    checked: str = ""
    measured: str = ""


@dataclass(frozen=True)
class ExecutorState:
    """A snapshot; see `Executor` and `KeyedExecutor` for the meaning of tiers and depth.

    Attributes:
        tier: ``"profiling"``, ``"compiling"`` (in the background), ``"optimized"``, ``"simple"``,
            ``"no-opt"``, or ``"python"``: the last call had no graph, and Python ran it.
        remaining_depth: re-specialisations that can still happen.
        specializations: all guards of the whole fallback chain, outermost first.
        counters: sums over the chain (`executor.settings.events.Counters`).
        reasons: refusals and failures, in the order they were met.
        emitted: True = emitted code serves calls, and calls Python only if no guard passes; False =
            each call goes through the Python dispatcher.
        emitted_into: the same for calls of `into`.
    """

    tier: str
    remaining_depth: int
    specializations: tuple[Specialization, ...]
    counters: Mapping[str, int]
    reasons: tuple[str, ...]
    emitted: bool = False
    emitted_into: bool = False


def debug_state_of(executor: AnyExecutor | None, name: str) -> DebugState | KeyedState:
    """The debug state of a graph; raises ArgumentError while it has none (R1.15, R2.16)."""
    state = None if executor is None else executor.debug_state()
    if state is None:
        raise ArgumentError(f"{name} has no optimised plan yet", hint="call it again")
    return state


def state_of(
    executors: Iterable[AnyExecutor],
    current: AnyExecutor | None,
    others: Iterable[Counters] = (),
    others_reasons: Iterable[Reason] = (),
) -> ExecutorState:
    """The state of a function that has these graphs.

    Args:
        executors: the outermost executor of each graph.
        current: the executor of the last call; None before the first call.
        others: counters that belong to no executor; they are added.
        others_reasons: reasons that belong to no executor; they come first.
    """
    tops = list(executors)
    every = [e for top in tops for e in top.chain()]
    sums = Counters()
    for counters in (*(e.counters for e in every), *others):
        sums.add(counters)
    reasons = [reason.told for reason in others_reasons]
    for e in every:
        reasons += [*e.notes, *(reason.told for reason in tuple(e.reasons))]
    return ExecutorState(
        tier=current.tier if current else "profiling",
        remaining_depth=current.remaining_depth if current else 0,
        specializations=tuple(s for e in every for s in specializations_of(e)),
        counters=MappingProxyType(sums.as_dict()),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def specializations_of(executor: AnyExecutor) -> tuple[Specialization, ...]:
    """The guards of one executor's optimised plans."""
    name = executor.options.name
    plans = executor.compiled()
    return tuple(s for m in plans for s in _guards(m.plan, m.result, m.seconds, m.depth, name))


def _guards(
    plan: Plan, result: CompileResult | None, seconds: float, depth: int, name: str
) -> tuple[Specialization, ...]:
    kernels = result.kernels if result else {}
    checks = result.checks if result else {}
    times = result.times if result else {}
    return tuple(
        Specialization(
            guard=guard_text(guard),
            behavior=guard.behavior,
            depth=depth,
            kernels=tuple(n for n in (guard.callee,) if n in kernels),
            hits=guard.hits,
            misses=guard.misses,
            seconds=seconds,
            object_bytes=len(kernels[guard.callee].object) if guard.callee in kernels else 0,
            callee=guard.callee,
            run_seconds=guard.run_seconds,
            forced=guard.forced,
            executor=name,
            stages=grouped(result) if result else {},
            usage=getattr(kernels.get(guard.callee), "usage", {}),
            checked=str(checks.get(guard.callee, "")),
            measured=str(times.get(guard.callee, "")),
        )
        for guard in plan.guards
    )


def guard_text(guard: PlanGuard) -> str:
    """``f32[4, 8] contiguous, f32[8] contiguous``: dtype, sizes and layout per operand.

    Of a relaxed guard, ``f32[s0_0, s0_1], f32[s0_1] where (s0_1 % 2) == 0``: what it asks of sizes.
    """
    text = ", ".join(map(type_text, guard.shown_types()))
    return f"{text} where {' and '.join(guard.free.fit)}" if guard.free.fit else text


def type_text(type_: object) -> str:
    """Short text of a type, for messages."""
    if not isinstance(type_, TensorType):
        return str(type_)
    shape = (None,) if type_.shape is None else type_.shape
    sizes = ", ".join("?" if d is None else str(d) for d in shape)
    text = f"{type_.dtype or 'tensor'}[{sizes}]"
    if isinstance(type_.strides, str):
        text += f" {type_.strides}"
    elif type_.strides is not None:
        text += f" strides ({', '.join('?' if s is None else str(s) for s in type_.strides)})"
    return text if type_.device in (None, HOST) else f"{text} on {type_.device}"
