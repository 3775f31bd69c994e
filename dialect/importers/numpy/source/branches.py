"""``if`` statements: `scf.if` where the condition is known only at run time, else Python's own."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....ir.dtypes import F64
from ....ir.op import op_named
from ....ir.program import Block, Instr
from ....ir.types import ScalarType, TensorType
from ..python.pausing import apart
from ..tracing.current import trace_error, user_loc
from ..tracing.mutation import is_immutable
from ..tracing.operators import as_value, op, wrap
from ..tracing.traced import TracedArray
from ..tracing.traced_control import cond, join_hints, truth
from . import widening
from .carried_places import Moved
from .decisions import Key
from .names import UNBOUND, Site, is_carried, same
from .trial import Trial, own

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder
    from .source import ConvertedSource


class Taken:
    """An ``if`` whose condition is Python's."""

    puts = None

    def __init__(self, condition: bool) -> None:
        self._condition = condition

    def then(self) -> bool:
        """True if the first branch runs."""
        return self._condition

    def other(self) -> bool:
        """True if the second branch runs."""
        return not self._condition

    def end(self) -> bool:
        """True if the names get new values."""
        return False


class Branches(Trial):
    """An ``if`` of which both branches are recorded, one after the other."""

    is_loop = False

    def __init__(self, source: ConvertedSource, site: Site, key: Key, frame: types.FrameType, condition: Any) -> None:
        super().__init__(source, site, key, frame)
        self._condition = truth(self.rec, condition)
        self.mark = self.rec.mark()
        self._blocks: list[Block] = []
        self._held: list[dict[str, Any]] = []
        self._moved: list[dict[Any, Moved]] = []

    # --- asked by converted code ----------------------------------------------------------------

    def then(self) -> bool:
        """Record the first branch."""
        self.source.open.append(self)
        apart(self._enter, sys._getframe(1))
        return True

    def other(self) -> bool:
        """Record the second branch, from what names hold before the statement."""
        apart(self._turn, sys._getframe(1))
        return True

    def end(self) -> bool:
        """Record the statement, and hand its results to the names."""
        apart(self._end, sys._getframe(1))
        return True

    def _turn(self, frame: types.FrameType) -> None:
        self._leave(frame)
        self._enter(frame)

    def _end(self, frame: types.FrameType) -> None:
        self._leave(frame)
        self.source.open.pop()
        self.results(self._joined())

    def _enter(self, frame: types.FrameType) -> None:
        # What one branch knows of arrays that it has written does not hold in the other.
        for value in self.unknown:
            self.rec.known.pop(value, None)
        self._blocks.append(Block())
        self.enter(self._blocks[-1], ())
        # The second branch runs in a frame whose names are still those of the first.
        self.note(frame)

    def _leave(self, frame: types.FrameType) -> None:
        if self.source.open[-1] is not self:
            self.source.refuse(self.source.open[-1], "a jump leaves it")
        changed = self.changed(frame)
        self.forgotten()
        self._held.append({**(self.puts or {}), **changed})
        self._moved.append(self.moved)
        self.leave()

    # --- results --------------------------------------------------------------------------------

    def _joined(self) -> dict[str, Any]:
        """The values of the names behind the statement."""
        rec = self.rec
        behind: dict[Any, Any] = {}
        pairs: dict[tuple[Any, int | None], list[Any]] = {}  # by name, and place in a tuple
        for name in self.site.after:
            sides = [variables[name] for variables in self._held]
            if same(*sides):
                behind[name] = sides[0]
            elif all(map(is_carried, sides)):
                pairs[name, None] = sides
            elif _are_tuples(*sides):
                pairs.update({(name, k): list(pair) for k, pair in enumerate(zip(*sides, strict=True))})
            elif any(side is UNBOUND for side in sides):
                self.refuse(f"{name} may be unbound behind it")
            else:
                kinds = " and ".join(type(side).__name__ for side in sides)
                self.refuse(f"{name} is of type {kinds} behind its branches")
        placed = self._placed()
        pairs.update({(moved.place.id, None): sides for moved, sides in placed})
        names = {moved.place.id: moved.place.name for moved, _ in placed}
        outputs: list[list[int]] = [[], []]
        hints: list[Any] = []
        ints: list[int] = []
        weak: list[int] = []
        for (name, _), sides in pairs.items():
            name = names.get(name, name)
            values = [self._value(k, name, side) for k, side in enumerate(sides)]
            side_hints = [rec.hints[value] for value in values]
            hint = _hint(rec, values, self._blocks)
            if hint is None:
                hint = _widened(rec, values, self._blocks)
                ints.append(len(hints))
            if hint is None:
                why = f"{name} has another type in each branch"
                if widening.note(self.source.open, name, [rec.hints[v] for v in values]):
                    self.source.begin_anew(self.key, why)
                self.refuse(why)
            if _may_be_pythons(hint, side_hints):
                weak.append(len(hints))
            hints.append(hint)
            for k, value in enumerate(values):
                outputs[k].append(value)
        results = emit_if(rec, self._condition, self._blocks, outputs, hints, ints, weak)
        for (name, place), result in zip(pairs, results, strict=True):
            behind[name] = result if place is None else (*behind.get(name, ()), result)
        for moved, _ in placed:
            moved.place.put(moved.place.holder, behind.pop(moved.place.id))
        return behind

    def _placed(self) -> list[tuple[Moved, list[Any]]]:
        """The values of attributes and items behind each branch, where one has changed them."""
        pairs = []
        for key, moved in {**self._moved[1], **self._moved[0]}.items():
            sides = [m[key].new if key in m else moved.old for m in self._moved]
            if not all(map(is_carried, sides)):
                self.refuse(f"{moved.place.name} is no array or number behind its branches")
            pairs.append((moved, sides))
        return pairs

    def _value(self, side: int, name: str, held: Any) -> int:
        if type(held) is TracedArray and not held.ndim and not is_immutable(held):
            self.refuse(f"{name} is an array without axes")
        with self.rec.nested(self._blocks[side]):
            value = as_value(self.rec, own(self.rec, held))
            self.rec.check_visible(value)
        return value


def _are_tuples(a: Any, b: Any) -> bool:
    """True for tuples of as many values that a loop may carry."""
    return type(a) is type(b) is tuple and len(a) == len(b) > 0 and all(map(is_carried, (*a, *b)))


def choose(rec: Recorder, condition: Any, then: Any, other: Any) -> Any:
    """``then() if condition else other()``, of which both are recorded.

    Raises TraceError where the two are of different types.
    """
    chosen = apart(truth, rec, condition)
    blocks, sides = (Block(), Block()), []
    for block, side in zip(blocks, (then, other), strict=True):
        with rec.nested(block):
            sides.append(side())
    if not all(map(is_carried, sides)):
        return cond(condition, then, other)
    return apart(_chosen, rec, chosen, blocks, sides)


def _chosen(rec: Recorder, condition: int, blocks: tuple[Block, Block], sides: list[Any]) -> Any:
    """The result of `choose` for the results of both sides."""
    values = []
    for block, value in zip(blocks, sides, strict=True):
        with rec.nested(block):
            values.append(as_value(rec, value))
    ints: tuple[int, ...] = ()
    side_hints = [rec.hints[value] for value in values]
    hint = _hint(rec, values, blocks)
    if hint is None:
        hint, ints = _widened(rec, values, blocks), (0,)
    if hint is None:
        raise trace_error("a conditional expression has values of different types")
    weak = (0,) if _may_be_pythons(hint, side_hints) else ()
    return emit_if(rec, condition, blocks, [[values[0]], [values[1]]], [hint], ints, weak)[0]


def emit_if(
    rec: Recorder,
    condition: int,
    blocks: Sequence[Block],
    outputs: list[list[int]],
    hints: list,
    ints: Sequence[int] = (),
    weak: Sequence[int] = (),
) -> list[Any]:
    """Record `scf.if` and return its results.

    ``ints``: which may be ints in Python; ``weak``: which may be numbers of Python's at all.
    """
    for block, values in zip(blocks, outputs, strict=True):
        block.outputs = tuple(values)
    results = tuple(rec.new_value(hint) for hint in hints)
    if rec.source is not None:
        rec.source.ints.update(results[k] for k in ints)
        rec.source.weak.update(results[k] for k in weak)
    instr = Instr(op_named("scf.if"), (condition,), results, {}, tuple(blocks), user_loc())
    rec.append(instr)
    rec.scalars.update(r for r, h in zip(results, hints, strict=True) if not rec.shape(r))
    return [wrap(rec, r) for r in results]


def _hint(rec: Recorder, values: list[int], blocks: Sequence[Block]) -> Any:
    """The type of a result, None if there is none; a Python float becomes an `np.float64`."""
    hints = [rec.hints[value] for value in values]
    joined = join_hints(*hints)
    if joined is not None:
        return joined
    if rec.source is not None and rec.source.decisions.floats_matter:
        return None
    for k, (mine, other) in enumerate(zip(hints, hints[::-1], strict=True)):
        if (
            isinstance(mine, ScalarType)
            and isinstance(other, TensorType)
            and mine.dtype is F64
            and other.dtype is F64
            and other.shape == ()
        ):
            with rec.nested(blocks[k]):
                values[k] = op("cast", wrap(rec, values[k]), dtype=F64).value
            return other
    return None


def _may_be_pythons(hint: Any, side_hints: Sequence[Any]) -> bool:
    """True of a NumPy scalar of which one branch has a number of Python's."""
    return isinstance(hint, TensorType) and any(isinstance(h, ScalarType) for h in side_hints)


def _widened(rec: Recorder, values: list[int], blocks: Sequence[Block]) -> Any:
    """The type of a result of which one branch names an int, and the other has a float."""
    if rec.source is None or rec.source.decisions.ints_matter:
        return None
    for k, other in enumerate(values[::-1]):
        constant = widening.constant(rec, values[k], rec.hints[other])
        if constant is not None:
            with rec.nested(blocks[k]):
                values[k] = as_value(rec, constant)
            return _hint(rec, values, blocks)
    return None
