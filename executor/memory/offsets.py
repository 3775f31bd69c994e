"""Assigns places in one block to arrays: live arrays do not overlap, dead arrays free their place.

Sizes may be expressions (`dialect.ir.symbolic`) over any kind of leaves; the offsets of places are
then expressions over the same leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from ...dialect.dataclass import dataclass
from ...dialect.errors import ShapeError
from ...dialect.ir.size_algebra import OPERATORS, bounds
from ...dialect.ir.symbolic import Dim, terms_of
from .output_pool import ALIGNMENT


class Refused(Exception):
    """A call cannot be planned in advance; the message says why."""


class Moment(NamedTuple):
    """One step of a plan: the values that it makes, and those that it makes or reads."""

    outputs: Iterable[int]
    touched: Collection[int]


@dataclass(frozen=True)
class Placement:
    """The places of arrays in a block; the places follow one another without gaps.

    Attributes:
        where: value -> number of its place.
        rooms: bytes of each place, multiples of `output_pool.ALIGNMENT`.
    """

    where: Mapping[int, int] = field(default_factory=dict)
    rooms: tuple[Dim, ...] = ()

    @property
    def total(self) -> int | None:
        """Bytes of the block; None if sizes are only known at a call; 0 = no array has a place."""
        rooms = [room for room in self.rooms if isinstance(room, int)]
        return sum(rooms) if len(rooms) == len(self.rooms) else None


def lay_out(
    moments: Sequence[Moment], nbytes: Mapping[int, Dim], web: Callable[[int], int] = lambda value: value
) -> Placement:
    """Places for the values that have an entry in ``nbytes``.

    Args:
        moments: in order; each value of ``nbytes`` is made at one of them.
        nbytes: value -> bytes of its array.
        web: value -> what stands for all values that may be the same array.

    Raises ShapeError if a size expression becomes too long.
    """
    from ...dialect.analysis.regions import Tenant, shared_regions  # few plans have arrays between kernels

    last = {web(value): k for k, moment in enumerate(moments) for value in moment.touched}
    regions = shared_regions(
        Tenant(value, nbytes[value], k, last[web(value)])
        for k, moment in enumerate(moments)
        for value in moment.outputs
        if value in nbytes
    )
    where = {value: number for number, region in enumerate(regions) for value in region.values}
    return Placement(where, tuple(region.nbytes(ALIGNMENT) for region in regions))


def bytes_of(itemsize: int, sizes: Sequence[Dim]) -> Dim:
    """Bytes of an array; raises ShapeError if the expression becomes too long."""
    return math.prod(sizes, start=itemsize)


def size_of(dim: Dim, symbols: Mapping[str, Dim], *, guarded: bool = False) -> Dim:
    """Substitute sizes for the symbols of a size expression.

    ``guarded``: it is evaluated only where the guard holds that the symbols are made for.

    Raises Refused for a divisor that is no positive literal or, of what is guarded, that may be 0 or negative; for
    an unbound symbol; and for a result that is too long.
    """
    if isinstance(dim, int):
        return dim

    if not _divides_by_positive(dim, guarded):
        raise Refused(f"a size is divided by another one ({dim})")
    try:
        return dim.fold(symbols.__getitem__, int, lambda op, a, b: OPERATORS[op](a, b))
    except KeyError as error:
        raise Refused(f"size symbol {error} is not bound") from None
    except ShapeError as error:
        raise Refused(error.what) from None


def _divides_by_positive(dim: Dim, guarded: bool) -> bool:
    """True if all divisors are literals of at least 1 or, where a guard has been passed, known to be at least 1."""
    inner = (atom for mono, _ in terms_of(dim) for atom in mono if isinstance(atom, tuple))
    return all(
        (op not in ("//", "%") or ((guarded or isinstance(b, int)) and bounds(b, (0, math.inf))[0] > 0))
        and _divides_by_positive(a, guarded)
        and _divides_by_positive(b, guarded)
        for op, a, b in inner
    )
