"""The functions of this process, gathered for a report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from ...executor.compile.timings import grouped
from ...executor.functions.function import GraphFunction
from ...executor.observe import live_functions
from ...executor.observe.timeline import Timeline, recording
from ...executor.plans.link import Specialised
from ...executor.settings.event_log import environment
from ...executor.settings.events import events, totals
from ...executor.settings.knobs import KNOBS
from ...executor.tiers.choice import AnyExecutor
from ...lowering.target import host_target
from .model import CompiledGraph, FunctionReport, Run, Setting
from .replay import replay

MAX_COMPILES = 48  # compiled again for one report
MAX_FUNCTIONS = 200
MAX_EVENTS = 2000

_NOT_TRACED = "No call of it could be traced: each raised an exception."


def collect(title: str, command: str = "", timeline: Timeline | None = None, ended: str = "") -> Run:
    """All of a report on this process.

    Args:
        title, command, ended: see `Run`.
        timeline: the recording that it is about; None = the one that goes on now, if any does.
    """
    if timeline is None and recording():
        timeline = recording()[0]
    now = time.perf_counter_ns()
    began = now if timeline is None else timeline.began
    calls = () if timeline is None else tuple(timeline.calls)
    functions, notes = _functions(timeline)
    budget = _Budget()
    described = tuple(_function(f, calls, budget) for f in functions)
    env, target = environment(), host_target()
    return Run(
        title=title,
        command=command,
        started=time.time() if timeline is None else timeline.epoch + began / 1e9,
        seconds=(now - began) / 1e9,
        recorded=timeline is not None,
        lost=0 if timeline is None else timeline.lost,
        functions=described,
        calls=tuple(((c.start - began) / 1e9, c) for c in calls),
        events=_events(timeline),
        threads={} if timeline is None else dict(timeline.threads),
        counters=totals(),
        settings=tuple(Setting(name, env["knobs"][name], str(knob.default), knob.help) for name, knob in KNOBS.items()),
        versions=env["versions"],
        target=f"{target.cpu}, {target.triple}",
        ended=ended,
        notes=(*notes, *budget.notes()),
    )


class _Budget:
    """The budget of what may be compiled again."""

    def __init__(self) -> None:
        self.left = MAX_COMPILES
        self.skipped = 0

    def take(self) -> bool:
        if not self.left:
            self.skipped += 1
            return False
        self.left -= 1
        return True

    def notes(self) -> list[str]:
        if not self.skipped:
            return []
        return [
            f"Passes and kernels of {MAX_COMPILES} compiles are shown; those of {self.skipped} "
            "more are not, to keep the page in bounds."
        ]


def _functions(timeline: Timeline | None) -> tuple[list[GraphFunction], list[str]]:
    """Functions that have been called: those still there, and those that a recording has kept."""
    every = {live_functions.number_of(f): f for f in live_functions.functions()}
    if timeline is not None:
        every |= {live_functions.number_of(f): f for f in timeline.functions}
    tried = set() if timeline is None else {call.function for call in timeline.calls}
    called = [f for n, f in sorted(every.items()) if f._executors() or n in tried]
    notes = []
    if len(called) > MAX_FUNCTIONS:
        notes.append(f"The first {MAX_FUNCTIONS} of {len(called)} functions are shown.")
    return called[:MAX_FUNCTIONS], notes


def _function(function: GraphFunction, calls: Sequence, budget: _Budget) -> FunctionReport:
    number, state = live_functions.number_of(function), function.state()
    return FunctionReport(
        number=number,
        name=function._name,
        place=_place(function),
        tier=state.tier,
        counters=state.counters,
        calls=tuple(c for c in calls if c.function == number),
        specializations=state.specializations,
        compiles=tuple(c for e in function._executors() for c in _compiles(e, budget)),
        explanation=function.explain() if function._executors() else _NOT_TRACED,
        reasons=state.reasons,
    )


def _place(function: GraphFunction) -> str:
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def _compiles(executor: AnyExecutor, budget: _Budget) -> list[CompiledGraph]:
    return [
        _compile(e.options.name, e.module.to_mlir(), unit, budget) for e in executor.chain() for unit in e.compiled()
    ]


def _compile(name: str, source: str, unit: Specialised, budget: _Budget) -> CompiledGraph:
    compile_ = partial(
        CompiledGraph, name, unit.about, unit.seconds, grouped(unit.result), unit.result.found_in, source
    )
    if unit.request is None:
        problem = "What was compiled has been released (the release_profiling_graph knob)."
        return compile_(problem=problem)
    if not budget.take():
        return compile_(problem="Not compiled again for this report, which shows enough of them.")
    return compile_(*replay(unit.request, unit.result.checks))


def _events(timeline: Timeline | None) -> tuple:
    if timeline is not None:
        return tuple(((when - timeline.began) / 1e9, e) for when, e in timeline.events)[-MAX_EVENTS:]
    recent = events()[-MAX_EVENTS:]
    return tuple((event.time - recent[0].time, event) for event in recent)
