"""A scan along rows in tiles, as `schedule.scans` describes it.

```
for r in lane, by extent:                     # rows of the memory, inside the loops around them
    for c in rows, by band:                   # the loop that is scanned
        for each operand that is read across: transpose its tile into an array
        for j in c .. c + band:
            for i in r .. r + extent:         # LLVM vectorises this loop
                fold the element into the accumulator of row i, and keep it in an array
        transpose that array into the result
```

The rows that fill no square follow one by one, and so do all rows that are short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from ..schedule import affine as ix
from ..schedule.affine import AffineIndex
from ..schedule.groups import Loop
from ..schedule.memory import buffer_of, strides_of
from ..schedule.scans import ScanTiling
from .tile_loops import BAND, LEFT, STRIP, TOP, TiledNest
from .transposes import transposer

if TYPE_CHECKING:
    from .nest import NestEmitter


class TiledScan(TiledNest):
    """Emits a scan in tiles, with the rows that they do not cover."""

    def __init__(self, emitter: NestEmitter, tiling: ScanTiling) -> None:
        super().__init__(emitter, tiling)
        ops, self.op, self.length = emitter.ops, tiling.op, tiling.band
        self.tensor = self.op.outputs[0]
        self.width = max(8, self.tensor.element.width)
        with emitter.scopes[0].point():
            self.sums = ops.alloca(tiling.extent, self.tensor.element)
            self.kept = ops.alloca(tiling.extent * tiling.height, self.tensor.element)

    def run(self) -> None:
        """Emit all rows."""
        self._around(list(self.tiling.loops))

    def _around(self, loops: list[Loop]) -> None:
        emitter, loop = self.emitter, loops[0]
        low, high = emitter.bounds(loop)
        if loop is not self.tiling.lane:
            with emitter.loop(loop, low, high):
                self._around(loops[1:])
                emitter.end_loop()
            return
        ops, side = emitter.ops, emitter.size(self.tiling.side)
        length, least = (emitter.size(n) for n in (self.tiling.rows.extent, self.tiling.least))
        with emitter.scope.point():
            count = ops.create("arith.subi", ops.word, high, low)
            rest = ops.create("arith.remui", ops.word, count, side)
            end = ops.create("arith.subi", ops.word, high, rest)
            end = ops.select(ops.less(length, least), low, end)
        with emitter.loop(STRIP, low, end, self.tiling.extent):
            self._strip(end)
            emitter.end_loop()
        emitter.tiles = None
        with emitter.loop(loop, end, high):
            emitter.iteration()
            emitter.end_loop()

    def _strip(self, end: ir.Value) -> None:
        emitter, ops, tiling = self.emitter, self.emitter.ops, self.tiling
        depth = len(emitter.scopes) - 1
        left = emitter.atoms[STRIP][0]
        length, band = emitter.size(tiling.rows.extent), emitter.size(self.length)
        with emitter.scopes[0].point():
            # The last tile takes in a remainder that is smaller than a square.
            most = ops.add(length, emitter.size(1 - tiling.side))
        with emitter.scope.point():
            right = ops.least(ops.add(left, emitter.size(tiling.extent)), end)
        emitter.atoms[LEFT] = left, depth
        (carried,) = emitter.carried(self.op)
        with emitter.loop(tiling.lane, left, right):
            with emitter.scope.point():
                ops.store(emitter.initial(carried), self._sum())
            emitter.end_loop()
        with emitter.loop(BAND, emitter.size(0), most, self.length):
            top = emitter.atoms[BAND][0]
            with emitter.scope.point():
                after = ops.add(top, band)
                bottom = ops.select(ops.less(after, most), after, length)
            self._band(top, bottom, right)
            emitter.end_loop()
        del emitter.atoms[LEFT]

    def _band(self, top: ir.Value, bottom: ir.Value, right: ir.Value) -> None:
        emitter, ops, tiling = self.emitter, self.emitter.ops, self.tiling
        emitter.atoms[TOP] = top, len(emitter.scopes) - 1
        with emitter.loop(tiling.rows, top, bottom) as column:
            with emitter.loop(tiling.lane, emitter.atoms[LEFT][0], right):
                with emitter.scope.point():
                    sum_ = self._sum()
                    start = ops.load(sum_, self.tensor.element)
                    own = emitter.own_loops(self.op)
                    value = emitter.body(self.op, own, {1: start})[0]
                    ops.store(value, sum_)
                    ops.store(value, ops.offset(self.kept, self._place(), self.tensor.element))
                emitter.end_loop()
            emitter.end_loop()
        emitter.scope.before = column.operation
        for (buffer, offset), array in self.operands.items():
            self.fill(buffer, offset, *array, bottom, right)
        emitter.scope.before = None
        self._put_back(top, bottom, right)
        del emitter.atoms[TOP]

    def _sum(self) -> ir.Value:
        """The place of the accumulator of the current row."""
        place = self.emitter.index_value(AffineIndex({self.tiling.lane: 1, LEFT: -1}))
        return self.emitter.ops.offset(self.sums, place, self.tensor.element)

    def _place(self) -> ir.Value:
        """The place of the current element in the array."""
        tiling = self.tiling
        row = AffineIndex({tiling.rows: tiling.extent, TOP: -tiling.extent})
        start = self.emitter.index_value(row)
        column = self.emitter.index_value(AffineIndex({tiling.lane: 1, LEFT: -1}))
        return self.emitter.ops.add(start, column)

    def _put_back(self, top: ir.Value, bottom: ir.Value, right: ir.Value) -> None:
        """Store the elements of a tile in the result."""
        emitter, ops, tiling = self.emitter, self.emitter.ops, self.tiling
        buffer = buffer_of(self.tensor)
        offset = self.offset_of_tile(self._offset())
        target = emitter.address(buffer, emitter.pointer(buffer), offset)
        step = emitter.size(self._offset().coefficient(tiling.lane))
        distance = emitter.size(tiling.extent)
        with emitter.scope.point():
            module = emitter.scopes[0].block.owner.operation.parent
            name = transposer(ops, module, tiling.side, None, self.width)
            rows = ops.create("arith.subi", ops.word, right, emitter.atoms[LEFT][0])
            columns = ops.create("arith.subi", ops.word, bottom, top)
            ops.call(name, [self.kept, distance, target, rows, columns, step])

    def _offset(self) -> AffineIndex:
        return ix.linear(self.emitter.own_index(self.op, 0), strides_of(self.tensor))
