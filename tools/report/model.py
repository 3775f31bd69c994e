"""The contents of a report, as plain values: `collect` makes it, `page` writes it down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...executor.explain.state import Specialization
from ...executor.observe.timeline import TimedCall
from ...executor.settings.events import Event


@dataclass(frozen=True)
class Step:
    """One run of a pass.

    Attributes:
        name: of the pass.
        seconds: how long it took.
        before, after: the graph's IR.
    """

    name: str
    seconds: float
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """True if it did anything that the IR shows."""
        return self.before != self.after


@dataclass(frozen=True)
class KernelReport:
    """A native kernel.

    Attributes:
        name: of its fusion function.
        object_bytes: size of the object code.
        library_calls: library products in it.
        shared_steps: steps that several threads may share.
        seconds: what compiling it took, by stage.
        stages: texts by stage, the assembly last.
        checked: what comparing it with its definition has found.
    """

    name: str
    object_bytes: int
    library_calls: int
    seconds: Mapping[str, float]
    stages: Mapping[str, str]
    checked: str = ""
    shared_steps: int = 0


@dataclass(frozen=True)
class CompiledGraph:
    """One specialised graph, and how it came about.

    Attributes:
        executor: its name.
        about: e.g. ``"static"``, or the spec of a spec-keyed plan.
        seconds: what it took in the run that is reported on.
        stages: what those were spent on.
        found_in: what had it: the disk cache, or a file; "" = it was compiled.
        source: the graph as it was traced.
        steps: every run of a pass, from a compile made for the report.
        kernels: of that compile.
        problem: why there is no such compile.
    """

    executor: str
    about: str
    seconds: float
    stages: Mapping[str, float]
    found_in: str
    source: str
    steps: tuple[Step, ...] = ()
    kernels: tuple[KernelReport, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class FunctionReport:
    """A jitted or loaded function.

    Attributes:
        number: of the function, see `registry.number_of`.
        name: what it is called.
        place: ``file:line`` of its definition, where it has one.
        tier: that the next call would run on.
        counters: sums over all its graphs and their fallbacks.
        calls: those recorded, in order.
        specializations: every guard and how it fared.
        compiles: every specialised graph.
        explanation: what ``explain()`` says.
        reasons: refusals and failures.
    """

    number: int
    name: str
    place: str
    tier: str
    counters: Mapping[str, int]
    calls: tuple[TimedCall, ...]
    specializations: tuple[Specialization, ...]
    compiles: tuple[CompiledGraph, ...]
    explanation: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """A knob as it stands when the report is made."""

    name: str
    value: str
    default: str
    help: str


@dataclass(frozen=True)
class Run:
    """All of a report.

    Attributes:
        title: of the page.
        command: how the run was started, "" = from inside of it.
        started: seconds since 1970.
        seconds: how long calls were recorded; 0.0 = not at all.
        recorded: whether calls were recorded one by one.
        lost: calls that there was no room for.
        functions: in the order of making.
        calls: of all functions, with starts in seconds since the recording began.
        events: with the seconds since the recording began, oldest first.
        threads: names by identifier.
        counters: of the whole process.
        settings: every knob.
        versions: of all that takes part.
        target: the CPU that code is for.
        ended: how the script ended, if not well.
        notes: what a reader has to know of the report.
        of_log: it is made of a log, which has neither calls nor guards nor IR.
    """

    title: str
    command: str
    started: float
    seconds: float
    recorded: bool
    lost: int
    functions: tuple[FunctionReport, ...]
    calls: tuple[tuple[float, TimedCall], ...]
    events: tuple[tuple[float, Event], ...]
    threads: Mapping[int, str]
    counters: Mapping[str, int]
    settings: tuple[Setting, ...]
    versions: Mapping[str, str]
    target: str
    ended: str = ""
    notes: tuple[str, ...] = ()
    of_log: bool = False
