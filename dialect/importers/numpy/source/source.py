"""The questions of converted code to a trace: what becomes of a loop, a branch, a condition, a list.

A loop whose bounds are traced, or that has many rounds, is recorded (`loops`). Where a trial of
one cannot be right, all starts anew (`ConvertedSource.refuse`), and Python's statement runs the rounds.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....errors import Loc, ProfuseError, TraceError
from ....ir.program import Block
from ..python.pausing import apart, unwatched
from ..tracing.current import contents_error
from ..tracing.operators import Recording, op, wrap
from ..tracing.traced import TracedArray
from ..tracing.traced_control import cond, truth
from ..tracing.types_seen import traced_len
from . import widening
from .branches import Branches, Taken, choose
from .decisions import Decision, Decisions, Key
from .exits import Exits
from .growing import GrowingList
from .iterables import Counted, as_lazy, is_lazy, lazy
from .loops import RecordedLoop
from .names import Site
from .trial import Trial
from .whiles import RecordedWhile
from .worth import is_worth_it, ops_in

if TYPE_CHECKING:
    from ..tracing.recorder import Policy, Recorder


class PlainIterable:
    """An iterable that Python's statement runs over.

    ``key``: of a statement that can be recorded if it has to be; None = it cannot.
    """

    puts = None

    def __init__(self, iterable: Any, key: Key | None = None) -> None:
        self._iterable, self.key = iterable, key

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)


class ConvertedSource:
    """The questions of converted code of one trace; ``__profuse_source__`` in its globals.

    Attributes:
        open: statements that are being recorded, the innermost one last.
    """

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        assert rec.policy is not None
        self.policy: Policy = rec.policy
        self.decisions: Decisions = rec.memory.setdefault("loops", Decisions())
        if self.decisions.by_key and rec.most_ops is not None:
            # Rounds are recorded one by one, and nobody knows yet how many there will be.
            rec.most_ops = min(rec.most_ops, self.policy.unrolled)
        self.open: list[Trial] = []
        self.ints: set[int] = set()  # values that may be ints in Python, see `widening`
        self.weak: set[int] = set()  # NumPy scalars that may be numbers of Python's there
        self.lists: set[int] = set()  # arrays of what is appended to lists
        self.exits = Exits(rec)
        self._again = False
        self._final = False

    # --- asked by converted code ----------------------------------------------------------------

    def lazy(self, function: Any, *args: Any) -> Any:
        """``function(*args)`` in the place of an iterable."""
        iterable = lazy(function, args)
        return self.rec.callee(function)(*args) if iterable is None else iterable

    def length(self, function: Any, *args: Any) -> Any:
        """``len(x)``, which of a traced array is a traced number."""
        is_len = function is builtins.len or function is traced_len
        if is_len and type(args[0]) is TracedArray and args[0].ndim:
            return args[0].shape[0]
        if is_len and type(args[0]) is GrowingList:
            return args[0].length()
        return self.rec.callee(function)(*args)

    def loop(self, site: tuple, target: Any, iterable: Any) -> Any:
        """The object that a ``for`` runs over in the place of ``iterable``."""
        frame = sys._getframe(1)
        statement, key = self._begun(site, frame)
        if type(iterable) is range:
            is_long = len(iterable) > self.policy.rounds
            if not is_long and key not in self.decisions.forced:
                return PlainIterable(iterable, key)
            iterable = Counted(iterable.start, iterable.stop, iterable.step)
        if not is_lazy(iterable):
            return PlainIterable(iterable)
        if self.decided(key) is not None:
            return PlainIterable(iterable)
        return apart(RecordedLoop, self, statement, key, frame, as_lazy(iterable), target)

    def while_(self, site: tuple) -> RecordedWhile:
        """The loop that a ``while`` asks before each round."""
        frame = sys._getframe(1)
        statement, key = self._begun(site, frame)
        return RecordedWhile(self, statement, key, frame)

    def if_(self, site: tuple, condition: Any) -> Any:
        """The object that an ``if`` asks for its branches."""
        condition = _tested(condition)
        if not self.is_open(condition):
            return Taken(bool(condition))
        frame = sys._getframe(1)
        statement, key = self._begun(site, frame)
        decision = self.decided(key)
        if decision is not None:
            if getattr(condition, "ndim", 0):
                return Taken(bool(condition))  # which NumPy refuses, but of one element
            raise contents_error(
                "the truth of an array's contents is not known while tracing, and the branch is "
                f"not recorded: {decision.why}",
                "use np.where to choose elements, or pf.cond to choose what runs",
            )
        return apart(Branches, self, statement, key, frame, condition)

    def raises(self, condition: Any) -> bool:
        """True if a branch that raises runs now; where contents decide it, that makes runs void."""
        condition = _tested(condition)
        if not self.is_open(condition):
            return bool(condition)
        self._exit(op("logical_not", self._truth_in_kernels(condition)))
        return False

    def holds(self, condition: Any) -> bool:
        """True if what is asserted holds; where contents decide it, runs are void if it does not.

        An ``if`` asks this of whose ``else`` raises.
        """
        condition = _tested(condition)
        if not self.is_open(condition):
            return bool(condition)
        self._exit(self._truth_in_kernels(condition))
        return True

    def _truth_in_kernels(self, condition: Any) -> Any:
        """The truth of a traced value; of a NumPy scalar, as one that kernels can give."""
        if type(condition) is TracedArray and not condition.ndim:
            return condition if condition.dtype == bool else op("ne", condition, 0)
        return self.truth(condition)

    def _exit(self, holds: Any) -> None:
        if self.open and not self.exits.held:  # what is open has not looked for it
            self.decisions.exits = True
            self.begin_anew(self.open[-1].key, "an exception may be raised in it")
        trial = self.open[-1] if self.open else None
        self.exits.leave_unless(holds, 1 if trial is None else trial.depth + (not trial.runs_python))

    def choose(self, condition: Any, then: Any, other: Any) -> Any:
        """A conditional expression."""
        condition = _tested(condition)
        if self.is_open(condition):
            return choose(self.rec, condition, then, other)
        return then() if condition else other()

    def both(self, first: Any, second: Any) -> Any:
        """A value that is true where ``first and second()`` is."""
        first = _tested(first)
        if self.is_open(first):
            return cond(first, lambda: self.truth(second()), lambda: False)
        return first and second()

    def chained(self, names: tuple[str, ...], left: Any, *later: Any) -> Any:
        """A value that is true where ``left < b < c`` is, or the like."""
        right = later[0]()
        result = getattr(operator, names[0])(left, right)
        if len(names) == 1:
            return result
        return self.both(result, lambda: self.chained(names[1:], right, *later[1:]))

    def either(self, first: Any, second: Any) -> Any:
        """A value that is true where ``first or second()`` is."""
        first = _tested(first)
        if self.is_open(first):
            return cond(first, lambda: True, lambda: self.truth(second()))
        return first or second()

    def stops(self, loop: Any, flag: Any) -> bool:
        """True if a loop is left now; what a recorded one does is recorded.

        A loop that contents of arrays may end is recorded, however few rounds it has.
        """
        recorded = bool(self.open) and self.open[-1] is loop and not loop.runs_python
        if recorded and isinstance(flag, Recording):
            return False
        if isinstance(flag, Recording) and type(loop) is RecordedWhile and loop.goes_on_recorded():
            return False
        key: Key | None = getattr(loop, "key", None)
        if key is None or key in self.decisions.forced or not self.is_open(flag):
            return bool(flag)
        if self.decided(key) is None:
            self.force(key)
        return bool(flag)

    def extreme(self, function: Any, *args: Any) -> Any:
        """``min(*args)`` or ``max(*args)``."""
        if len(args) == 1:
            return self._folded(function, {builtins.min, builtins.max}, args[0])
        is_min = function is builtins.min
        if not (is_min or function is builtins.max) or not any(map(self.is_open, args)):
            return self.rec.callee(function)(*args)
        return self._extreme(is_min, *args)

    @unwatched
    def _extreme(self, is_min: bool, best: Any, *others: Any) -> Any:
        for arg in others:
            is_better = arg < best if is_min else arg > best
            best = self.choose(is_better, lambda arg=arg: arg, lambda best=best: best)
        return best

    def total(self, function: Any, values: Any) -> Any:
        """``sum(values)``."""
        return self._folded(function, {builtins.sum}, values)

    def _folded(self, function: Any, known: set[Any], values: Any) -> Any:
        if type(values) is GrowingList and function in known:
            return values.folded(function)
        return self.rec.callee(function)(values)

    def negation(self, value: Any) -> Any:
        """A value that is true where ``not value`` is."""
        value = _tested(value)
        return op("logical_not", self.truth(value)) if self.is_open(value) else not value

    def is_open(self, value: Any) -> bool:
        """True for a traced value whose truth is known only at run time."""
        return isinstance(value, Recording) and value.is_open

    def truth(self, value: Any) -> Any:
        """The truth of a value as a Python bool, traced or not."""
        value = _tested(value)
        if isinstance(value, Recording) and not value.rec.evaluates:
            return wrap(self.rec, truth(self.rec, value))
        return bool(value)

    # --- decisions ------------------------------------------------------------------------------

    def decided(self, key: Key) -> Decision | None:
        """The decision to leave a statement to Python; raises the error if the trace is refused."""
        decision = self.decisions.by_key.get(key)
        for outer in self.open:
            self.decisions.inside.setdefault(outer.key, set()).add(key)
        if decision is not None:
            if decision.error is not None:
                self._final = True
                raise decision.error
            self.rec.remark(f"the rounds at {decision.loc} are recorded one by one: {decision.why}")
        return decision

    def refuse(self, trial: Trial, why: str, final: bool = False) -> Any:
        """Leave a statement to Python, and start the trace anew."""
        loc = Loc(trial.key[0], trial.site.line)
        error = TraceError(f"the loop is no loop of a graph: {why}", loc=loc)
        self.rec.refused = self.rec.refused or error
        self._note(trial, Decision(loc, why, error if final else None))
        raise error

    def _note(self, trial: Trial, decision: Decision) -> None:
        self._again = self.decisions.leave(trial.key, decision, self.rec.recorded)
        self._final |= decision.error is not None

    def force(self, key: Key) -> Any:
        """Start the trace anew, and record a loop whose condition or whose rounds are Python's."""
        self.decisions.forced.add(key)
        self.begin_anew(key, "the loop has more rounds than are recorded one by one")

    def begin_anew(self, key: Key, why: str) -> Any:
        """Start the trace anew with the decisions that there are."""
        self._again = self.decisions.restart(self.rec.recorded)
        error = TraceError(why, loc=Loc(key[0], key[2]))
        self.rec.refused = self.rec.refused or error
        raise error

    def check_worth(self, trial: Trial, blocks: tuple[Block, ...], rounds: int | None) -> None:
        """Refuse an outermost loop that Python runs as fast."""
        policy = self.policy
        if policy.elements or self.open or any(is_worth_it(self.rec, b) for b in blocks):
            return
        ops = sum(ops_in(self.rec, block) for block in blocks)
        why = "its rounds find and compute single elements, which Python does as fast"
        few = rounds is not None and max(rounds, 0) * ops <= policy.ops
        self.refuse(trial, why, final=not few)

    def learns(self, error: Exception) -> bool:
        """True if the trace that has ended with an error is to start anew."""
        if self._final or (isinstance(error, TraceError) and not error.is_undone):
            return False
        if not self._again and self.open:
            trial = self.open[-1]
            why = error.what if isinstance(error, ProfuseError) else repr(error)
            self._note(trial, Decision(Loc(trial.key[0], trial.site.line), why))
        return self._again

    def settled(self, outputs: Sequence[int]) -> tuple[int, ...]:
        """The outputs, of which none is an int in Python; starts anew if ints matter elsewhere."""
        ints = set(self.ints)
        why = widening.check_all(self.rec, ints) if ints else None
        if why is not None:
            self.decisions.ints_matter = True
            self.begin_anew(("", "", 0), f"a number is an int or a float, and {why}")
        why = widening.check_weak(self.rec, set(self.weak)) if self.weak else None
        if why is not None:
            self.decisions.ints_matter = self.decisions.floats_matter = True
            self.begin_anew(("", "", 0), f"a number is Python's or NumPy's, and {why}")
        return tuple(widening.decided(self.rec, v) if v in ints else v for v in outputs)

    def _begun(self, site: tuple, frame: types.FrameType) -> tuple[Site, Key]:
        """A statement that begins, and what decisions call it."""
        statement, code = Site(*site), frame.f_code
        key = (code.co_filename, code.co_name, statement.line, statement.column)
        for trial in self.open:
            if trial.key == key and trial.frame == id(frame):
                self.refuse(self.open[-1], "a jump leaves it")
        if self.decisions.exits and not self.open:
            self.exits.begin()
        return statement, key

    def check_closed(self) -> None:
        """Refuse a function that has left a recorded statement by a jump."""
        if self.open:
            self.refuse(self.open[-1], "a jump leaves it")


def _tested(value: Any) -> Any:
    """The object that has the truth of a value."""
    return value.is_filled() if type(value) is GrowingList else value
