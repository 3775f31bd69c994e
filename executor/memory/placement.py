"""Places in one block for arrays that come and go: live ones lie apart, dead ones make room.

Sizes may be expressions (`dialect.ir.symbolic`), whose leaves only their readers have to know; so
are then the places.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from ...dialect.errors import ShapeError
from ...dialect.ir.size_algebra import OPERATORS, sym_max
from ...dialect.ir.symbolic import Dim
from .output_pool import ALIGNMENT

_MOST_SIZES = 8  # that share a place without one being known to be the largest: readers recurse
_GROWS, _UNKNOWN, _TOO_LONG = 2, 3, 4  # of how places fit, see `_misfit`


class Refused(Exception):
    """What cannot be planned before a call; the text says why."""


class Moment(NamedTuple):
    """One step of what runs: values that it makes, and values that nothing after it reads."""

    made: Iterable[int]
    dead: Iterable[int]


@dataclass(frozen=True)
class Placement:
    """Where in the block arrays lie: place after place.

    Attributes:
        where: value -> number of its place.
        rooms: bytes per place, multiples of `output_pool.ALIGNMENT`.
    """

    where: Mapping[int, int] = field(default_factory=dict)
    rooms: tuple[Dim, ...] = ()

    @property
    def total(self) -> int | None:
        """Bytes of the block if they are known before a call; 0 = no array needs a place."""
        known = [room for room in self.rooms if isinstance(room, int)]
        return sum(known) if len(known) == len(self.rooms) else None


def lay_out(moments: Iterable[Moment], nbytes: Mapping[int, Dim]) -> Placement:
    """Places for the values that have an entry in ``nbytes``.

    Two share memory only if the one is dead before the moment that makes the other: kernels are
    compiled for outputs that overlap no input. Raises ShapeError for sizes that are too long.
    """
    rooms: list[list[Dim]] = []  # per place sizes, of which it has the largest
    free: list[int] = []
    where: dict[int, int] = {}
    for moment in moments:
        for value in moment.made:
            if value in nbytes:
                where[value] = _take(nbytes[value], rooms, free)
        free += [where[value] for value in moment.dead if value in where]
    return Placement(where, tuple(_aligned(reduce(sym_max, sizes)) for sizes in rooms))


def _take(size: Dim, rooms: list[list[Dim]], free: list[int]) -> int:
    """A free place for so many bytes, made bigger if need be, or a new one."""
    found = min(free, key=lambda k: _misfit(rooms[k], size), default=None)
    kind = _TOO_LONG if found is None else _misfit(rooms[found], size)[0]
    if found is None or kind == _TOO_LONG:
        rooms.append([size])
        return len(rooms) - 1
    free.remove(found)
    if kind == _GROWS:
        rooms[found] = [size]
    elif kind == _UNKNOWN:
        rooms[found].append(size)
    return found


def _misfit(room: list[Dim], size: Dim) -> tuple[int, int]:
    """How badly a place fits: the least waste first, then the least growth, unknown ones last."""
    if room == [size]:
        return 0, 0
    if isinstance(room[0], int) and isinstance(size, int) and len(room) == 1:
        return (1, room[0] - size) if room[0] > size else (_GROWS, size - room[0])
    if size in room:
        return 1, 0
    return (_UNKNOWN, len(room)) if len(room) < _MOST_SIZES else (_TOO_LONG, 0)


def _aligned(size: Dim) -> Dim:
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def bytes_of(itemsize: int, sizes: Sequence[Dim]) -> Dim:
    """Bytes of an array; raises ShapeError if that is too long an expression."""
    return math.prod(sizes, start=itemsize)


def size_of(dim: Dim, symbols: Mapping[str, Dim]) -> Dim:
    """A size expression over symbols that stand for sizes.

    Raises Refused for divisors that are no positive literals, and what cannot be written down.
    """
    if isinstance(dim, int):
        return dim

    def binary(op: str, a: Dim, b: Dim) -> Dim:
        if op in ("//", "%") and not (isinstance(b, int) and b > 0):
            raise Refused(f"a size is divided by another one ({dim})")
        return OPERATORS[op](a, b)

    try:
        return dim.fold(symbols.__getitem__, int, binary)
    except KeyError as error:
        raise Refused(f"size symbol {error} is not bound") from None
    except ShapeError as error:
        raise Refused(error.what) from None
