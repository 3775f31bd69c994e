"""Running a statement's body once on traced values: a trial, which is repeated until it is right.

The first trial hands the body the values that its names have. What it binds anew, and is read
later, is carried from then on, as arguments of a block. A trial that changes anything else of
Python is refused, see `snapshot`.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from ....errors import TraceError
from ....ir.dtypes import C128, F64, I64
from ....ir.op import op_named
from ....ir.program import Block, Instr
from ....ir.types import ScalarType, TensorType
from ....trees.pytree import flatten
from ..tracing.current import user_loc
from ..tracing.mutation import is_immutable
from ..tracing.operators import Recording, op
from ..tracing.traced import TracedArray
from ..tracing.traced_control import Carry, own_arguments
from . import carried_places as places
from . import widening
from .carried_places import CarriedPlaces, Moved
from .decisions import Key
from .names import UNBOUND, Site, may_carry, read, same
from .object_snapshot import ObjectSnapshot

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder
    from .source import ConvertedSource

_TRIALS = 12


class Trial:
    """The trials of one statement that is recorded.

    Args:
        source: of the trace.
        site: the statement.
        key: the same, for decisions.
        frame: of the function that runs it.
        given: names that the statement binds itself, as targets of a ``for``.

    Attributes:
        puts: values that names get before a round, or behind the statement; None = none. A name
            that Python would not have bound there gets `unbound`, and is deleted.
        start: what names hold before the statement.
    """

    def __init__(
        self, source: ConvertedSource, site: Site, key: Key, frame: types.FrameType, given: frozenset[str] = frozenset()
    ) -> None:
        self.source, self.rec = source, source.rec
        self.site, self.key, self.given = site, key, given
        self.frame = id(frame)  # which stays one frame's as long as the statement runs
        self.puts: dict[str, Any] | None = None
        # A variable that Python has not bound here may hold what an earlier trial has computed.
        self.start = {
            name: value
            for name, value in read(frame, site.names).items()
            if not isinstance(value, Recording) or self.rec.is_visible(value.value)
        }
        self.ints = widening.begin(self) if self.is_loop else {}
        self.live = frozenset(site.head) | frozenset(site.after)
        self.names = tuple(n for n in source.decisions.carried.get(key, ()) if n in self.start)  # carried ones
        self.runs_python = False  # the round that runs now is recorded on its own
        self.peels = False  # the first round is to be recorded on its own
        self.why = ""
        self.carry: Carry | None = None
        self.mark = self.rec.mark()
        self.unknown: set[int] = set()  # numbers that a round has changed
        self.trials = 0
        self.extra: dict[str, Any] = {}  # what is carried besides, by names that are none
        self.snapshot: ObjectSnapshot | None = None
        self.places = CarriedPlaces()
        self.moved: dict[places.Key, Moved] = {}  # by the round that has run last
        self.fixed: dict[str, Any] = {}  # objects from before it, which a round leaves in names
        self.depth = len(self.rec.blocks)
        self.refused = self.rec.refused
        self.undecided: set[int] = set()  # carried leaves, from the end, that may stay ints

    is_loop: ClassVar[bool] = True
    unbound: ClassVar[object] = UNBOUND

    @property
    def runs_each_round_once(self) -> bool:
        """True for a loop whose number of rounds is known before it; see `Loop`."""
        return False

    # --- one trial ------------------------------------------------------------------------------

    def note(self, frame: types.FrameType) -> None:
        """Remember what Python holds before a round."""
        free = frozenset(self.site.names) | frozenset(self.site.lists)
        self.snapshot = ObjectSnapshot(self.rec, frame.f_locals, free)

    def arguments(self) -> tuple[int, ...]:
        """Forget the last trial, and make the arguments of a block for the names carried."""
        rec = self.rec
        self.trials += 1
        if self.trials > _TRIALS:
            self.refuse("its variables change their types from round to round")
        rec.reset(self.mark)
        for value in self.unknown:
            rec.known.pop(value, None)
        self.places.hand_back()
        if not self.names and not self.places:
            self.carry = None
            return ()
        if self.carry is None:
            inits = {**self.extra, **self.places.start, **{n: self.start[n] for n in self.names}}
            leaves, tree = flatten(inits)
            self.carry = Carry(rec, leaves, tree, "the loop")
            self.mark = rec.mark()  # constants among the initial values stay
        return self.carry.arguments()

    def enter(self, block: Block, args: tuple[int, ...]) -> None:
        """Record into a block, whose last arguments are ``args``; hand the names to the body."""
        rec = self.rec
        rec.blocks.append(block)
        own_arguments(rec, block)
        self.hand_back()
        assert self.puts is not None
        if self.carry is not None:
            values = self.carry.value(args)
            rec.scalars.update(
                a for a, h in zip(args, self.carry.hints, strict=True) if isinstance(h, TensorType) and not h.shape
            )
            self.given_extra = {n: values[n] for n in self.extra}
            self.puts.update({n: values[n] for n in self.names})
            self.places.hand(values)

    def changed(self, frame: types.FrameType) -> dict[str, Any]:
        """The values of names after a round, where they are not those before it.

        Refuses rounds that do what no recorded round can repeat.
        """
        rec, variables = self.rec, frame.f_locals
        if len(rec.blocks) != self.depth + 1:
            self.refuse("a jump leaves a branch whose condition is known at run time only")
        if rec.refused is not self.refused:
            self.refuse(rec.refused.what if rec.refused else "an error is caught in it")
        assert self.snapshot is not None and self.puts is not None
        self.fixed = {
            n: variables[n]
            for n in self.site.names
            if n in self.live
            and not (n in self.site.head and n in self.start)
            and n not in self.given
            and n in variables
            and not may_carry(variables[n])
            and self.snapshot.is_outer(variables[n])
        }
        self.moved = self.snapshot.moved(self.places.given)
        changed = self.snapshot.changed(variables)
        if changed:
            self.refuse(f"{changed} is changed by a round")
        out = {}
        for name in self.site.names:
            if name not in self.live or (name in self.given and name not in self.site.changed):
                continue
            if name not in variables:
                if name in self.start:
                    self.refuse(f"{name} is deleted by a round")
                continue
            if name not in self.puts or not same(variables[name], self.puts[name]):
                out[name] = variables[name]
        return out

    def forgotten(self) -> bool:
        """True if a round has written numbers that were known: the trial took them as given."""
        lost = self.mark.known.keys() - self.rec.known.keys() - self.unknown
        self.unknown |= lost
        return bool(lost)

    def fit(self, changed: dict[str, Any], frame: types.FrameType) -> tuple[int, ...] | None:
        """The values that the body yields for the names carried; None if it has to be run anew."""
        again = self.forgotten()
        for moved in self.moved.values():
            if moved.place in self.places:
                continue
            if not may_carry(moved.old):
                kind = type(moved.old).__name__
                return self.peel(f"{moved.place.name} is an object of type {kind} before it")
            self.places.add(moved)
            self.carry, again = None, True
        for name, value in changed.items():
            if name in self.fixed:
                continue
            if not may_carry(value):
                self.refuse(f"{name} becomes an object of type {type(value).__name__}")
            if name in self.names:
                continue
            if name not in self.start:
                return self.peel(f"{name} is unbound before it")
            if not may_carry(self.start[name]):
                kind = type(self.start[name]).__name__
                return self.peel(f"{name} is an object of type {kind} before it")
            self.names, self.carry, again = (*self.names, name), None, True
        self.source.decisions.carried[self.key] = self.names
        if again:
            return None
        if self.carry is None:
            return ()
        variables = frame.f_locals
        rec = self.rec
        values = {**self.advanced(), **self.places.values(self.moved), **{n: variables[n] for n in self.names}}
        for name, value in values.items():
            if any(type(leaf) is TracedArray and not leaf.ndim and not is_immutable(leaf) for leaf in _leaves(value)):
                self.refuse(f"{name} is an array without axes")
            values[name] = own(rec, value)
        try:
            outputs = self.carry.collect(values)
        except TraceError as error:
            return self.peel(error.what)
        if outputs is not None and not self.carry.is_steady():
            return self.peel("its variables change their types from round to round")
        return outputs

    def advanced(self) -> dict[str, Any]:
        """The values of `extra` after a round."""
        return {}

    @property
    def stops(self) -> bool:
        """True if the loop may be left by a `break` under a traced condition."""
        return self.site.stop in self.names

    def goes_on(self) -> Any:
        """True while the loop has not been left, as a traced value."""
        assert self.puts is not None
        return op("eq", self.puts[self.site.stop or ""], False)

    def peel(self, why: str) -> Any:
        """Record the first round on its own, as its variables have other types than later ones."""
        if self.peels:
            self.refuse(why)
        self.peels, self.names, self.carry = True, (), None
        self.places.forget()
        self.why = why

    # --- afterwards -----------------------------------------------------------------------------

    def leave(self) -> None:
        """Stop recording into the block."""
        self.rec.blocks.pop()

    def emit(self, name: str, bounds: tuple[int, ...], blocks: tuple[Block, ...]) -> dict[str, Any]:
        """Record the loop itself; returns what the names carried hold behind it."""
        if self.carry is not None:
            values = self.carry.emit(name, [*bounds, *self.carry.inits], blocks)
            results = self.rec.blocks[-1].instrs[-1].results
            self.source.ints.update(results[-place] for place in self.undecided)
            return values
        self.rec.append(Instr(op_named(name), bounds, (), {}, blocks, user_loc()))
        return {}

    def check_ints(self, blocks: tuple[Block, ...]) -> None:
        """Refuse a loop that tells the ints of Python's that are floats here (`widening`)."""
        if self.carry is None:
            return
        names = [name for name in self.ints if name in self.names]
        order = [*sorted(self.extra), *self.places.start, *self.names]
        places = [len(order) - order.index(name) for name in names]
        if names:
            widening.check(self.rec, blocks, places, names, self.refuse)
        hints = [self.rec.hints[init] for init in self.carry.inits]
        widened = widening.widened(hints, self.carry.hints)
        why, self.undecided = widening.undecided(self.rec, blocks, {*places, *widened})
        if why is None and self.undecided and self.source.decisions.ints_matter:
            why = "that matters behind the loop"
        if why is not None:
            self.refuse(f"a variable is an int before it is a float, and {why}")

    def results(self, values: dict[str, Any]) -> None:
        """Hand the results to the names."""
        for name, start in self.ints.items():
            if name in values and name in self.site.after:
                values[name] = widening.changed(values[name], start, name)
        placed = tuple(self.places.take(values))
        for value in _leaves((*placed, *values.values())):
            if type(value) is TracedArray and not value.ndim:
                self.rec.scalars.add(value.value)
        self.puts = {**self._held_before(self.live), **values, **self.fixed}

    def needs_a_round(self) -> bool:
        """True if variables have the types of Python's only if there is a round."""
        return self._widened(lenient=False)

    def is_exact(self) -> bool:
        """True if without a round variables hold numbers equal to Python's, of another class."""
        return not self._widened(lenient=True)

    def _widened(self, lenient: bool) -> bool:
        if self.carry is None:
            return False
        for init, hint in zip(self.carry.inits, self.carry.hints, strict=True):
            have = self.rec.hints[init]
            if type(have) is type(hint) and have.dtype is hint.dtype:  # type: ignore[union-attr]
                continue
            dtype = have.dtype if isinstance(have, ScalarType) else None
            is_equal = dtype in (F64, C128) and getattr(hint, "dtype", None) is dtype
            if not (lenient and is_equal):
                return True
        return False

    def is_safe(self) -> bool:
        """False if a number becomes a NumPy scalar of few bits, which computes otherwise."""
        if self.carry is None:
            return True
        for init, hint in zip(self.carry.inits, self.carry.hints, strict=True):
            have = self.rec.hints[init]
            if isinstance(have, ScalarType) and isinstance(hint, TensorType):
                dtype = hint.dtype
                fits = dtype is not None and (
                    dtype is I64
                    if have.dtype is I64 and dtype.is_int
                    else dtype.is_complex or (dtype.is_float and dtype.numpy.itemsize >= 4)
                )
                if not fits:
                    return False
        return True

    def hand_back(self) -> None:
        """Give the names what they held before the statement, but for those it binds itself."""
        self.puts = self._held_before(self.live - self.given)

    def _held_before(self, names: frozenset[str]) -> dict[str, Any]:
        """The values that some of the names which the statement may bind had before it."""
        return {n: self.start.get(n, UNBOUND) for n in self.site.names if n in names}

    def refuse(self, why: str) -> Any:
        """Start the trace anew, with this statement left to Python."""
        self.source.refuse(self, why)


def own(rec: Recorder, value: Any) -> Any:
    """A value that a block hands on: what is taken out of an array is no view of its memory."""
    if type(value) is tuple:
        return tuple(own(rec, part) for part in value)
    if type(value) is not TracedArray or value.ndim:
        return value
    definition = rec.defs.get(value.value)
    is_view = definition is not None and bool(definition.op.aliases) and not definition.op.writes
    return op("copy", value) if is_view else value


def _leaves(value: Any) -> Iterator[Any]:
    """A value, or what is in a tuple."""
    if type(value) is not tuple:
        yield value
        return
    for part in value:
        yield from _leaves(part)
