"""The trial of one graph: its calls have shown whether its plan serves the next one, or Python."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ...dialect.importers.numpy.capture.trace import Trace
from ..interpret.loop_limit import has_rounds
from ..settings.knobs import knobs
from .patience import FEW_TRIES, TRIES, Patience
from .race import Races
from .verdict import Cause, Verdict

if TYPE_CHECKING:
    from ..plans.plan import Plan
    from ..tiers.choice import AnyExecutor

_MOST_SKIPPED = 256  # looks at whether most calls still raise, each at one call in 64 (`Ledger.sooner`)
FAILS_OFTEN = "most calls raise an exception, and Python runs all but one in many"


class GraphTrial:
    """The verdicts on a graph.

    Args:
        trace: the graph.
        executor: its executor.

    Attributes:
        may_be_pythons: whether Python can run calls on the same values.
        judged: the settled plan that `verdict` has last looked at.
        stands: the verdict on its calls, until there is another one; None = they are the plan's.
        races: which calls Python runs sooner.
        fails_often: most of the last calls had to be Python's, as an op raised an error.
        renewals: how often the graph got other objects of the same kinds to read.
        python_calls: calls that Python has run while code was under way.
        python_seconds: these took together.
    """

    def __init__(self, trace: Trace, executor: AnyExecutor) -> None:
        self._module, self._executor = trace.module, executor
        self.may_be_pythons = executor.options.processor.is_host and not (trace.strict or trace.captures_tensors)
        self.judged: Plan | None = None
        self.stands: Verdict | None = None
        self.races = Races()
        self.fails_often = False
        self._failing = Patience(first=1, most=_MOST_SKIPPED)  # looks at whether calls still raise
        self._failures = self._calls_before = 0
        self.renewals = 0
        self.python_calls, self.python_seconds = 0, 0.0

    @cached_property
    def has_rounds(self) -> bool:
        """True if there is a loop in the graph."""
        return has_rounds(self._module)

    @property
    def is_raced(self) -> bool:
        """True if Python may run calls sooner than the plan that `verdict` has looked at."""
        return self.judged is not None and self.judged.kind == "optimized" and self.may_be_pythons

    def verdict(self) -> Verdict | None:
        """The verdict that Python serves the next call; None = the plan does, or a race decides."""
        if self._failing.passes():
            return Cause.RAISES.verdict
        plan = self._executor.settled
        if plan is not self.judged:
            self.judged, self.stands = plan, None
            self.races.restart()
            if plan is not None and self.may_be_pythons:
                # No first call has a settled plan.
                from ..plans.scalar_plans import python_is_faster

                self.stands = Cause.NUMBERS.verdict if python_is_faster(plan) else None
        return self.stands or (Cause.COMPILING.verdict if self._waits() else None)

    def _waits(self) -> bool:
        """True while the code of the graph is under way.

        Op by op, each op takes some microseconds more than in Python, and each round of a loop as
        many times that as it has ops.
        """
        executor = self._executor
        if executor.many_plans or executor.settled is not None or not self.may_be_pythons:
            return False
        # Before, a plan is for the call that records, which notes what it takes.
        return executor.is_recorded and executor.plan().kind == "compiling"

    def note_python(self, seconds: float) -> None:
        """Note a call that Python has run while code was under way."""
        self.python_calls += 1
        self.python_seconds += seconds

    def standing(self) -> set[Cause]:
        """The causes of the verdicts that stand now; this requests nothing."""
        causes = {self.stands.cause} if self.stands else set()
        if self.may_be_pythons and self._executor.tier == "compiling":
            causes.add(Cause.COMPILING)
        return causes

    def note_failure(self) -> bool:
        """Note a call that had to be Python's; True if emitted code may serve none from now on.

        A run that ends so has taken its time in vain, and most of Python's may end sooner. Where
        most calls in a row do so, Python runs them, but for one in ever more.
        """
        self._failures += 1
        if self.fails_often:
            self._failing.lengthen()
            return False
        executor = self._executor
        tries = TRIES if executor.settled is not None else FEW_TRIES
        if self._failures % tries or not self.may_be_pythons:
            return False
        if executor.settled is not None and not knobs.demote:
            return False  # it is there, and always taken
        calls = executor.counters.current().calls
        since, self._calls_before = calls - self._calls_before, calls
        if since >= tries or executor.python_only:
            return False
        self.fails_often, executor.python_only = True, FAILS_OFTEN
        return True

    def note_success(self) -> None:
        """Note that a call has not failed again."""
        self.fails_often, self._executor.python_only = False, ""
        self._failing.end()
