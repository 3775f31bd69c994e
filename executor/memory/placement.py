"""Places in one block for arrays that come and go: live ones lie apart, dead ones make room.

A *size* is an int, ``("dim", ref, axis)`` or ``(operator, size, size)``; what a *ref* is, only who
reads the size has to know. Sizes may be expressions; so are then the places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Union

from ...dialect.ir.symbolic import BINARY, Dim
from .output_pool import ALIGNMENT

Size = Union[int, tuple]
_MOST_SIZES = 8  # that share a place without one being known to be the largest: readers recurse
_TOO_LONG = 4


class Refused(Exception):
    """What cannot be planned before a call; the text says why."""


class Moment(NamedTuple):
    """One step of what runs: values that it makes, and values that nothing after it reads."""

    made: Iterable[int]
    dead: Iterable[int]


@dataclass(frozen=True)
class Placement:
    """Where in the block arrays lie.

    Attributes:
        where: value -> number of its place.
        rooms: bytes per place, multiples of `arrays.ALIGNMENT`.
    """

    where: Mapping[int, int] = field(default_factory=dict)
    rooms: tuple[Size, ...] = ()

    @cached_property
    def _starts(self) -> list[Size]:
        starts: list[Size] = [0]
        for room in self.rooms:
            starts.append(plus(starts[-1], room))
        return starts

    @property
    def offsets(self) -> dict[int, Size]:
        """Value -> bytes from the start of the block."""
        return {value: self._starts[place] for value, place in self.where.items()}

    @property
    def total(self) -> Size:
        """Bytes of the block; 0 = no array needs a place."""
        return self._starts[-1]


def lay_out(moments: Iterable[Moment], nbytes: Mapping[int, Size]) -> Placement:
    """Places for the values that have an entry in ``nbytes``.

    Two share memory only if the one is dead before the moment that makes the other: kernels are
    compiled for outputs that overlap no input.
    """
    rooms: list[Size] = []
    free: list[int] = []
    where: dict[int, int] = {}
    for moment in moments:
        for value in moment.made:
            if value in nbytes:
                where[value] = _take(nbytes[value], rooms, free)
        free += [where[value] for value in moment.dead if value in where]
    return Placement(where, tuple(map(_aligned, rooms)))


def _take(size: Size, rooms: list[Size], free: list[int]) -> int:
    """A free place for so many bytes, made bigger if need be, or a new one."""
    found = min(free, key=lambda k: _misfit(rooms[k], size), default=None)
    if found is None or _misfit(rooms[found], size)[0] == _TOO_LONG:
        rooms.append(size)
        return len(rooms) - 1
    free.remove(found)
    rooms[found] = larger(rooms[found], size)
    return found


def _misfit(room: Size, size: Size) -> tuple[int, int]:
    """How badly a place fits: the least waste first, then the least growth, unknown ones last."""
    if room == size:
        return 0, 0
    if isinstance(room, int) and isinstance(size, int):
        return (1, room - size) if room > size else (2, size - room)
    known = _alternatives(room)
    if size in known:
        return 1, 0
    return (3, len(known)) if len(known) < _MOST_SIZES else (_TOO_LONG, 0)


def _alternatives(room: Size) -> list[Size]:
    """The sizes of which a place has the largest."""
    found = []
    while isinstance(room, tuple) and room[0] == "max":
        _, room, last = room
        found.append(last)
    return [*found, room]


def larger(a: Size, b: Size) -> Size:
    """The larger of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a if b in _alternatives(a) else ("max", a, b)


def plus(a: Size, b: Size) -> Size:
    """The sum of two sizes."""
    return a + b if isinstance(a, int) and isinstance(b, int) else ("+", a, b)


def _aligned(size: Size) -> Size:
    if isinstance(size, int):
        return -(-size // ALIGNMENT) * ALIGNMENT
    return "*", ("//", ("+", size, ALIGNMENT - 1), ALIGNMENT), ALIGNMENT


def bytes_of(itemsize: int, sizes: Sequence[Size]) -> Size:
    """Bytes of an array."""
    known, rest = itemsize, []
    for size in sizes:
        if isinstance(size, int):
            known *= size
        else:
            rest.append(size)
    total: Size = known
    for size in rest:
        total = ("*", total, size)
    return total if known else 0


def size_of(dim: Dim, symbols: Mapping[str, Size]) -> Size:
    """A size expression over symbols that stand for sizes; raises Refused."""
    if isinstance(dim, int):
        return dim

    def binary(op: str, a: Size, b: Size) -> Size:
        if op in ("//", "%") and not (isinstance(b, int) and b > 0):
            raise Refused(f"a size is divided by another one ({dim})")
        return BINARY[op](a, b) if isinstance(a, int) and isinstance(b, int) else (op, a, b)

    try:
        return dim.fold(lambda name: symbols[name], int, binary)
    except KeyError as error:
        raise Refused(f"size symbol {error} is not bound") from None
