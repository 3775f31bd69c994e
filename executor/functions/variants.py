"""The traced graphs of one jitted function, each with its executor."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ...dialect.dataclass import dataclass
from ...dialect.errors import TraceError
from ...dialect.importers.numpy.capture.tracer import Trace
from ...dialect.importers.numpy.tracing.pytree import TreeDef
from ...dialect.ir.dtypes import BOOL, I64
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.serialize import module_to_json
from ...dialect.ops.queries import Item
from ...dialect.reasons import Kind, Reason
from ..interpret.loop_limit import has_rounds
from ..memory.output_pool import unreadable
from ..memory.placement import Refused
from ..plans.plan import Plan
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from .race import Races

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..dispatch.arguments import Arguments
    from .results import Results
    from .untaped import Untaped


def argument_names(trace: Trace) -> tuple[str, ...]:
    """The user's name for each input of a traced graph."""
    names = (name.replace("'", "", 2) for name in trace.names)
    captured = (f"captured array {k}" for k in range(len(trace.captured)))
    return (*names, *captured, *(f"{draw.method}()" for draw in trace.draws))


_FAILURES = 8  # in a row of calls of which most raise; Python runs them from then on
_FIRST_FAILURES = 3  # the same of runs that record types, op by op
_LONGER = 4  # times as many calls are Python's after each look that has been in vain
_MOST_SKIPPED = 256  # looks, each of which is at one call in many (`PythonCalls.sooner`)
_RENEWALS = 3  # of a graph, for which code is emitted anew
FAILS_OFTEN = "most calls raise an exception, and Python runs all but one in many"
Key = tuple[TreeDef, tuple[Any, ...]]  # key of a graph: argument structure, kinds of leaves


_ON_TAPE = "Python runs calls with arrays of the tape: "
_TAKEN = TraceError(_ON_TAPE + "numbers are taken out of arrays, through which no gradient flows")
_OVERWRITTEN = TraceError(_ON_TAPE + "an array is written to under pf.no_grad()")
_EFFECTS = TraceError(_ON_TAPE + "the function changes what was there before the call")
_SWITCHED_ON = TraceError(_ON_TAPE + "the function asks for gradients, and its caller for none")


@dataclass(eq=False)
class Variant:
    """One trace and its executor.

    Attributes:
        trace: the trace.
        executor: the executor of the traced graph.
        key: key of the calls that the trace serves.
        calls: the executor's number of calls when `_make_room` last looked.
        used: number of the latest run of `_make_room` that found new calls.
        takes_tape: arrays of the tape have been among the arguments of a call.
        renewals: how often the graph got other objects of the same kinds to read.
        judged: the plan that `python_serves` has last looked at.
        is_pythons: what it has found.
        races: which calls Python runs sooner.
        failures: calls that had to be Python's, as an op raised an error.
        calls_before: the executor's number of calls when `note_failure` last looked.
        fails_often: most of the last calls were such.
        skips: how often Python serves before the next look at whether they still are.
        skipped: how often it did before the last one.
        keeps_byte_order: results may have that of arguments; Python runs calls with foreign ones.
        memory: how results are made of arguments and of what the graph gives; None = they are that.
        is_untaped: calls with arrays of the tape have run as those with plain ones.
    """

    trace: Trace
    executor: AnyExecutor
    key: Key
    calls: int = 0
    used: int = 0
    takes_tape: bool = False
    renewals: int = 0
    judged: Plan | None = None
    is_pythons: bool = False
    races: Races = field(default_factory=Races)
    failures: int = 0
    calls_before: int = 0
    fails_often: bool = False
    skips: int = 0
    skipped: int = 0
    keeps_byte_order: bool = False
    memory: Results | None = None
    is_untaped: bool = False
    counts_calls: ClassVar[bool] = True

    @property
    def is_raced(self) -> bool:
        """Whether Python may run calls sooner than the plan that `python_serves` has looked at."""
        plan = self.judged
        return plan is not None and plan.kind == "optimized" and self.may_be_pythons

    @property
    def may_be_pythons(self) -> bool:
        """Whether Python can run calls on the same values."""
        return self.executor.options.processor.is_host and not self.trace.strict

    def off_tape(self) -> TraceError | None:
        """Why the graph does not serve calls with arrays of the tape; None if it does."""
        if self.trace.asks_for_gradients and not gradient_mode():
            return _SWITCHED_ON
        return self._off_tape

    @cached_property
    def _off_tape(self) -> TraceError | None:
        main = self.trace.module.main
        taken = [i.results[0] for i in main.body.walk() if i.op is Item]
        if any(getattr(main.type_of(v), "dtype", None) not in (BOOL, I64) for v in taken):
            return _TAKEN  # constants on the tape, but not in a graph
        if self.trace.overwrites:
            return _OVERWRITTEN
        return _EFFECTS if self.trace.has_effects else None

    @cached_property
    def untaped(self) -> Untaped:
        """When calls with arrays of the tape may run as those with plain ones, and how."""
        from .untaped import Untaped

        return Untaped(self.trace)

    @property
    def gives_views(self) -> bool:
        """Whether the graph gives nothing but arrays of the caller's, or views of them."""
        return self.memory is not None and self.memory.is_all and not self.trace.has_effects

    @cached_property
    def has_rounds(self) -> bool:
        """Whether there is a loop in the graph."""
        return has_rounds(self.trace.module)

    @property
    def results(self) -> TreeDef:
        """The structure of the results."""
        return self.trace.out_tree

    def arguments(
        self, *, first: int = 0, exchange: Exchange | None = None, on_tape: bool = False
    ) -> Arguments:
        """The arguments of a call of emitted code; see `dispatch.dispatcher.Graph`."""
        from ..dispatch.arguments import arguments_of
        from ..dispatch.conditions.baked import baked_tests
        from ..dispatch.conditions.state_reads import in_state, state_tests

        trace = self.trace
        if self.renewals > _RENEWALS:
            raise Refused("the objects that the function reads are replaced again and again")
        if trace.draws:
            raise Refused("each call draws random numbers first")
        if trace.takes_generators:
            raise Refused("an argument is a random generator")
        memory = self.memory
        if memory is not None and not memory.is_plain and (trace.has_effects or first or on_tape):
            raise Refused("a result is an argument, or a view of it or of another result")
        if trace.has_effects and (first or on_tape or exchange is not None):
            raise Refused("the function writes to what was there before the call")
        held = list(zip(trace.captured, trace.held, strict=True))
        slots = list(zip(map(in_state, trace.slots), trace.slot_kinds_held, strict=True))
        found = arguments_of(
            *self.key, held, slots=slots, first=first, exchange=exchange, on_tape=on_tape
        )
        # First: later tests rely on pointers that look-ups of attributes might make stale.
        found.tests[:0] = state_tests(trace.reads)
        found.tests += baked_tests(trace.guards, found.values)
        if trace.has_effects:
            from ..dispatch.effects import effects_of

            found.writing, found.final = effects_of(trace, found)
        if memory is not None and exchange is None and not (first or on_tape):
            memory.see_to(found, trace.out_tree.leaves)
        return found

    def python_serves(self) -> bool:
        """True once the calls of this graph are sooner done by Python than by its settled plan."""
        if self.gives_views:
            return True
        if self.skips:
            self.skips -= 1
            return True
        plan = self.executor.settled
        if plan is not self.judged:
            self.judged, self.is_pythons = plan, False
            self.races.restart()
            if plan is not None and self.may_be_pythons:
                # No first call has a settled plan.
                from ..plans.scalar_plans import python_is_faster

                self.is_pythons = python_is_faster(plan)
        return self.is_pythons

    def note_failure(self) -> bool:
        """Note a call that had to be Python's; True if emitted code may serve none from now on.

        A run that ends so has taken its time in vain, and most of Python's may end sooner. Where
        most calls in a row do so, Python runs them, but for one in ever more.
        """
        self.failures += 1
        executor, calls = self.executor, self.executor.counters.current().calls
        if self.fails_often:
            self.skips = self.skipped = min(max(1, self.skipped * _LONGER), _MOST_SKIPPED)
            return False
        few = _FAILURES if executor.settled is not None else _FIRST_FAILURES
        if self.failures % few or not self.may_be_pythons:
            return False
        if executor.settled is not None and not knobs.demote:
            return False  # it is there, and always taken
        since, self.calls_before = calls - self.calls_before, calls
        if since >= few or executor.python_only:
            return False
        self.fails_often, executor.python_only = True, FAILS_OFTEN
        return True

    def note_success(self) -> None:
        """Note that a call has not failed again."""
        self.fails_often, self.skips, self.skipped = False, 0, 0
        self.executor.python_only = ""

    def waits(self) -> bool:
        """True while the code of the graph is under way.

        Op by op, each op takes some microseconds more than in Python, and each round of a loop as
        many times that as it has ops.
        """
        executor = self.executor
        if executor.many_plans or executor.settled is not None or not self.may_be_pythons:
            return False
        # Before, a plan is for the call that records, which notes what it takes.
        return executor.is_recorded and executor.plan().kind == "compiling"

    @property
    def has_waited(self) -> bool:
        """Whether `waits` was so at the latest call; this requests nothing."""
        return self.may_be_pythons and self.executor.tier == "compiling"

    def is_outdated_by(self, made: Trace) -> bool:
        """True if a trace has the graph of this one, and reads other objects into it."""
        old = self.trace
        return (
            bool(old.reads) and not old.draws and not made.draws and not old.holds_what_it_held()
            and old.out_tree == made.out_tree and old.guards == made.guards
            and old.signature() == made.signature() and old.held == made.held
            and module_to_json(old.module) == module_to_json(made.module)
        )  # fmt: skip

    def renewed(self, made: Trace) -> Variant:
        """The same graph with another trace of it."""
        return replace(self, trace=made, renewals=self.renewals + 1)

    def note_copies(self) -> None:
        """Note, once, which captured arrays each call copies, and why."""
        names = argument_names(self.trace)[len(self.trace.kinds) :]
        for name, array in zip(names, self.trace.captured, strict=True):
            why = unreadable(array)
            reason = Reason(Kind.COPIED, subject=name, detail=why or "")
            if why:
                self.executor.note_slower(reason)
