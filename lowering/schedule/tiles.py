"""Tiles: pointwise nests that read memory across rows do so in squares.

`x + y.T` reads `y` along a column: each element is in another cache line. A nest with such a read
goes through two of its loops in tiles: the innermost one, and the one along which the read is
contiguous. A tile of the operand is transposed, square by square in registers, into a small array,
from which the members read it in the order of the innermost loop (`emit.tile_loops`).

Reads in branches, at computed indices, and with strides that are only known at run time remain as
they are, and so do nests with reductions or several stages, and stores across rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...dialect.dataclass import dataclass
from . import affine as ix
from .affine import AffineIndex
from .graph import Buffer, Compute, Tensor, direct_reads, viewed
from .groups import Loop, loop_index
from .memory import buffer_or_none, element_bytes, strides_of
from .nests import Nest

MOST = 4  # operands of one nest in tiles: their arrays have to stay in the L1 and L2 caches
_RUN = 256  # bytes of contiguous reads; hardware prefetching does not keep up with shorter ones
_LARGEST = 64  # elements of a side of a tile
VECTOR = 32  # bytes of a row of a square; wider vectors were no faster
WIDEST = 16  # elements of a side of a square: that many registers hold it
TALL = 32  # rows per column; if there are more, few columns stay in cache for the next rows anyway
_WIDEST_BYTES = 8  # of an element: squares are shuffled as integers of its size
_NEAR = 4  # elements; a read with a shorter step does not count as across rows


@dataclass(frozen=True)
class Tiling:
    """Two loops of a nest that are run in tiles.

    Attributes:
        rows: the loop along which the reads are contiguous.
        lane: the innermost loop; all stores are contiguous along it.
        side: elements of a side of a square that is transposed in registers.
        extent: elements of a side of a tile, which consists of such squares.
        least: extent of both loops from which on tiles pay, unless ``rows`` has more than `TALL`
            times the extent of ``lane``.
        loops: the loops around ``lane``, in order; one of them is ``rows``.
    """

    rows: Loop
    lane: Loop
    side: int
    extent: int
    least: int
    loops: tuple[Loop, ...]

    @property
    def covers_all(self) -> bool:
        """True if tiles are known to pay."""
        return isinstance(self.rows.extent, int) and isinstance(self.lane.extent, int)

    @property
    def height(self) -> int:
        """Most rows of an array that holds a tile."""
        return self.extent

    def crosses(self, offset: AffineIndex) -> bool:
        """True if a read at this offset is contiguous along ``rows`` and strided along ``lane``."""
        return _crosses(offset, self.rows, self.lane)


def choose_tiling(nest: Nest) -> Tiling | None:
    """The tiling of a nest that reads memory across rows; None = there is nothing to gain."""
    loops = _loops(nest)
    lane = _lane(nest) if len(loops) > 1 else None
    if lane is None:
        return None
    reads = [(b, o) for b, o in set(_direct(nest)) if any(_crosses(o, g, lane) for g in loops)]
    if not reads:
        return None
    rows = max(loops, key=lambda g: sum(_crosses(o, g, lane) for _, o in reads))
    widest = max(element_bytes(b.element) for b, o in reads if _crosses(o, rows, lane))
    side = min(WIDEST, VECTOR // widest)
    # If the nest would have another innermost loop without tiles, that does well on few rows.
    least = 2 * side if lane in nest.stages[0].parallel else _LARGEST
    if widest > _WIDEST_BYTES:
        return None
    if any(isinstance(g.extent, int) and g.extent < least for g in (rows, lane)):
        return None
    high, wide = rows.extent, lane.extent
    if isinstance(high, int) and isinstance(wide, int) and high > TALL * wide:
        return None
    extent = min(_LARGEST, _RUN // widest)
    return Tiling(rows, lane, side, extent, least, tuple(g for g in loops if g is not lane))


def _crosses(offset: AffineIndex, rows: Loop, lane: Loop) -> bool:
    step = offset.coefficient(lane)
    # For small strides, LLVM reads whole vectors and shuffles them.
    near = isinstance(step, int) and abs(step) < _NEAR
    is_linear = all(isinstance(atom, Loop) for atom in offset.terms)
    return rows is not lane and is_linear and not near and offset.coefficient(rows) == 1


def _loops(nest: Nest) -> list[Loop]:
    """All loops of a nest without reductions whose members pass values in registers; else empty."""
    stages = nest.stages
    if nest.scratch or nest.tail or nest.accumulated or nest.tile or len(stages) != 1:
        return []
    if stages[0].reductions or len(stages[0].parallel) != 1:
        return []
    return [g for g in nest.group.outer if g.extent != 1]


def _lane(nest: Nest) -> Loop | None:
    """The loop along which all stores are contiguous; None = there is no such loop."""
    lanes: set[Loop | None] = set()
    for op in nest.stages[0].maps:
        loops = nest.group.loops[op]
        for number, tensor in enumerate(op.outputs):
            if tensor.buffer is not None:
                index = [loop_index(loops[k]) for k in op.axes[number]]
                terms = ix.linear(index, tensor.buffer.strides).terms
                near = [g for g, step in terms.items() if step == 1 and isinstance(g, Loop)]
                lanes.add(near[0] if near else None)
    return lanes.pop() if len(lanes) == 1 else None


def _direct(nest: Nest) -> Iterator[tuple[Buffer, AffineIndex]]:
    """The reads of memory that every iteration makes."""
    seen: set[tuple[Tensor, tuple[AffineIndex, ...]]] = set()
    waiting: list[tuple[Compute, list[AffineIndex]]] = [
        (op, [loop_index(g) for g in nest.group.loops[op]]) for op in nest.stages[0].maps
    ]
    while waiting:
        op, loops = waiting.pop()
        for tensor, index in direct_reads(op, loops):
            tensor, index = viewed(tensor, index)
            producer = tensor.producer
            if (tensor, index) in seen:
                continue
            seen.add((tensor, index))
            if isinstance(producer, Compute) and not producer.anchor:
                values = producer.loop_values(tensor.number, index)
                waiting.append((producer, [ix.constant(0) if v is None else v for v in values]))
            elif producer not in nest.group.loops:
                buffer = buffer_or_none(tensor)
                if buffer is not None:
                    yield buffer, ix.linear(index, strides_of(tensor))
