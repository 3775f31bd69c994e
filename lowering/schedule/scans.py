"""Scans along rows: running folds of several rows at once, in tiles.

A running sum along a row is a serial chain: each addition waits for the one before it. So a nest
that does nothing but scan its innermost loop takes many rows at a time. Tiles of its operands are
transposed into small arrays (`tiles`), the scan goes through these with the rows innermost, as SIMD
code, and tiles of its result are transposed back (`emit.scan_loops`). Each row is still folded in its
own order, so the results have the same bits.
"""

from __future__ import annotations

from ...dialect.dataclass import dataclass
from . import affine as ix
from .graph import Compute
from .groups import loop_index
from .memory import element_bytes
from .nests import Nest
from .tiles import VECTOR, WIDEST, Tiling

_STRIP = 64  # bytes of a row of an array: a few rows of memory, whose cache lines stay in L1
_BAND = 512  # bytes of a row of memory in a tile, for which hardware prefetching pays


@dataclass(frozen=True)
class ScanTiling(Tiling):
    """Two loops of a scan that are run in tiles.

    ``rows`` is the loop that is scanned, ``lane`` the innermost of the ``loops`` around it.

    Attributes:
        op: the scan.
        band: elements of a tile along ``rows``; ``extent`` is that along ``lane``.

    ``least`` is the extent of ``rows`` from which on tiles pay.
    """

    op: Compute
    band: int

    @property
    def covers_all(self) -> bool:
        """True: the rows that fill no tile are emitted together with the tiles."""
        return True

    @property
    def height(self) -> int:
        """Most rows of an array: the last tile takes in a remainder that would fill no square."""
        return self.band + self.side - 1


def choose_scan_tiling(nest: Nest) -> ScanTiling | None:
    """The tiling of a nest that is one scan along contiguous rows; None = it is no such nest."""
    if len(nest.stages) != 1 or not nest.outer or nest.tile is not None:
        return None
    (stage,) = nest.stages
    if stage.maps or stage.parallel or len(stage.reductions) != 1 or len(stage.reduced) != 1:
        return None
    if nest.scratch or nest.tail or nest.accumulated:
        return None
    (op,), (loop,), lane = stage.reductions, stage.reduced, nest.outer[-1]
    if not op.is_scan or op.outputs[0].buffer is None or op.outputs[1].buffer is not None:
        return None
    result = op.outputs[0].buffer
    index = [loop_index(nest.group.loops[op][k]) for k in op.axes[0]]
    if ix.linear(index, result.strides).coefficient(loop) != 1:
        return None
    size = element_bytes(result.element)
    side, least = min(WIDEST, VECTOR // size), 8 * size
    if any(isinstance(g.extent, int) and g.extent < n for g, n in ((loop, least), (lane, side))):
        return None
    loops = tuple(nest.outer)
    return ScanTiling(loop, lane, side, _STRIP // size, least, loops, op, _BAND // size)
