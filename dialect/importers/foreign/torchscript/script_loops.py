"""``prim::Loop``: rounds that are known while tracing one by one, all others as `scf.for` and `scf.while`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....errors import TraceError
from ....ir.program import Block
from ...numpy.source.branches import choose
from ...numpy.source.growing import GrowingList
from ...numpy.tracing.current import current, trace_error
from ...numpy.tracing.operators import Recording, as_value, op, wrap
from ...numpy.tracing.recorder import Recorder
from ...numpy.tracing.traced_control import fori_loop, truth, unknown_number, while_loop
from ..interpreter import NodeContext
from .carried_structures import UNINITIALIZED, Structure, built, joined
from .script_branches import any_of, exits_of, is_open
from .script_containers import Appended, ScriptList
from .script_table import script

_ROUNDS = 16  # that are recorded one by one where the policy of the trace does not say
_MOST_ROUNDS = 4096
_ATTEMPTS = 3  # rounds before which a loop is tried, as a first one may change types
_ENDLESS = 2**62
_PASSES = 8  # of a body, until it is known what it appends to lists


@script("prim::Loop")
def loop(call: NodeContext, trip: Any, condition: Any, *carried: Any) -> Any:
    """What is carried, behind the last round."""
    behind = _Loop(call, trip).run(condition, carried)
    return behind[0] if len(call.node.results) == 1 else behind


class _Loop:
    """A loop whose rounds run one by one until the rest is recorded.

    Args:
        call: the node.
        trip: the most rounds.
    """

    def __init__(self, call: NodeContext, trip: Any) -> None:
        self._call, self._trip = call, trip
        self._rec = current()
        self._is_counted = call.node.blocks[0].outputs[0] is True
        self._has_decided = False  # its rounds are recorded one by one

    def run(self, condition: Any, carried: tuple[Any, ...]) -> tuple[Any, ...]:
        """What is carried behind the last round, from these values on."""
        number, attempts = 0, 0
        refusal: TraceError | None = None
        while True:
            if attempts < _ATTEMPTS and self._wants_record(condition, number):
                try:
                    return self._recorded(condition, carried, number)
                except TraceError as error:
                    if is_open(condition) or is_open(self._trip):
                        raise
                    refusal, attempts = refusal or error, attempts + 1
            if not condition or not bool(number < self._trip):
                return carried
            if number >= _MOST_ROUNDS:
                raise refusal or trace_error(f"a loop has more than {number} rounds, which are recorded one by one")
            try:
                condition, *rest = self._call.run_block(0, number, *carried)
            except Appended as error:
                raise refusal or error from None
            carried, number = tuple(rest), number + 1

    def _wants_record(self, condition: Any, number: int) -> bool:
        if self._rec is None:
            return False
        if isinstance(condition, Recording) or isinstance(self._trip, Recording):
            return True
        policy = self._rec.policy
        most = _ROUNDS if policy is None else policy.rounds
        left = self._trip - number if self._is_counted else number
        return bool(condition) and left > most

    def _recorded(self, condition: Any, carried: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        rec, call = self._rec, self._call
        assert rec is not None
        mark, exits = rec.mark(), dict(rec.source.exits.held) if rec.source is not None else {}
        statements = list(call.interpreter.statements)
        rounds = RecordedRounds(call, rec, self._trip, number, self._is_counted and condition is True)
        try:
            return rounds.run(condition, carried)
        except TraceError:
            rec.reset(mark)
            call.interpreter.statements[:] = statements
            rounds.give_back()
            if rec.source is not None:
                rec.source.exits.held.clear()
                rec.source.exits.held.update(exits)
            raise


class RecordedRounds:
    """The rounds of a loop that are recorded as one body.

    Args:
        call: the node.
        rec: the trace.
        trip: the most rounds.
        first: the number of the first round.
        is_counted: nothing but ``trip`` ends the loop.
    """

    is_loop = True

    def __init__(self, call: NodeContext, rec: Recorder, trip: Any, first: int, is_counted: bool) -> None:
        self._call, self.rec, self._trip, self._first = call, rec, trip, first
        self.may_be_left = not is_counted
        self.depth = len(rec.blocks)
        self._index: Any = first
        self._grown: list[ScriptList] = []

    # --- what lists ask -------------------------------------------------------------------------

    @property
    def statements(self) -> Sequence[Any]:
        """The statements that are being recorded, the innermost one last."""
        return self._call.interpreter.statements

    def number(self) -> Any:
        """The number of the round that is being recorded, from 0."""
        return self._index - self._first if self._first else self._index

    def wants_first(self) -> bool:
        """Have the first round recorded on its own, which the loop does behind a refusal."""
        if any(len(grown.items) for grown in self._grown):
            return False
        return bool(self.refuse("the first round tells what a list holds to which rounds append"))

    def choose(self, condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """``then() if condition else other()``."""
        return choose(self.rec, condition, then, other) if is_open(condition) else then() if condition else other()

    def refuse(self, why: str) -> Any:
        """Have the rounds recorded one by one."""
        raise trace_error(f"the loop is no loop of a graph: {why}")

    def give_back(self) -> None:
        """Have lists be what they were before the loop."""
        for grown in self._grown:
            grown.growing = None

    # --- recording ------------------------------------------------------------------------------

    def run(self, condition: Any, carried: tuple[Any, ...]) -> tuple[Any, ...]:
        """What is carried behind the last round."""
        for _ in range(_PASSES):
            mark = self.rec.mark()
            self._make_lists()
            try:
                behind = self._pass(condition, carried)
            except Appended as error:
                # One from farther out grows in the statements between as well.
                if error.grown.growing is not None or not error.grown.is_of(self.rec.blocks[self.depth - 1]):
                    raise
                self._grow(error.grown)
            else:
                if not any(grown.growing.is_stale for grown in self._grown if grown.growing is not None):
                    self._close()
                    return behind
            self.rec.reset(mark)
            self._call.interpreter.statements[:] = self._call.interpreter.statements[: self._outer]
        self.refuse("what it appends to a list changes from round to round")
        raise AssertionError

    def _grow(self, grown: ScriptList) -> None:
        self._grown.append(grown)
        grown.growing = GrowingList(self, "a list", grown.items)

    def _make_lists(self) -> None:
        self._outer = len(self._call.interpreter.statements)
        if self._grown and type(self._trip) is int and self._trip >= _ENDLESS:
            self.refuse("nobody knows before it how many elements it appends to a list")
        for grown in self._grown:
            assert grown.growing is not None
            rounds = self._trip - self._first if self._first else self._trip
            grown.growing.make(rounds)

    def _close(self) -> None:
        for grown in self._grown:
            assert grown.growing is not None
            if not grown.growing.arrays:
                self.refuse("nothing is known of what it appends to a list")
            grown.growing.close()

    def _pass(self, condition: Any, carried: tuple[Any, ...]) -> tuple[Any, ...]:
        """Record the loop once."""
        exits = exits_of(self.rec, self._call.node.blocks)
        start = (*carried, *exits.values())
        leaves: list[tuple[Any, ...]] = []
        structure = [joined((value,), leaves) for value in start]
        if any(value is UNINITIALIZED for value in _parts(start)):
            structure, leaves = self._initialized(condition, start)
        init = tuple(leaf for (leaf,) in leaves)
        self._call.interpreter.statements.append(self)
        if self.may_be_left:
            behind = self._while(condition, structure, init)
        else:
            trip = self._trip if self.rec.source is None else self.rec.source.exits.bounded(self._trip)
            behind = fori_loop(self._first, trip, lambda i, values: self._round(i, structure, values)[1], init)
        self._call.interpreter.statements.pop()
        values = tuple(built(part, behind) for part in structure)
        exits.update(zip(exits, values[len(carried) :], strict=True))
        return values[: len(carried)]

    def _while(self, condition: Any, structure: Sequence[Structure], init: tuple[Any, ...]) -> Any:
        is_endless = type(self._trip) is int and self._trip >= _ENDLESS
        source = self.rec.source

        def goes_on(state: tuple[Any, ...]) -> Any:
            index, test, leaves = state
            holds = test if is_endless else op("bitwise_and", op("lt", index, self._trip), test)
            if source is None:
                return holds
            self._hold_exits(tuple(built(part, leaves) for part in structure))
            return source.exits.also(holds)

        def round_(state: tuple[Any, ...]) -> tuple[Any, ...]:
            index, _, values = state
            test, behind = self._round(index, structure, values)
            return index + 1, wrap(self.rec, truth(self.rec, test)), behind

        if isinstance(condition, Recording):
            condition = wrap(self.rec, truth(self.rec, condition))
        return while_loop(goes_on, round_, (self._first, condition, init))[2]

    def _round(self, index: Any, structure: Sequence[Structure], leaves: Any) -> tuple[Any, tuple[Any, ...]]:
        """The condition and the leaves behind a round."""
        self._index = index
        for grown in self._grown:
            assert grown.growing is not None
            grown.growing.begin()
        values = tuple(built(part, leaves) for part in structure)
        condition, behind = self._body(index, values)
        pairs: list[tuple[Any, ...]] = []
        parts = [joined((a, b), pairs) for a, b in zip(values, behind, strict=True)]
        if parts != list(structure):
            self.refuse("a value has another structure behind a round")
        # What has no value is not read, so that it may keep the one that it had.
        return condition, tuple(before if after is UNINITIALIZED else after for before, after in pairs)

    def _hold_exits(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Have what a round begins with say whether an exit has been taken."""
        exits = {} if self.rec.source is None else self.rec.source.exits.held
        exits.update(zip(exits, values[len(values) - len(exits) :], strict=True))
        return exits

    def _body(self, index: Any, values: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        exits = self._hold_exits(values)
        count = len(values) - len(exits)
        condition, *behind = self._call.run_block(0, index, *values[:count])
        return condition, (*behind, *exits.values())

    def _initialized(self, condition: Any, start: tuple[Any, ...]) -> tuple[list[Structure], list[tuple[Any, ...]]]:
        """The structure and leaves before the loop, where parts get their first value in a round.

        A round is recorded to find out their types, and dropped.
        """
        mark = self.rec.mark()
        self._call.interpreter.statements.append(self)
        block = Block()
        with self.rec.nested(block):
            inner: list[tuple[Any, ...]] = []
            parts = [joined((value,), inner) for value in start]
            values = [self._unknown(value) for (value,) in inner]
            self._index = self._unknown(self._first)
            _, behind = self._body(self._index, tuple(built(part, values) for part in parts))
            pairs: list[tuple[Any, ...]] = []
            structure = [joined(pair, pairs) for pair in zip(start, behind, strict=True)]
            types = [self.rec.hints[as_value(self.rec, b)] if a is UNINITIALIZED else None for a, b in pairs]
        self.rec.reset(mark)
        self._call.interpreter.statements.pop()
        exits = {} if self.rec.source is None else self.rec.source.exits.held
        exits.update(zip(exits, start[len(start) - len(exits) :], strict=True))
        self._index = self._first
        return structure, [(a if hint is None else any_of(hint),) for (a, _), hint in zip(pairs, types, strict=True)]

    def _unknown(self, value: Any) -> Any:
        """A value of which a body knows no more than in any other round; that of a tensor is as good."""
        if value is UNINITIALIZED or hasattr(value, "ndim"):
            return value
        hint = unknown_number(self.rec.hints[as_value(self.rec, value)])
        return wrap(self.rec, self.rec.new_value(hint))


def _parts(values: Sequence[Any]) -> list[Any]:
    """All values, those in tuples and lists included."""
    values_within: list[Any] = []
    for value in values:
        values_within.append(value)
        if type(value) is tuple or (type(value) is ScriptList and value.growing is None):
            values_within += _parts(tuple(value))
    return values_within
