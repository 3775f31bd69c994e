"""Regions of memory that arrays use one after the other, each as large as the largest of them.

Sizes are expressions, and of two it may not be known which one is larger. A region is then as large as the
larger of the two at run time, which is never more than both of them side by side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import inf
from typing import Any, NamedTuple

from ..ir.size_algebra import sym_max
from ..ir.symbolic import Dim, evaluate

_TYPICAL = 64  # what a size is taken for where it decides which of several regions an array shares


class Tenant(NamedTuple):
    """An array that needs memory.

    Attributes:
        value: what stands for it.
        nbytes: its size.
        first: the number of the step that makes it.
        last: that of the last step that needs it.
        kind: what its size says little of is the size of arrays of another kind.
    """

    value: Any
    nbytes: Dim
    first: int
    last: int
    kind: Hashable = None


class Region:
    """Memory that arrays use one after the other.

    Attributes:
        kind: that of the first array.
        values: the arrays that lie there.
        last: the last step that needs what is in it.
        sizes: bytes of arrays, of which none is known to be at least as large as another one.
        typical: what is expected of the largest of them.
    """

    def __init__(self, kind: Hashable) -> None:
        self.kind = kind
        self.values: list[Any] = []
        self.last = -1
        self.sizes: list[Dim] = []
        self.typical = 0.0

    def fits(self, need: Dim) -> bool:
        """True if so many bytes are known to be there."""
        return any(_is_at_least(size, need) for size in self.sizes)

    def take(self, tenant: Tenant) -> None:
        """Have an array lie there."""
        need = tenant.nbytes
        if not self.fits(need):
            self.sizes = [*(size for size in self.sizes if not _is_at_least(need, size)), need]
            self.typical = max(map(_typical, self.sizes))
        self.values.append(tenant.value)
        self.last = tenant.last

    def nbytes(self, alignment: int) -> Dim:
        """The size of the largest array, as a multiple of ``alignment``.

        Raises ShapeError if the expression becomes too long.
        """
        sizes = self.sizes
        while len(sizes) > 1:  # pairs, so that expressions stay flat
            rest = sizes[len(sizes) // 2 * 2 :]
            sizes = [*map(sym_max, sizes[::2], sizes[1::2]), *rest]
        return (sizes[0] + (alignment - 1)) // alignment * alignment

    def preference(self, tenant: Tenant) -> tuple[int, float]:
        """The smaller, the better: the smallest region that suffices, or that is expected to, else the largest one."""
        size, expected = self.typical, _typical(tenant.nbytes)
        if self.fits(tenant.nbytes):
            return 0, size
        if size >= _TYPICAL * expected:
            return 1, size
        if self.kind != tenant.kind:
            return 4, -size
        return (2, size) if size >= 2 * expected else (3, -size)


def shared_regions(tenants: Iterable[Tenant]) -> list[Region]:
    """Regions for these arrays, in which no two lie at once.

    An array gets memory only of one that no step needs any more when it is made: kernels rely on outputs that
    overlap no input.
    """
    regions: list[Region] = []
    for tenant in sorted(tenants, key=lambda tenant: tenant.first):
        free = [region for region in regions if region.last < tenant.first]
        region = min(free, key=lambda region: region.preference(tenant), default=None)
        if region is None:
            region = Region(tenant.kind)
            regions.append(region)
        region.take(tenant)
    return regions


def _is_at_least(size: Dim, other: Dim) -> bool:
    return sym_max(size, other) == size


def _typical(size: Dim) -> float:
    """The value that is expected of a size of which only the form is known."""
    try:
        return evaluate(size, lambda leaf: _TYPICAL)
    except ZeroDivisionError:
        return inf
