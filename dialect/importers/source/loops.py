"""What converted code asks a trace: whether a loop is recorded, and what a round of it has.

A loop whose bounds are traced, or that has many rounds, is recorded: `Loop` runs its body on a
traced index until the trial is right, and records `scf.for`. Where a trial cannot be right, all
starts anew (`Source.refuse`), and Python's statement runs the rounds one by one.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...errors import Loc, ProfuseError, TraceError
from ...ir.program import Block
from ...ir.types import INT_SCALAR
from ..python.types_seen import traced_len
from ..tracing.control import cond, truth
from ..tracing.operators import Recording, as_value, op, wrap
from ..tracing.traced import TracedArray
from .appends import Appended, Element, TracedRows, are_shared, array_for, fitting, hold, is_held
from .appends import element_of as element_appended
from .branches import Branches, Taken, choose
from .decisions import Decision, Decisions, Key
from .iterables import Counted, as_lazy, counted_of, element_of, is_lazy, lazy
from .names import Site, read
from .trial import Trial
from .whiles import While
from .worth import is_worth_it, ops_in

if TYPE_CHECKING:
    from ..tracing.recorder import Policy, Recorder


_INDEX = ""  # the name of what a loop that may be left carries as its index


class Plain:
    """An iterable that Python's statement runs over.

    ``key``: of a statement that can be recorded if it has to be; None = it cannot.
    """

    puts = None

    def __init__(self, iterable: Any, key: Key | None = None) -> None:
        self._iterable, self.key = iterable, key

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)


class Source:
    """What converted code of one trace asks; ``__profuse_source__`` in its globals.

    Attributes:
        open: statements that are being recorded, the innermost one last.
    """

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        assert rec.policy is not None
        self.policy: Policy = rec.policy
        self.decisions: Decisions = rec.memory.setdefault("loops", Decisions())
        if self.decisions.found and rec.most_ops is not None:
            # Rounds are recorded one by one, and nobody knows yet how many there will be.
            rec.most_ops = min(rec.most_ops, self.policy.unrolled)
        self.open: list[Trial] = []
        self._again = False
        self._final = False

    # --- asked by converted code ----------------------------------------------------------------

    def lazy(self, function: Any, *args: Any) -> Any:
        """``function(*args)`` in the place of an iterable."""
        made = lazy(function, args)
        return self.rec.callee(function)(*args) if made is None else made

    def length(self, function: Any, *args: Any) -> Any:
        """``len(x)``, which of a traced array is a traced number."""
        is_len = function is builtins.len or function is traced_len
        if is_len and type(args[0]) is TracedArray and args[0].ndim:
            return args[0].shape[0]
        if is_len and type(args[0]) is TracedRows:
            return args[0].length()
        return self.rec.callee(function)(*args)

    def loop(self, site: tuple, target: Any, iterable: Any) -> Any:
        """What a ``for`` runs over in the place of ``iterable``."""
        frame = sys._getframe(1)
        found, key = _site(site, frame)
        if type(iterable) is range:
            is_long = len(iterable) > self.policy.rounds
            if not is_long and key not in self.decisions.forced:
                return Plain(iterable, key)
            iterable = Counted(iterable.start, iterable.stop, iterable.step)
        if not is_lazy(iterable):
            return Plain(iterable)
        if self.decided(key) is not None:
            return Plain(iterable)
        return Loop(self, found, key, frame, as_lazy(iterable), target)

    def while_(self, site: tuple) -> While:
        """What a ``while`` asks before each round."""
        frame = sys._getframe(1)
        found, key = _site(site, frame)
        return While(self, found, key, frame)

    def if_(self, site: tuple, condition: Any) -> Any:
        """What an ``if`` asks for its branches."""
        if not self.is_open(condition):
            return Taken(bool(condition))
        frame = sys._getframe(1)
        found, key = _site(site, frame)
        if self.decided(key) is not None:
            return Taken(bool(condition))
        return Branches(self, found, key, frame, condition)

    def choose(self, condition: Any, then: Any, other: Any) -> Any:
        """A conditional expression."""
        if self.is_open(condition):
            return choose(self.rec, condition, then, other)
        return then() if condition else other()

    def both(self, first: Any, second: Any) -> Any:
        """A value that is true where ``first and second()`` is."""
        if self.is_open(first):
            return cond(first, lambda: self.truth(second()), lambda: False)
        return first and second()

    def chained(self, names: tuple[str, ...], left: Any, *later: Any) -> Any:
        """A value that is true where ``left < b < c`` is, or the like."""
        right = later[0]()
        found = getattr(operator, names[0])(left, right)
        if len(names) == 1:
            return found
        return self.both(found, lambda: self.chained(names[1:], right, *later[1:]))

    def either(self, first: Any, second: Any) -> Any:
        """A value that is true where ``first or second()`` is."""
        if self.is_open(first):
            return cond(first, lambda: True, lambda: self.truth(second()))
        return first or second()

    def stops(self, loop: Any, flag: Any) -> bool:
        """Whether a loop is left now; what a recorded one does is recorded.

        A loop that contents of arrays may end is recorded, however few rounds it has.
        """
        recorded = bool(self.open) and self.open[-1] is loop and not loop.runs_python
        if recorded and isinstance(flag, Recording):
            return False
        if isinstance(flag, Recording) and type(loop) is While and loop.goes_on_recorded():
            return False
        key: Key | None = getattr(loop, "key", None)
        if key is None or key in self.decisions.forced or not self.is_open(flag):
            return bool(flag)
        if self.decided(key) is None:
            self.force(key)
        return bool(flag)

    def append(self, loop: Any, name: str, target: Any, value: Any) -> None:
        """``target.append(value)`` by a round, which does nothing else with the list."""
        if type(loop) is not Loop or loop.runs_python:
            target.append(value)
        elif type(target) is not list or name in loop.shared:
            loop.refuse(f"{name} is changed by a round")
        else:
            loop.append(name, target, value)

    def extreme(self, function: Any, *args: Any) -> Any:
        """``min(*args)`` or ``max(*args)``."""
        is_min = function is builtins.min
        if not (is_min or function is builtins.max) or not any(map(self.is_open, args)):
            return self.rec.callee(function)(*args)
        found, *others = args
        for arg in others:
            is_better = arg < found if is_min else arg > found
            found = self.choose(is_better, lambda arg=arg: arg, lambda found=found: found)
        return found

    def negation(self, value: Any) -> Any:
        """A value that is true where ``not value`` is."""
        return op("logical_not", self.truth(value)) if self.is_open(value) else not value

    def is_open(self, value: Any) -> bool:
        """True for a traced value whose truth is known only at run time."""
        return isinstance(value, Recording) and value.is_open

    def truth(self, value: Any) -> Any:
        """The truth of a value as a Python bool, traced or not."""
        if isinstance(value, Recording) and not value.rec.evaluates:
            return wrap(self.rec, truth(self.rec, value))
        return bool(value)

    # --- decisions ------------------------------------------------------------------------------

    def decided(self, key: Key) -> Decision | None:
        """The decision to leave a statement to Python; raises the error if the trace is refused."""
        decision = self.decisions.found.get(key)
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
        self._again = self.decisions.leave(trial.key, decision)
        self._final |= decision.error is not None

    def force(self, key: Key) -> Any:
        """Start the trace anew, and record a loop whose condition or whose rounds are Python's."""
        self.decisions.forced.add(key)
        self._again = self.decisions.restart()
        loc = Loc(key[0], key[2])
        error = TraceError("the loop has more rounds than are recorded one by one", loc=loc)
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

    def check_closed(self) -> None:
        """Refuse a function that has left a recorded statement by a jump."""
        if self.open:
            self.refuse(self.open[-1], "a jump leaves it")


class Loop(Trial):
    """A ``for`` that is recorded: the iterator of its statement while the body is tried."""

    def __init__(
        self, source: Source, site: Site, key: Key, frame: types.FrameType, iterable: Any,
        target: Any,
    ) -> None:  # fmt: skip
        super().__init__(source, site, key, frame, _flat(target))
        self._iterable, self._target = iterable, target
        counted = iterable if type(iterable) is Counted else counted_of(iterable)
        # Of `scf.for` the step is positive.
        self._turned = counted.step < 0
        self._range = Counted(0, counted.rounds(), 1) if self._turned else counted
        self._block: Block | None = None
        self._before = Block()
        self._peeled = False  # the first round has been recorded on its own
        self._lists: dict[str, list[Any]] = {}  # to which rounds append
        self._wanted: dict[str, Element] = {}  # what they append, where there is no array for it
        self._appended: dict[str, Appended] = {}
        self._index: Any = None  # of the round
        self._wants_first = False  # the first round is to tell the sizes of what is appended
        self._held: set[str] = set()  # variables with arrays that a list holds
        self.shared = are_shared(frame, site.lists)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        frame = sys._getframe(1)
        if self._block is None:
            self.source.open.append(self)
            self._set_bounds()
            return self._begin(frame)
        if self.source.open[-1] is not self:
            self.source.refuse(self.source.open[-1], "a jump leaves it")
        if self.runs_python:
            self.runs_python = False
            if len(self.rec.blocks) != self.depth:
                self.refuse("a jump leaves a branch whose condition is known at run time only")
            self.start = read(frame, self.site.names)
            first = self._range
            self._range = Counted(first.lower + first.step, first.upper, first.step)
            self._set_bounds()
            return self._begin(frame)
        outputs = self.fit(self.changed(frame), frame)
        if outputs is not None:
            self._finish(outputs)
            raise StopIteration
        if self.peels and not self._peeled:
            self._peeled = True
            return self._peel()
        return self._begin(frame)

    def append(self, name: str, target: list[Any], value: Any) -> None:
        """Record that a round appends to a list."""
        if self.source.open[-1] is not self:
            self.refuse(f"{name} is changed in a branch")
        assert self._block is not None
        element = element_appended(value, self._block)
        if isinstance(element, str):
            self.refuse(element)
            return
        self._lists[name] = target
        known = self._appended.get(name)
        if element.rank and not self._peeled:
            self._wants_first = True
        elif known is None:
            self._wanted[name] = element
        elif known.element != element:
            self.refuse(f"elements of several kinds are appended to {name}")
        else:
            place = self._range.number_of(self._index)
            known.array[place] = fitting(value, target[-1]) if element.rank else value

    def arguments(self) -> tuple[int, ...]:
        if self._wanted:
            self.rec.reset(self.mark)
            rounds = self._range.rounds()
            for name, element in self._wanted.items():
                self._appended[name] = Appended(
                    element, array_for(element, rounds, self._lists[name])
                )
            self._wanted, self.carry, self.mark = {}, None, self.rec.mark()
        return super().arguments()

    def forgotten(self) -> bool:
        return super().forgotten() or bool(self._wanted)

    def fit(self, changed: dict[str, Any], frame: types.FrameType) -> tuple[int, ...] | None:
        held = {name for name in self.names if is_held(frame.f_locals.get(name))} - self._held
        self._held |= held
        if self._wants_first:
            self._wants_first = False
            return self.peel("the first of the arrays that are appended to a list tells the sizes")
        outputs = super().fit(changed, frame)
        return None if held else outputs

    def enter(self, block: Block, args: tuple[int, ...]) -> None:
        super().enter(block, args)
        self._hold(self.puts or {})

    def _hold(self, values: dict[str, Any]) -> None:
        for name in self._held:
            if type(values.get(name)) is TracedArray:
                hold(values[name])

    def _set_bounds(self) -> None:
        found = self._range
        self.bounds = tuple(as_value(self.rec, x) for x in (found.lower, found.upper, found.step))
        self.mark = self.rec.mark()

    def _peel(self) -> Any:
        """The element of the first round, which is recorded on its own."""
        self.rec.reset(self.mark)
        self._wanted, self._appended = {}, {}
        some = self._range.any()
        if type(some) is not bool and some.value not in self.rec.known:
            self.refuse(self.why)
        if not some:
            return self._none()
        self.runs_python = True
        self.hand_back()
        return self._element(self._range.lower)

    def _none(self) -> Any:
        """End a loop that has no round here, which the graph takes for granted."""
        self.source.open.pop()
        self.results({})
        raise StopIteration

    def _begin(self, frame: types.FrameType) -> Any:
        rec = self.rec
        self.extra = {_INDEX: self._range.lower} if self.stops else {}
        args = self.arguments()
        if self.stops:
            # `scf.while`: the index is carried.
            self._before = Block(args)
            self.enter(self._before, args)
            inside = op("lt", self.given_extra[_INDEX], self._range.upper)
            condition = op("bitwise_and", self.goes_on(), inside)
            self._before.outputs = (as_value(rec, condition), *args)
            self.leave()
            assert self.carry is not None
            args = self.carry.arguments()
            self._block = Block(args)
            self.enter(self._block, args)
            index = self.given_extra[_INDEX]
        else:
            self._block = Block()
            number = rec.new_value(INT_SCALAR, home=self._block)
            self._block.args = (number, *args)
            self.enter(self._block, args)
            index = wrap(rec, number)
        self._index = index
        element = self._element(index)
        self.note(frame)
        return element

    def advanced(self) -> dict[str, Any]:
        return {n: index + self._range.step for n, index in self.given_extra.items()}

    def _element(self, index: Any) -> Any:
        if self._turned or type(self._iterable) is not Counted:
            return element_of(self._iterable, index)
        return self._iterable.element(index)

    def _finish(self, outputs: tuple[int, ...]) -> None:
        rec, block = self.rec, self._block
        assert block is not None
        block.outputs = outputs
        self.leave()
        self.source.open.pop()
        if not self.is_safe():
            self.refuse("a number becomes a NumPy scalar of few bits")
        if not self._has_rounds():
            rec.reset(self.mark)
            bool(self._range.any())  # the graph holds for this alone
            self.results({})
            return
        rounds = self._range.rounds()
        blocks = (self._before, block) if self.stops else (block,)
        self.source.check_worth(
            self, blocks, rounds if type(rounds) is int else rec.known.get(rounds.value)
        )
        if self.stops:
            made = self.emit("scf.while", (), blocks)
            last = made.pop(_INDEX) - self._range.step
        else:
            made = self.emit("scf.for", self.bounds, blocks)
            last = None
        lists = {
            name: TracedRows(self, self._lists[name], found.element, found.array)
            for name, found in self._appended.items()
        }
        self._hold(made)
        self.results({**made, **self._last(last), **lists})

    def _has_rounds(self) -> bool:
        """False if the loop has no round here, and the graph is to hold for this alone."""
        # Behind a first round of its own, the formula of the last index holds for no round, too.
        after = bool(self.given & frozenset(self.site.after)) and not self._peeled
        after = after or bool(self._appended)  # a list without new elements is one of Python's
        if not after and not self.needs_a_round():
            return True
        some = self._range.any()
        if isinstance(some, bool) and type(some) is bool:
            return some
        if some.value in self.rec.known:
            return bool(some)
        if after or not self.is_exact():
            self.refuse("what variables hold without a round is not known while tracing")
        return True

    def _last(self, last: Any) -> dict[str, Any]:
        """What the targets hold after the last round, as far as it is read.

        ``last``: the last index, if that is not the last of the range.
        """
        if not self.given & frozenset(self.site.after):
            return {}
        if self.given & frozenset(self.site.changed):
            self.refuse("its body binds the variable of the loop, which is read afterwards")
        counted = self._range
        if last is None:
            last = counted.lower + (counted.rounds() - 1) * counted.step
        found: dict[str, Any] = {}
        if not _bind(self._target, self._element(last), found):
            self.refuse("its target is unpacked, and read afterwards")
        return found


def _site(site: tuple, frame: types.FrameType) -> tuple[Site, Key]:
    """A statement, and what decisions call it."""
    found, code = Site(*site), frame.f_code
    return found, (code.co_filename, code.co_name, found.line, found.column)


def _flat(target: Any) -> frozenset[str]:
    if isinstance(target, str):
        return frozenset([target])
    return frozenset().union(*map(_flat, target))


def _bind(target: Any, value: Any, found: dict[str, Any]) -> bool:
    """Bind names to the parts of a value; False if Python would have to take it apart."""
    if isinstance(target, str):
        found[target] = value
        return True
    if type(value) is not tuple or len(value) != len(target):
        return False
    return all(_bind(t, v, found) for t, v in zip(target, value, strict=True))


__all__ = ["Loop", "Source"]
