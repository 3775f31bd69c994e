"""One nest as a function: outer loops, stages, temporaries and accumulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from mlir import ir

from ..schedule import affine as ix
from ..schedule.affine import AffineIndex, row_major
from ..schedule.graph import Buffer, Compute, Graph, Tensor, read_at
from ..schedule.groups import Loop, loop_index
from ..schedule.memory import BLOCK_ROW, buffer_of, offset_of
from ..schedule.nests import Nest, NestStage, Scratch
from ..schedule.scans import ScanTiling
from ..schedule.tiles import Tiling
from .loop_ops import Ops, Range
from .memory_reductions import MemoryReduction
from .place_loops import PlacesEmitter
from .reduction_loops import Carried, StageReduction
from .scan_loops import TiledScan
from .tile_loops import TiledNest
from .value_emitter import ValueEmitter


class NestEmitter(ValueEmitter):
    """Emits a nest into a function body.

    Args:
        matrix: for a nest that runs on blocks of rows, the number of the matrix in the batch. The
            divided loop is then the one over its rows.

    Attributes:
        searches: True = `extremum.Search` emits reductions to indices.
        ranges: loop -> where it begins and ends; all other loops run over their whole extents.
    """

    searches = True
    versions = True

    def __init__(
        self,
        ops: Ops,
        graph: Graph,
        nest: Nest,
        block: ir.Block,
        pointers: dict[Buffer, ir.Value],
        names: dict[str, ir.Value],
        ranges: Mapping[Loop, Range] | None = None,
        matrix: ir.Value | None = None,
    ) -> None:
        super().__init__(ops, graph, block, pointers, names)
        self.nest, self.ranges, self.matrix = nest, dict(ranges or {}), matrix
        self.stage_number = 0
        self.ahead: dict[Loop, int] = {}  # iterations by which members are ahead of a loop
        self.scratch: dict[Tensor, ir.Value] = {}
        self.cells: dict[Tensor, ir.Value] = {}
        self.tile_end: ir.Value | None = None
        self.tiles: TiledNest | None = None

    def run(self) -> None:
        """Emit everything."""
        for tensor, scratch in self.nest.scratch.items():
            self.scratch[tensor] = self._temporary(scratch)
        for op in self.nest.accumulated:
            self._start_accumulator(op)
        if self.nest.tiling is None or not self._tiled(self.nest.tiling):
            self._outer(self._in_block())
        for op in self.nest.accumulated:
            self._finish_accumulator(op)

    def _tiled(self, tiling: Tiling) -> bool:
        """Emit the nest in tiles; True if they cover arrays of any size."""
        self.tiles = tiles = TiledScan(self, tiling) if isinstance(tiling, ScanTiling) else TiledNest(self, tiling)
        tiles.run()
        self.tiles = None
        return tiling.covers_all

    def load(self, buffer: Buffer, base: ir.Value, offset: AffineIndex) -> ir.Value:
        if self.tiles is not None:
            value = self.tiles.load(buffer, offset)
            if value is not None:
                return value
        return super().load(buffer, base, offset)

    def _temporary(self, scratch: Scratch) -> ir.Value:
        if scratch.buffer is not None:
            return self.pointer(scratch.buffer)
        with self.scopes[0].point():
            count = ix.product(scratch.dims)
            assert isinstance(count, int)
            return self.ops.alloca(max(1, count), scratch.tensor.element)

    # --- loops ---------------------------------------------------------------------------------

    def _in_block(self) -> list[Loop]:
        """Define the indices of the matrix of a block; returns the loops that remain."""
        aligned = self.nest.group.aligned
        if aligned is None:
            return list(self.nest.outer)
        assert self.matrix is not None
        with self.scopes[0].point():
            rest = self.matrix
            for number, loop in enumerate(reversed(aligned.batch)):
                last = number + 1 == len(aligned.batch)
                extent = self.size(loop.extent)
                index = rest if last else self.ops.digit(rest, extent, rest=True)
                self.atoms[loop] = index, 0
                rest = index if last else self.ops.digit(rest, extent, rest=False)
        return [loop for loop in self.nest.outer if loop not in aligned.batch]

    def bounds(self, loop: Loop) -> Range:
        """The beginning and the end of a loop."""
        if loop.span is not None:
            first, size = loop.span
            return self.size(first), self.size(first + size)
        bounds = self.ranges.get(loop)
        return (self.size(0), self.size(loop.extent)) if bounds is None else bounds

    def _outer(self, loops: list[Loop]) -> None:
        if loops:
            loop = loops[0]
            low, high = self.bounds(loop)
            with self.loop(loop, low, high):
                if self.nest.group.aligned is not None and loop is self.nest.group.aligned.rows:
                    row, depth = self.atoms[loop]
                    self.atoms[BLOCK_ROW] = self.ops.subtract(row, low), depth
                self._outer(loops[1:])
                self.end_loop()
        elif self.nest.tile is not None and self.tile_end is None:
            self._tiles(self.nest.tile)
        else:
            self.iteration()

    def _tiles(self, loop: Loop) -> None:
        low, high = self.bounds(loop)
        with self.loop(("tile", loop), low, high, self.nest.width):
            start = self.atoms["tile", loop][0]
            end = self.ops.add(start, self.size(self.nest.width))
            self.tile_end = self.ops.least(end, high)
            self.iteration()
            self.end_loop()

    def iteration(self) -> None:
        """Emit one iteration of the outer loops: all stages."""
        for number, stage in enumerate(self.nest.stages):
            self.stage_number = number
            self.stage(stage)
        self.stage_number = len(self.nest.stages)
        for op in self.nest.tail:
            self._tail(op)

    @contextmanager
    def over(self, loop: Loop):
        """Emit inside a loop of a stage; the caller ends it."""
        low, high = self.bounds(loop)
        if loop is self.nest.tile and self.tile_end is not None:
            low, high = self.atoms["tile", loop][0], self.tile_end
        with self.loop(loop, low, high) as op:
            yield op

    def nested(self, loops: Sequence[Loop], inside: Callable[[], None]) -> None:
        """Emit ``inside`` in these loops; it runs with all of them open."""
        if not loops:
            inside()
            return
        with self.over(loops[0]):
            self.nested(loops[1:], inside)
            self.end_loop()

    # --- stages --------------------------------------------------------------------------------

    def stage(self, stage: NestStage) -> None:
        """Emit one stage."""
        if not stage.reductions:
            self.nested(stage.parallel, lambda: self.maps(stage))
        elif self.nest.places:
            PlacesEmitter(self, stage).run()
        elif stage.in_memory:
            self.nested(stage.parallel[:-1], lambda: MemoryReduction(self, stage).run())
        else:
            self.nested(stage.parallel, lambda: StageReduction(self, stage).run())

    def maps(self, stage: NestStage) -> None:
        """Evaluate and store the pointwise members of a stage in its innermost loop.

        Results may be stored where inputs are, so all are evaluated before one is stored.
        """
        with self.scope.point():
            results = [one for op in stage.maps for one in self.outputs(op)]
            for tensor, index, value in results:
                self.write(tensor, index, value)

    def store_outputs(self, op: Compute) -> None:
        """Evaluate a pointwise member and store the results that have storage."""
        for tensor, index, value in list(self.outputs(op)):
            self.write(tensor, index, value)

    def outputs(self, op: Compute) -> Iterator[tuple[Tensor, tuple[AffineIndex, ...], ir.Value]]:
        """Evaluate a pointwise member: the results that have storage, their places and values."""
        for number, tensor in enumerate(op.outputs):
            if tensor.buffer is not None or tensor in self.scratch:
                index = self.own_index(op, number)
                value = self.remembered((tensor, index))
                if value is None:
                    value = self.inline(op, tensor, index)
                yield tensor, index, value

    # --- members -------------------------------------------------------------------------------

    def own_loops(self, op: Compute) -> list[AffineIndex]:
        """The member's loops as indices."""
        loops = self.nest.group.loops[op]
        if not self.ahead:
            return [loop_index(g) for g in loops]
        return [loop_index(g) + ix.constant(self.ahead.get(g, 0)) for g in loops]

    def own_index(self, op: Compute, number: int) -> tuple[AffineIndex, ...]:
        """The place where one iteration of a member puts its output."""
        loops = self.own_loops(op)
        return tuple(loops[k] for k in op.axes[number])

    def read(self, op: Compute, number: int) -> tuple[Tensor, tuple[AffineIndex, ...]]:
        """The element that one iteration of a member reads of its input ``number``."""
        return read_at(op, number, self.own_loops(op))

    def carried(self, op: Compute) -> list[Carried]:
        """The accumulators of a reduction."""
        accumulators = []
        for number, tensor in enumerate(op.outputs):
            if not any(op.reduction[k] for k in op.axes[number]):
                accumulators.append(Carried(op, number, tensor, op.combiners[number]))
        return accumulators

    def initial(self, carried: Carried) -> ir.Value:
        """First value of an accumulator."""
        op = carried.op
        init = op.inits[carried.number]
        if init is None:
            return self.ops.unread(carried.tensor.element)
        return self.value(init, self.own_index(op, carried.number))

    def is_inlined(self, op: Compute) -> bool:
        if op not in self.nest.group.loops or not op.anchor:
            return super().is_inlined(op)
        return not (self.nest.inner(op) and (op.is_reduction or self._is_past(op)))

    def _is_past(self, op: Compute) -> bool:
        stored = all(t.buffer is not None or t in self.scratch for t in op.outputs)
        return stored and self.nest.place[op] < self.stage_number

    def reload(self, tensor: Tensor, index: tuple[AffineIndex, ...]) -> ir.Value:
        if tensor in self.scratch:
            return self.once(
                ("scratch", tensor, index), index, lambda: self.ops.load(self.slot(tensor, index), tensor.element)
            )
        return self.stored(tensor, index)

    # --- storage -------------------------------------------------------------------------------

    def _scratch_offset(self, scratch: Scratch, index: tuple[AffineIndex, ...]) -> AffineIndex:
        strides = row_major(scratch.dims)
        parts = []
        for axis, loop in zip(scratch.axes, scratch.loops, strict=True):
            part = index[axis]
            if loop is self.nest.tile:
                part = part + ix.atom(("tile", loop)).scale(-1)
            parts.append(part)
        return ix.linear(parts, strides)

    def slot(self, tensor: Tensor, index: tuple[AffineIndex, ...]) -> ir.Value:
        """Pointer to where a member's element is stored."""
        if tensor in self.scratch:
            offset = self._scratch_offset(self.nest.scratch[tensor], index)
            return self.ops.offset(self.scratch[tensor], self.index_value(offset), tensor.element)
        buffer = buffer_of(tensor)
        return self.address(buffer, self.pointer(buffer), offset_of(tensor, index))

    def write(self, tensor: Tensor, index: tuple[AffineIndex, ...], value: ir.Value) -> None:
        """Store a member's element, in the current scope."""
        with self.scope.point():
            self.ops.store(value, self.slot(tensor, index))

    # --- members without loops of their own, and accumulation over outer loops --------------------

    def _tail(self, op: Compute) -> None:
        if op in self.nest.accumulated:
            for carried in self.carried(op):
                self.fold_in(carried, lambda start: self.body(op, self.own_loops(op), start))
        else:
            self.store_outputs(op)

    def fold_in(self, carried: Carried, fold: Callable[[dict[int, ir.Value]], list]) -> None:
        """Continue an accumulator over outer loops; ``fold``: from start values to end values."""
        with self.scope.point():
            cell = self.cells.get(carried.tensor)
            if cell is not None:
                wide = self.ops.load(cell, self.ops.f64)
                zero = self.ops.float_constant(-0.0, carried.tensor.element)
                part = fold({carried.number: zero})[carried.number]
                total = self.ops.create("arith.addf", self.ops.f64, wide, carried.widen(self, part))
                self.ops.store(total, cell)
                return
            pointer = self.slot(carried.tensor, self.own_index(carried.op, carried.number))
            start = self.ops.load(pointer, carried.tensor.element)
            self.ops.store(fold({carried.number: start})[carried.number], pointer)

    def _start_accumulator(self, op: Compute) -> None:
        for carried in self.carried(op):
            loops = [g for g in (self.nest.group.loops[op][k] for k in op.axes[carried.number]) if g.extent != 1]
            if not loops and carried.is_wide:
                with self.scopes[0].point():
                    cell = self.ops.alloca(1, self.ops.f64, 8)
                    self.cells[carried.tensor] = cell
                    start = carried.widen(self, self.initial(carried))
                    self.ops.store(start, cell)
            else:
                self.nested(loops, lambda c=carried: self._initialise_one(c))  # type: ignore[misc]

    def _initialise_one(self, carried: Carried) -> None:
        index = self.own_index(carried.op, carried.number)
        self.write(carried.tensor, index, self.initial(carried))

    def _finish_accumulator(self, op: Compute) -> None:
        for carried in self.carried(op):
            cell = self.cells.get(carried.tensor)
            if cell is not None:
                with self.scopes[0].point():
                    wide = self.ops.load(cell, self.ops.f64)
                    value = self.ops.create("arith.truncf", carried.tensor.element, wide)
                    self.write(carried.tensor, self.own_index(op, carried.number), value)
