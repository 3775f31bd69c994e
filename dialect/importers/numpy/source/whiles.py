"""``while`` statements: `scf.while` where the condition is traced, Python's own otherwise."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from ....ir.program import Block
from ..python.pausing import apart
from ..tracing.operators import Recording, op, wrap
from ..tracing.traced_control import truth
from .decisions import Key
from .names import UNBOUND, Site, read, same
from .trial import Trial

if TYPE_CHECKING:
    from .source import ConvertedSource

PYTHON, TESTED, RECORDS, INSIDE = range(4)


class RecordedWhile(Trial):
    """A ``while``: asked before each round, and for the condition.

    Python's statement runs until a condition is traced; from that round on it is recorded. The
    first block evaluates the condition, the second is the body.
    """

    def __init__(self, source: ConvertedSource, site: Site, key: Key, frame: types.FrameType) -> None:
        super().__init__(source, site, key, frame)
        self._state = PYTHON
        self._rounds = 0
        self._ends = self._peeled = self._is_constant = False
        self._first: Any = None  # the condition before the first recorded round
        self._is_open = False  # it is not known
        self._is_left = False  # maybe, in the round that is recorded on its own
        self._before = Block()
        self._body = Block()

    # --- asked by converted code ----------------------------------------------------------------

    def round(self) -> bool:
        """True if there is a condition to evaluate, False behind the last round."""
        return apart(self._round, sys._getframe(1))

    def _round(self, frame: types.FrameType) -> bool:
        if self._state == PYTHON:
            return self._round_of_python(frame)
        if self._state == TESTED:
            self._state = RECORDS
            self.source.open.append(self)
        elif self.source.open[-1] is not self:
            self.source.refuse(self.source.open[-1], "a jump leaves it")
        elif self._state == INSIDE:
            outputs = self.fit(self.changed(frame), frame)
            if outputs is not None and self._finish(outputs):
                return False
            if self.peels and not self._peeled:
                self._peel()
                return True
        self._begin(frame)
        return True

    def test(self, condition: Any) -> bool:
        """True if the body runs now."""
        if self._state == RECORDS:
            self._close(sys._getframe(1), condition)
            return True
        may_record = self._may_record(condition)
        if self._is_left and self._rounds > 1 and not may_record:
            self.refuse("the round that is recorded on its own may leave it")
        if may_record and self.source.decided(self.key) is None:
            self._first, self._is_open = condition, self.source.is_open(condition)
            self._state = TESTED
            return False
        self._ends = not condition
        return not self._ends

    def goes_on_recorded(self) -> bool:
        """True where a `break` may leave the round that is recorded on its own.

        The rounds that are recorded behind it run only if it does not.
        """
        self._is_left = self._peeled and self._state == PYTHON and self._rounds == 1
        return self._is_left

    # --- in Python ------------------------------------------------------------------------------

    def _round_of_python(self, frame: types.FrameType) -> bool:
        if self._ends:
            self.puts = None
            return False
        if self._rounds == self.source.policy.rounds and self.key not in self.source.decisions.by_key:
            self.source.force(self.key)
        if self._rounds:
            self.start = read(frame, self.site.names)
        self.mark = self.rec.mark()
        self.puts = None
        self._rounds += 1
        return True

    def _may_record(self, condition: Any) -> bool:
        if self._peeled and self._rounds == 1:
            return False
        if isinstance(condition, Recording):
            return not condition.rec.evaluates
        return self.key in self.source.decisions.forced

    # --- recorded -------------------------------------------------------------------------------

    def _begin(self, frame: types.FrameType) -> None:
        self._state = RECORDS
        args = self.arguments()
        self._before = Block(args)
        self.enter(self._before, args)
        self.note(frame)

    def _close(self, frame: types.FrameType, condition: Any) -> None:
        """End the block of the condition, and enter that of the body."""
        rec = self.rec
        variables = read(frame, self.site.names)
        if any(not same(variables.get(n, UNBOUND), v) for n, v in (self.puts or {}).items()):
            self.refuse("its condition binds a variable")
        if len(rec.blocks) != self.depth + 1 or self.source.open[-1] is not self:
            self.refuse("its condition is not evaluated in one go")
        if self.stops:
            condition = op("bitwise_and", wrap(rec, truth(rec, condition)), self.goes_on())
        self._is_constant = not isinstance(condition, Recording)
        if self.source.exits.held:
            condition = self.source.exits.also(wrap(rec, truth(rec, condition)))
        self._before.outputs = (truth(rec, condition), *self._before.args)
        self.leave()
        args = () if self.carry is None else self.carry.arguments()
        self._body = Block(args)
        self.enter(self._body, args)
        self._state = INSIDE

    def _finish(self, outputs: tuple[int, ...]) -> bool:
        """Record the loop; False if its first round has to be recorded on its own."""
        self._body.outputs = outputs
        self.leave()
        if self._is_constant and not self.stops:
            self.refuse("its condition is no array or number that changes")
        if not self.is_safe() or (self.needs_a_round() and not self._is_fit()):
            self.peel("its variables have other types before the first round")
            return False
        self.source.open.pop()
        if self.fixed and (self._is_open or not self._first):  # the graph holds where there is a round alone
            self.refuse("it may have no round, and names are then unbound")
        blocks = (self._before, self._body)
        self.check_ints(blocks)
        self.source.check_worth(self, blocks, None)
        self.results(self.emit("scf.while", (), blocks))
        return True

    def _is_fit(self) -> bool:
        """True if the first condition is known only at run time, and a number stays what it is."""
        return self._is_open and self.is_exact()

    def _peel(self) -> None:
        """Have Python's statement run one round more, which is recorded on its own."""
        if self._is_open:
            self.refuse(self.why)
        self._peeled = True
        self.rec.reset(self.mark)
        self.source.open.pop()
        self.hand_back()
        self._state, self._rounds = PYTHON, 1
