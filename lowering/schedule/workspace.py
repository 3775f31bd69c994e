"""The workspace of a kernel: places of temporaries, which share memory where their lives do not overlap.

Sizes are expressions, and of two it may not be known which one is larger. A region is then as large as the
larger of the two at run time, which is never more than both of them side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import inf
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import LoweringError, ShapeError
from ...dialect.ir.size_algebra import sym_max
from ...dialect.ir.symbolic import Dim, Sym, evaluate
from ...dialect.ops.sizes import is_nonnegative
from . import affine as ix
from .graph import Buffer, Graph, Tensor
from .memory import element_bytes

ALIGNMENT = 64  # bytes
_TYPICAL = 64  # what a size is taken for where it decides which of several regions a buffer shares


@dataclass
class Life:
    """The numbers of the first and of the last step that need a buffer."""

    first: int
    last: int


@dataclass(eq=False)
class _Region:
    """Memory that buffers use one after the other.

    Attributes:
        in_chunks: True = the first buffer was for the chunks of a step, not for a whole array.
        last: the last step that needs what is in it.
        sizes: bytes of buffers, of which none is known to be at least as large as another one.
        buffers: those that lie there.
    """

    in_chunks: bool
    last: int
    sizes: list[Dim] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    @property
    def typical(self) -> float:
        return max(map(_typical, self.sizes))

    def fits(self, need: Dim) -> bool:
        """True if so many bytes are known to be there."""
        return any(_is_at_least(size, need) for size in self.sizes)

    def add(self, buffer: Buffer, need: Dim, last: int) -> None:
        """Have a buffer of so many bytes lie there, up to a step."""
        if not self.fits(need):
            self.sizes = [*(size for size in self.sizes if not _is_at_least(need, size)), need]
        self.buffers.append(buffer)
        self.last = last

    def bytes_(self) -> Dim:
        """The size of the largest buffer, as a multiple of `ALIGNMENT`."""
        sizes = self.sizes
        while len(sizes) > 1:  # pairs, so that expressions stay flat
            rest = sizes[len(sizes) // 2 * 2 :]
            sizes = [*map(sym_max, sizes[::2], sizes[1::2]), *rest]
        return ix.ceil_div(sizes[0], ALIGNMENT) * ALIGNMENT


def place_buffers(lives: Mapping[Any, Life], graph: Graph) -> tuple[dict[Buffer, Dim], Dim]:
    """Give workspace buffers their places; returns their offsets and the bytes of all, as expressions.

    Args:
        lives: by owner of a buffer, the steps that need it.
        graph: what is scheduled.

    Raises LoweringError for a size that has no closed form over the size symbols.
    """
    regions: list[_Region] = []
    for owner, life in sorted(lives.items(), key=lambda item: item[1].first):
        buffer = owner.buffer
        if buffer.kind != "workspace":
            continue
        need = ix.product(buffer.dims) * element_bytes(buffer.element)
        if not is_nonnegative(need):
            need = sym_max(need, 0)  # such a run is voided, but its buffers must still not overlap
        free = [region for region in regions if region.last < life.first]
        in_chunks = not isinstance(owner, Tensor)
        region = min(free, key=lambda r: _preference(r, need, in_chunks), default=None)
        if region is None:
            region = _Region(in_chunks, life.last)
            regions.append(region)
        region.add(buffer, need, life.last)
    return _laid_out(regions, graph)


def _laid_out(regions: list[_Region], graph: Graph) -> tuple[dict[Buffer, Dim], Dim]:
    offsets: dict[Buffer, Dim] = {}
    end: Dim = 0
    for region in regions:
        offsets |= dict.fromkeys(region.buffers, end)
        try:
            end = end + region.bytes_()
        except ShapeError as error:
            raise LoweringError("a workspace size is too long to be written down") from error
    if isinstance(end, Sym) and end.symbols & set(graph.opaque):
        raise LoweringError("a workspace size has no closed form over the size symbols")
    if isinstance(end, Sym) and end.symbols & set(graph.strides):
        raise LoweringError("a workspace size depends on run-time strides")
    return offsets, end


def _preference(region: _Region, need: Dim, in_chunks: bool) -> tuple[int, float]:
    """The smaller, the better: the smallest region that suffices, or that is expected to, else the largest one.

    Memory of chunks, which is to stay in a cache, says little of the sizes of whole arrays.
    """
    size, expected = region.typical, _typical(need)
    if region.fits(need):
        return 0, size
    if size >= _TYPICAL * expected:
        return 1, size
    if region.in_chunks != in_chunks:
        return 4, -size
    return (2, size) if size >= 2 * expected else (3, -size)


def _is_at_least(size: Dim, other: Dim) -> bool:
    return sym_max(size, other) == size


def _typical(size: Dim) -> float:
    """What is expected of a size of which only the form is known."""
    try:
        return evaluate(size, lambda leaf: _TYPICAL)
    except ZeroDivisionError:
        return inf
