"""Runners of a captured graph, or of a section of it: an executor, then emitted code."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from ...dialect.analysis.backward_lists import HOOKS, INPUTS, PACKED
from ...dialect.analysis.sections import Section
from ...dialect.errors import InternalError
from ...dialect.ir.program import Module
from ...dialect.ir.types import TensorType
from ...dialect.ops.backward import RUNNING, USERS_CODE, CaptureFrame
from ..plans.plan import build_plan
from ..plans.plan_options import Options
from ..settings.events import Counters
from ..tiers.choice import AnyExecutor, make_executor
from ..tiers.profiling import Executor
from .beside import BESIDE
from .captured_function import BackwardFunction
from .emitted import EmittedRuns


class Runner:
    """Runs the graph of an executor.

    Args:
        function: what the executor belongs to.
        executor: of the graph.
        donated: inputs that are overwritten where nobody else holds them.
    """

    def __init__(self, function: BackwardFunction, executor: AnyExecutor, donated: Sequence[int]) -> None:
        self._function, self.executor = function, executor
        executor.donated, executor.sole = tuple(donated), True
        main = executor.module.main
        # What goes through its stages beside the program; None = in the calls.
        in_stages = isinstance(executor, Executor) and executor.options.background
        self._in_stages: Executor | None = executor if in_stages else None  # type: ignore[assignment]
        self._busy_in: object = None  # the era in which a plan is made beside the program
        self._emitted: EmittedRuns | None = None
        calls_users = any(instr.op in USERS_CODE for instr in main.body.walk())
        if not calls_users and isinstance(executor, Executor) and main.outputs:
            name = executor.options.name
            self._emitted = EmittedRuns(executor, name, len(main.outputs), _in_python(self))
            function.emits(self._emitted)

    def is_ready(self) -> bool:
        """True if a run is better given to the graph than to the eager tape.

        In the background, that is while it is profiled, and once it is compiled.
        """
        executor = self._in_stages
        if executor is None or executor.optimized is not None:
            return True
        if self._busy_in is BESIDE.era or executor.under_way():
            return False
        if executor.record is not None and executor.record.ready:
            self._ask()  # the compile was lost
            return False
        return True

    def prepare(self) -> None:
        """Have the executor make the plan for the next run, which would wait for that else."""
        if self._in_stages is not None:
            self._in_stages.plan()

    def advance(self) -> None:
        """Have it be compiled beside the program, if it has been profiled."""
        executor = self._in_stages
        if executor is not None and executor.optimized is None and self._busy_in is not BESIDE.era:
            record = executor.record
            if record is not None and record.ready and not executor.under_way():
                self._ask()

    def _ask(self) -> None:
        """Have the plan for the next run be made beside the program."""
        self._busy_in = BESIDE.era

        def job() -> None:
            try:
                self.prepare()
            finally:
                self._busy_in = None

        BESIDE.ask(job)

    def __call__(self, inputs: list) -> list:
        """Run the graph on its inputs."""
        call = None if self._emitted is None else self._emitted.call
        return self.in_python(inputs) if call is None else list(call(*inputs))

    def in_python(self, inputs: list) -> list:
        """Run it, and have code be emitted once that has been often enough."""
        emitted = self._emitted
        if emitted is not None and emitted.wants(inputs):
            if self._in_stages is None:
                emitted.emit()
            else:
                BESIDE.ask(emitted.emit)
        return self._function.run(self.executor, inputs)


def _in_python(runner: Runner) -> Callable[..., Any]:
    """The function for runs that emitted code leaves to others; it does not keep ``runner`` alive."""
    reference = weakref.ref(runner)

    def run(*inputs: Any) -> Any:
        referent = reference()
        if referent is None:
            raise InternalError("a captured run is run whose graph is gone")
        return tuple(referent.in_python(list(inputs)))

    return run


_FRAME = (INPUTS, HOOKS, PACKED)


class SectionRow:
    """The way in which a section is run.

    Attributes:
        runner: runs its graph.
        inputs: takes its inputs out of the values so far.
        dying: which of these are let go.
        slots: which leaves, hooks and packed data it uses; None for a section that uses none.
    """

    __slots__ = ("dying", "inputs", "runner", "slots")

    def __init__(self, runner: Runner, inputs: Sequence[int], dying: Sequence[int], section: Section) -> None:
        self.runner, self.inputs, self.dying = runner, _picking(inputs), dying
        slots = section.slots
        self.slots = [slots.get(which, ()) for which in _FRAME] if slots else None

    def __call__(self, values: list, frame: CaptureFrame | None) -> None:
        """Run it: ``values`` gets what it computes, and loses what nothing else needs."""
        arguments = list(self.inputs(values))
        for k in self.dying:
            values[k] = None
        if self.slots is not None and frame is not None:
            lists = frame.leaves, frame.hooks, frame.packed
            own = zip(lists, self.slots, strict=True)
            leaves, hooks, packed = [[items[k] for k in slots] for items, slots in own]
            numbers = [frame.numbers[k] for k in self.slots[1]]
            RUNNING.frame = CaptureFrame(leaves, hooks, packed, frame.written, frame.check, numbers)
            values += self.runner(arguments)
            RUNNING.frame = frame
            return
        values += self.runner(arguments)


class CallsRow:
    """The way in which calls of users' code at the end of a graph are made: a plan, as nothing of it is compiled.

    Attributes:
        inputs, dying: those of a `SectionRow`.
        run: makes the calls, given their operands.
    """

    __slots__ = ("dying", "inputs", "run")

    def __init__(self, section: Section, counters: Counters, inputs: Sequence[int], dying: Sequence[int]) -> None:
        self.inputs, self.dying = _picking(inputs), dying
        self.run = build_plan(Module(section.program), {}, _no_fallback, counters, taken=True).run

    def __call__(self, values: list, frame: CaptureFrame | None) -> None:
        """Make the calls; no list refers to the operands any more, so that leaves take gradients as they are."""
        operands = list(self.inputs(values))
        for k in self.dying:
            values[k] = None
        values += self.run(_taken(operands))


def _taken(values: list) -> Iterator[Any]:
    """The values in order, each taken out of the list."""
    values.reverse()
    while values:
        yield values.pop()


def _no_fallback(callee: str, _: Any) -> Any:
    raise InternalError(f"calls of users' code fall back to {callee}")


def in_sections(
    function: BackwardFunction, options: Options, cut: Sequence[Section]
) -> tuple[list[Runner], list[SectionRow | CallsRow], Callable[[list], Sequence[Any]]]:
    """The different runners of a graph, what runs it section by section, and takes its results."""
    whole = function.module.main
    places = {v: k for k, v in enumerate(whole.inputs)}
    runners: dict[str, Runner] = {}
    rows: list[SectionRow | CallsRow] = []
    for section in cut:
        inputs, dying = [places[v] for v in section.inputs], [places[v] for v in section.dying]
        for value in section.outputs:
            places[value] = len(places)
        if section.calls:
            counters = next(iter(runners.values())).executor.counters
            rows.append(CallsRow(section, counters, inputs, dying))
            continue
        module = Module(section.program)
        text = module.to_mlir()
        runner = runners.get(text)
        if runner is None:
            of_many = len(cut) - cut[-1].calls > 1
            section_options = replace(options, name=f"{options.name}[{len(runners)}]") if of_many else options
            program = section.program
            arrays = [k for k, v in enumerate(program.inputs) if isinstance(program.type_of(v), TensorType)]
            runner = runners[text] = Runner(function, make_executor(module, section_options), arrays)
        rows.append(SectionRow(runner, inputs, dying, section))
    function.consists_of([runner.executor for runner in runners.values()], len(cut) - cut[-1].calls)
    return list(runners.values()), rows, _picking([places[v] for v in whole.outputs])


def _picking(places: Sequence[int]) -> Callable[[list], Sequence[Any]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: [values[k] for k in places]
