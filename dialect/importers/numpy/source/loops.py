"""A ``for`` that is recorded: its body runs on a traced index until the trial is right.

Then `scf.for` is recorded, or `scf.while` if the loop may be left. Lists to which each round
appends are arrays of the graph (`growing`).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....ir.program import Block
from ....ir.types import INT_SCALAR
from ..python.pausing import apart
from ..tracing.operators import as_value, op, wrap
from ..tracing.traced import TracedArray
from ..tracing.traced_scalar import TracedScalar
from .appends import hold, is_held, own_list
from .decisions import Key
from .exchanges import period_of
from .growing import GrowingList
from .iterables import Counted, counted_of, element_of, takes_scalars
from .names import Site, read
from .trial import Trial

if TYPE_CHECKING:
    from .source import ConvertedSource

_INDEX = ""  # the name of what a loop that may be left carries as its index


class RecordedLoop(Trial):
    """A ``for`` that is recorded: the iterator of its statement while the body is tried."""

    def __init__(
        self, source: ConvertedSource, site: Site, key: Key, frame: types.FrameType, iterable: Any, target: Any
    ) -> None:
        super().__init__(source, site, key, frame, _flat(target))
        self._iterable, self._target = iterable, target
        counted = iterable if type(iterable) is Counted else counted_of(iterable)
        # Of `scf.for` the step is positive.
        self._turned = counted.step < 0
        self._range = Counted(0, counted.rounds(), 1) if self._turned else counted
        self._block: Block | None = None
        self._before = Block()
        self._bare = self.mark  # before arrays for lists
        self._peeled = False  # the first round has been recorded on its own
        self._singles = 0  # rounds that are still to be recorded on their own, with the current one
        self._period = 1  # rounds of Python that the body has, see `exchanges`
        self._recorded = 0  # of these, the ones that the trial has run
        self._before_first: dict[str, Any] | None = None  # `puts` of the first of them
        self._index: Any = None  # of the round
        self._wants_first = False  # the first round is to tell the sizes of what is appended
        self._held: set[str] = set()  # variables with arrays that a list holds
        self.draws: dict[int, int] = {}  # generator -> draws of a round, where it is more than one
        self._draws_again = False
        starts = {name: own_list(frame, name) for name in site.lists}
        self._lists = {name: GrowingList(self, name, start) for name, start in starts.items() if start is not None}

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return apart(self._advance, sys._getframe(1))

    def _advance(self, frame: types.FrameType) -> Any:
        """The element of the next round that the user's code is to run."""
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
            self._singles -= 1
            if self._singles:
                self.runs_python = True
                self.hand_back()
                return self._element(self._range.lower)
            self._set_bounds()
            return self._begin(frame)
        if self._recorded < self._period:
            return self._next()
        self.puts = self._before_first
        changed = self.changed(frame)
        if self._exchanges(changed):
            return self._peel() if self._singles else self._begin(frame)
        outputs = self.fit(changed, frame)
        if outputs is not None:
            self._finish(outputs)
            raise StopIteration
        if self.peels and not self._peeled:
            if self._period > 1:
                self.refuse(self.why)
            self._peeled, self._singles = True, 1
            return self._peel()
        return self._begin(frame)

    @property
    def may_be_left(self) -> bool:
        """True if a round may be the last one."""
        return self.site.stop is not None

    @property
    def statements(self) -> Sequence[Trial]:
        """The statements that are being recorded, the innermost one last."""
        return self.source.open

    def choose(self, condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """``then() if condition else other()``."""
        return self.source.choose(condition, then, other)

    def number(self) -> Any:
        """The number of the round that is being recorded."""
        return self._range.number_of(self._index)

    @property
    def rounds(self) -> Any:
        """The number of rounds that are recorded as one."""
        return self._range.rounds()

    @property
    def runs_each_round_once(self) -> bool:
        """False if the loop may be left, or its body has several rounds of Python's."""
        return self.site.stop is None and self._period == 1

    def draws_again(self, generator: int, count: int) -> None:
        """Note that a round draws so often, which the trial has to know from the start."""
        self.draws[generator], self._draws_again = count, True

    def wants_first(self) -> bool:
        """Have the first round recorded on its own; False if it has been already."""
        self._wants_first = not self._peeled
        return self._wants_first

    def _exchanges(self, changed: dict[str, Any]) -> bool:
        """True if arrays change places, and the body is to have as many rounds as bring them back.

        The rounds that are left over are recorded on their own, before the others.
        """
        if self._period > 1 or self._lists or not self.rec.takes_writes:
            return False
        if self.site.stop is not None:  # a round that leaves the loop is the last of its body
            return False
        assert self._block is not None
        period = period_of(changed, self.puts or {}, self._block)
        if period == 1:
            return False
        rounds = self._range.rounds()
        if type(rounds) is TracedScalar and rounds.is_open:
            return False
        self.rec.reset(self.mark)
        if not self._range.any():
            return self._none()
        self._period, self.why = period, "arrays change places"
        self._singles = int(self._range.rounds() % period)
        self._set_bounds()
        return True

    def _next(self) -> Any:
        """The element of the next round of Python's that is recorded into the same body."""
        if len(self.rec.blocks) != self.depth + 1:
            self.refuse("a jump leaves a branch whose condition is known at run time only")
        self.puts = None
        index = self._index + self._recorded * self._range.step
        self._recorded += 1
        return self._element(index)

    def arguments(self) -> tuple[int, ...]:
        if any(growing.is_stale for growing in self._lists.values()):
            self.rec.reset(self._bare)
            rounds = self._range.rounds()
            for growing in self._lists.values():
                growing.make(rounds)
                self.source.lists.update(array.value for array in growing.arrays)
            self.carry, self.mark = None, self.rec.mark()
        return super().arguments()

    def forgotten(self) -> bool:
        is_stale = any(growing.is_stale for growing in self._lists.values()) or self._draws_again
        self._draws_again = False
        return super().forgotten() or is_stale

    def hand_back(self) -> None:
        super().hand_back()
        assert self.puts is not None
        self.puts.update({name: growing.start for name, growing in self._lists.items()})

    def fit(self, changed: dict[str, Any], frame: types.FrameType) -> tuple[int, ...] | None:
        held = {name for name in self.names if is_held(frame.f_locals.get(name))} - self._held
        self._held |= held
        if self._wants_first:
            self._wants_first = False
            return self.peel("the first round tells what a list holds to which rounds append")
        outputs = super().fit(changed, frame)
        return None if held else outputs

    def enter(self, block: Block, args: tuple[int, ...]) -> None:
        super().enter(block, args)
        assert self.puts is not None
        self._hold(self.puts)
        self.puts.update(self._lists)

    def _hold(self, values: dict[str, Any]) -> None:
        for name in self._held:
            if type(values.get(name)) is TracedArray:
                hold(values[name])

    def _set_bounds(self) -> None:
        counted = self._range
        step = counted.step * self._period
        upper = self.source.exits.bounded(counted.upper)
        self.bounds = tuple(as_value(self.rec, x) for x in (counted.lower, upper, step))
        self.mark = self._bare = self.rec.mark()

    def _peel(self) -> Any:
        """The element of the first of the rounds that are recorded on their own."""
        self.rec.reset(self._bare)
        for growing in self._lists.values():
            growing.forget()
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
        self._results_of_none()
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
        self._index, self._recorded, self._before_first = index, 1, self.puts
        for growing in self._lists.values():
            growing.begin()
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
            rec.reset(self._bare)
            bool(self._range.any())  # the graph holds for this alone
            self._results_of_none()
            return
        rounds = self._range.rounds()
        blocks = (self._before, block) if self.stops else (block,)
        self.check_ints(blocks)
        self.source.check_worth(self, blocks, rounds if type(rounds) is int else rec.known.get(rounds.value))
        if self.stops:
            values = self.emit("scf.while", (), blocks)
            last = values.pop(_INDEX) - self._range.step
        else:
            values = self.emit("scf.for", self.bounds, blocks)
            last = None
        self._hold(values)
        self.results({**values, **self._last(last, blocks)})

    def _has_rounds(self) -> bool:
        """False if the loop has no round here, and the graph is to hold for this alone."""
        # Behind a first round of its own, the formula of the last index holds for no round, too.
        after = bool(self.given & frozenset(self.site.after)) and not self._peeled
        after = after or bool(self.fixed)
        after = after or any(growing.needs_a_round for growing in self._lists.values())
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

    def _results_of_none(self) -> None:
        for growing in self._lists.values():
            growing.forget()
        self.places.forget()
        self.fixed = {}
        self.results({})

    def results(self, values: dict[str, Any]) -> None:
        super().results(values)
        assert self.puts is not None
        for name, growing in self._lists.items():
            growing.close()
            self.puts[name] = growing if growing.arrays else growing.start

    def _last(self, last: Any, blocks: Sequence[Block]) -> dict[str, Any]:
        """The values of the targets after the last round, as far as they are read.

        Args:
            last: the last index, if that is not the last of the range.
            blocks: the body.
        """
        if not self.given & frozenset(self.site.after):
            return {}
        if self.given & frozenset(self.site.changed):
            self.refuse("its body binds the variable of the loop, which is read afterwards")
        if takes_scalars(self._iterable) and any(i.op.writes for b in blocks for i in b.walk()):
            # The element that was taken is a value, which writes to the array do not change.
            self.refuse("its body writes to arrays, and the variable of the loop is read afterwards")
        counted = self._range
        if last is None:
            last = counted.lower + (counted.rounds() - 1) * counted.step
        targets: dict[str, Any] = {}
        if not _bind(self._target, self._element(last), targets):
            self.refuse("its target is unpacked, and read afterwards")
        return targets


def _flat(target: Any) -> frozenset[str]:
    if isinstance(target, str):
        return frozenset([target])
    return frozenset().union(*map(_flat, target))


def _bind(target: Any, value: Any, targets: dict[str, Any]) -> bool:
    """Bind names to the parts of a value; False if Python would have to take it apart."""
    if isinstance(target, str):
        targets[target] = value
        return True
    if type(value) is not tuple or len(value) != len(target):
        return False
    return all(_bind(t, v, targets) for t, v in zip(target, value, strict=True))
