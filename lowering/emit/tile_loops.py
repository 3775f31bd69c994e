"""A nest in tiles, as `schedule.tiles` describes it.

```
for r in rows, by extent:                     # among the other loops
    for c in lane, by extent:
        for each operand that is read across rows: transpose its tile into an array
        for i in r .. r + extent:
            for j in c .. c + extent:         # LLVM vectorises this loop
                the members, with operands from the arrays
```

Where an axis turns out at run time to be too short for tiles, the nest without tiles follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from ..schedule.affine import AffineIndex, row_major
from ..schedule.graph import Buffer
from ..schedule.groups import Loop
from ..schedule.memory import element_bytes
from ..schedule.tiles import MOST, TALL, Tiling
from .transposes import transposer

if TYPE_CHECKING:
    from .nest import NestEmitter

BAND, STRIP = "band", "strip"  # loops
TOP, LEFT = "top", "left"  # of a tile


class TiledNest:
    """Emits a nest in tiles; ``operands``: buffer and offset of a read -> its array."""

    def __init__(self, emitter: NestEmitter, tiling: Tiling) -> None:
        self.emitter, self.tiling = emitter, tiling
        self.operands: dict[tuple[Buffer, AffineIndex], tuple[Buffer, ir.Value]] = {}

    def run(self) -> None:
        """Emit the nest in tiles; ``emitter.ranges`` become the iterations that they leave over."""
        emitter, ops = self.emitter, self.emitter.ops
        # Tiles cover all iterations or none: it does not matter which loop is emptied.
        loop = emitter.nest.divided[0]
        low, high = emitter.bounds(loop)
        end = high
        if not self.tiling.covers_all:
            rows, lane = (emitter.size(g.extent) for g in (self.tiling.rows, self.tiling.lane))
            least, tall = emitter.size(self.tiling.least), emitter.size(TALL)
            with emitter.scope.point():
                few = (ops.less(rows, least), ops.less(lane, least))
                for without in (*few, ops.less(ops.mul(lane, tall), rows)):
                    end = ops.select(without, low, end)
        emitter.ranges[loop] = low, end
        self._outer(list(self.tiling.loops))
        emitter.ranges[loop] = end, high

    def _outer(self, loops: list[Loop]) -> None:
        if not loops:
            self._strips()
            return
        emitter, tiling, loop = self.emitter, self.tiling, loops[0]
        low, high = emitter.bounds(loop)
        of_tiles = loop is tiling.rows
        step = tiling.extent if of_tiles else 1
        with emitter.loop(BAND if of_tiles else loop, low, high, step):
            self._outer(loops[1:])
            emitter.end_loop()

    def _strips(self) -> None:
        emitter, tiling = self.emitter, self.tiling
        with emitter.loop(STRIP, *emitter.bounds(tiling.lane), tiling.extent):
            top, bottom = self._ends(BAND, tiling.rows)
            left, right = self._ends(STRIP, tiling.lane)
            self._inside(TOP, top, tiling.rows)
            self._inside(LEFT, left, tiling.lane)
            with emitter.loop(tiling.rows, top, bottom) as row:
                with emitter.loop(tiling.lane, left, right):
                    emitter.maps(emitter.nest.stages[0])
                    emitter.end_loop()
                emitter.end_loop()
            emitter.scope.before = row.operation
            for (buffer, offset), array in self.operands.items():
                self.fill(buffer, offset, *array, bottom, right)
            emitter.scope.before = None
            emitter.end_loop()
            del emitter.atoms[TOP], emitter.atoms[LEFT]

    def _ends(self, tiles: str, loop: Loop) -> tuple[ir.Value, ir.Value]:
        """The beginning and the end of the current tile of a loop."""
        emitter, ops = self.emitter, self.emitter.ops
        start, high = emitter.atoms[tiles][0], emitter.bounds(loop)[1]
        size = emitter.size(self.tiling.extent)
        with emitter.scope.point():
            return start, ops.least(ops.add(start, size), high)

    def _inside(self, name: str, start: ir.Value, loop: Loop) -> None:
        """Define atom ``name``: where operands' tiles begin, early enough for a whole square."""
        emitter = self.emitter
        side, extent = emitter.size(-self.tiling.side), emitter.size(loop.extent)
        with emitter.scopes[0].point():
            last = emitter.ops.add(extent, side)
        with emitter.scope.point():
            value = emitter.ops.least(start, last)
        emitter.atoms[name] = value, len(emitter.scopes) - 1

    def offset_of_tile(self, offset: AffineIndex) -> AffineIndex:
        """The offset of a tile's first element, from that of any of its elements."""
        names = {self.tiling.rows: TOP, self.tiling.lane: LEFT}
        terms = {names.get(atom, atom): c for atom, c in offset.terms.items()}  # type: ignore[call-overload]
        return AffineIndex(terms, offset.const)

    # --- operands ------------------------------------------------------------------------------

    def load(self, buffer: Buffer, offset: AffineIndex) -> ir.Value | None:
        """The element at an offset, from its array; None if it has none."""
        emitter, ops, tiling = self.emitter, self.emitter.ops, self.tiling
        if emitter.conditional_depth() or not tiling.crosses(offset):
            return None
        if (buffer, offset) not in self.operands:
            if len(self.operands) == MOST:
                return None
            dims = (tiling.height, tiling.extent)
            array = Buffer("tile", len(self.operands), buffer.element, dims, row_major(dims))
            with emitter.scopes[0].point():
                pointer = ops.alloca(dims[0] * dims[1], buffer.element)
            self.operands[buffer, offset] = array, pointer
        array, pointer = self.operands[buffer, offset]
        width = array.strides[0]
        row = AffineIndex({tiling.rows: width, TOP: -width})
        column = AffineIndex({tiling.lane: 1, LEFT: -1})

        def read() -> ir.Value:
            start = emitter.once(
                ("row", array), [row], lambda: ops.offset(pointer, emitter.index_value(row), array.element)
            )
            place = ops.offset(start, emitter.index_value(column), array.element)
            return ops.load(place, array.element)

        return emitter.once(("element", array), [row, column], read)

    def fill(
        self, buffer: Buffer, offset: AffineIndex, array: Buffer, target: ir.Value, bottom: ir.Value, right: ir.Value
    ) -> None:
        """Store the tile of an operand, transposed, in its array."""
        emitter, ops, tiling = self.emitter, self.emitter.ops, self.tiling
        source = emitter.address(buffer, emitter.pointer(buffer), self.offset_of_tile(offset))
        step = emitter.size(offset.coefficient(tiling.lane))
        top, left = emitter.atoms[TOP][0], emitter.atoms[LEFT][0]
        with emitter.scope.point():
            module = emitter.scopes[0].block.owner.operation.parent
            name = transposer(ops, module, tiling.side, tiling.extent, 8 * element_bytes(buffer.element))
            rows = ops.create("arith.subi", ops.word, bottom, top)
            columns = ops.create("arith.subi", ops.word, right, left)
            ops.call(name, [source, step, target, rows, columns])
