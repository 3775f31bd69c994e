"""From a compile's result to a plan: loads kernels, and evaluates groups that have no kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...dialect.dataclass import dataclass
from ...dialect.reasons import Effect, Kind, Reason, summed
from ..compile.proof.check_verdict import CHECKED, FAILED, PARTLY, UNCHECKED, CheckVerdict
from ..compile.request import CompileRequest, CompileResult
from ..compile.timings import LOAD, timed_load
from ..interpret.evaluate import own
from ..memory.destinations import Destinations
from ..memory.donation import given_memory, sole_memory
from ..settings.events import Counters, log
from ..settings.plain import CHECKPOINT
from .device_groups import DeviceGroup, cache_ids, failed_before, failed_group
from .kernel_call import interpreted_group
from .last_executed import LAST, RECENT
from .plan import FallbackMaker, Plan, build_plan
from .plan_options import Options
from .processor import HOST, Processor


def group_runners(
    result: CompileResult, counters: Counters, reasons: list[Reason], name: str, on: Processor = HOST
) -> dict[str, Callable[..., Any]]:
    """A callable for each fusion function; counts, keeps and logs refusals and failures.

    Args:
        result: the result of the compile.
        counters: the counters of the executor.
        reasons: the reasons of the executor; this function appends to them.
        name: name of the executor, for the log.
        on: the processor on which the graph's values are.
    """
    adapt = on.adapter(result.module)
    for reason in summed(result.refusals):
        refuse(reason, counters, reasons, name)
    runners: dict[str, Callable[..., Any]] = {}
    ids = cache_ids(result.module.main)
    for group in (*result.kernels, *result.failures):
        function = result.module.functions[group]
        interpreted = interpreted_group(function, result.module, counters, adapt)
        failed = failed_before(ids[group], group) if group in ids else None
        if failed is not None:
            reasons.append(failed)
            runners[group] = failed_group(failed, ids[group], interpreted, name)
        elif group in result.kernels:
            kernel = result.kernels[group]
            runner = timed_load(result, partial(on.runner, kernel, function, counters, interpreted))
            runners[group] = DeviceGroup(ids[group], function, runner, interpreted, name) if group in ids else runner
            counters.kernels_compiled += 1
            _count_check(result.checks.get(group), counters)
        else:
            reason = result.failures[group]
            reasons.append(reason)
            _count_failure(reason, result.checks.get(group), counters, name)
            runners[group] = interpreted
            if group in ids and reason.kind is not Kind.SLOWER:
                runners[group] = failed_group(reason, ids[group], interpreted, name)
    if LOAD in result.seconds:
        log("load", name, "", result.seconds[LOAD], kernels=len(result.kernels))
    return runners


def _count_failure(reason: Reason, verdict: CheckVerdict | None, counters: Counters, name: str) -> None:
    """Count and log why a group has no kernel."""
    if reason.kind is Kind.SLOWER:
        counters.demotions += 1
        log("demoted", name, reason.why, group=reason.subject)
        return
    failed = verdict is not None and verdict.outcome == FAILED
    counters.compile_failures += 1
    counters.check_failures += failed
    log("check-failed" if failed else "kernel-failed", name, reason.why, group=reason.subject)


def _count_check(verdict: CheckVerdict | None, counters: Counters) -> None:
    outcome = UNCHECKED if verdict is None else verdict.outcome
    counters.kernels_checked += outcome == CHECKED
    counters.kernels_partly_checked += outcome == PARTLY
    counters.kernels_unchecked += outcome == UNCHECKED


def refuse(reason: Reason, counters: Counters, reasons: list[Reason], name: str) -> None:
    """Count, note and log ops that are not fused."""
    reasons.append(reason)
    if reason.effect is Effect.LEFT:
        return  # another fuser tells what it refuses
    counters.refusals += reason.count
    log("refused", name, str(reason), count=reason.count, why=reason.kind.value)


@dataclass(frozen=True)
class LinkedPlan:
    """A plan that is not in use yet.

    Attributes:
        result: the compile's result of which the plan was made.
        plan: the plan.
        reasons: refusals and failures of the compile.
    """

    result: CompileResult
    plan: Plan
    reasons: list[Reason]


def link(
    result: CompileResult,
    counters: Counters,
    options: Options,
    fallback: FallbackMaker,
    donated: Sequence[int] = (),
    graphs: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
) -> LinkedPlan:
    """Load the kernels of a result and make a plan.

    Args:
        result: the result of the compile.
        counters: the counters of the executor.
        options: the options of the executor.
        fallback: makes what runs if a guard fails.
        donated: indices of inputs whose memory the plan may reuse for results.
        graphs: name of the forward half of a differentiable subgraph -> what runs the subgraph.
        strict: True = strict fusion asks for kernels, however slow they are.
    """
    if result.times and not strict:
        from .demote import demote  # no first call of a process with small arrays needs it

        result = demote(result)
    reasons: list[Reason] = []
    name, on = options.name, options.processor
    runners = group_runners(result, counters, reasons, name, on)
    if options.gradients:
        from .on_tape import kernel_of_arrays

        runners = {callee: kernel_of_arrays(run) for callee, run in runners.items()}
    plan = build_plan(
        result.module,
        runners,
        fallback,
        counters,
        donated,
        options.adapter(result.module),
        graphs,
        on_tape=options.gradients,
    )
    plan.name, plan.counters = name, counters
    return LinkedPlan(result, plan, reasons)


def run_plan(plan: Plan, inputs: list, into: Destinations | None = None) -> list:
    """Run a plan. The outputs share memory with no input, unless an array of ``into`` does."""
    if into is not None:
        return _run_into(plan, inputs, into)
    if CHECKPOINT.repeats is not None:
        plan = CHECKPOINT.repeats.plan(plan)
    outputs = _run_donating(plan, inputs) if plan.donations else plan.run(inputs)
    _note_last(plan)
    return [out if fresh else plan.own(out, inputs) for out, fresh in zip(outputs, plan.fresh, strict=True)]


def _note_last(plan: Plan) -> None:
    LAST.plan, RECENT[0] = plan.ref, 0


def _run_donating(plan: Plan, inputs: list) -> list:
    memory = sole_memory if plan.sole else given_memory
    destinations = memory(plan.donations, inputs, len(plan.fresh))
    outputs = plan.run(inputs, destinations)
    count = sum(out is array for out, array in zip(outputs, destinations, strict=True))
    plan.counters.donated_results += count
    return outputs


def _run_into(plan: Plan, inputs: list, into: Destinations) -> list:
    into.open(inputs)
    outputs = plan.run(inputs, into.direct) if plan.kind == "optimized" else plan.run(inputs)
    _note_last(plan)
    results = zip(outputs, plan.fresh, into.arrays, strict=True)
    into.fill([out if fresh or out is array else own(out, inputs) for out, fresh, array in results])
    return into.arrays


class PlanWithFallbacks(NamedTuple):
    """The linked plan that a compile's result yields, with the executors behind its guards.

    Attributes:
        linked: the plan and the reasons that linking has collected.
        fallbacks: the fallback executors, by the name of the fallback function.
        halves: the executors of halves of differentiable subgraphs, by the name of the function.
    """

    linked: LinkedPlan
    fallbacks: dict[str, Any]
    halves: dict[str, Any]


@dataclass(frozen=True)
class Specialised:
    """One specialisation of a graph.

    Attributes:
        plan: the plan that runs the graph.
        request: the request that was compiled; None after the executor has released it.
        result: the result of that compile.
        seconds: time from the request to the installed plan.
        depth: number of re-specialisations that were left when the plan was made.
        about: description of the calls that the plan serves, for people.
    """

    plan: Plan
    request: CompileRequest | None
    result: CompileResult
    seconds: float
    depth: int = 0
    about: str = ""
