"""Reductions with few results or along columns, in two steps.

The reduced elements are divided into chunks, one per block along y. A first kernel writes the
partial result of each chunk, and a second kernel combines the partial results in order. So results
are deterministic.
"""

from __future__ import annotations

from dataclasses import field

from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.ir.size_algebra import sym_max, sym_min
from ....dialect.ir.symbolic import Dim
from ...emit.reduction_loops import Carried
from ...emit.steps import buffers_of
from ...schedule import affine as ix
from ...schedule.graph import Buffer, Compute, Tensor
from ...schedule.memory import element_bytes
from ...schedule.nests import Nest, NestStage
from ..launch_plan import Launch
from .combine import combined, combiners_of, in_block, is_combinable
from .emitter import KernelEmitter, extent, iterations, merged, vector_width
from .kernel import Kernel, KernelMemory, Temporary
from .ops import WARP

THREADS = 256
LEAST = 64  # least number of reduced elements in a chunk of columns
LEAST_FLAT = 4096  # and of a chunk along contiguous elements
BLOCKS = 264  # two for each multiprocessor of the largest chips
MOST = 256  # largest number of chunks
LONG = 4096  # several blocks may share a row of more elements than this
HELD = 64  # largest number of registers for accumulators
SHARED = 8 * 1024  # bytes of shared memory to exchange accumulators of one type
HIGH = THREADS // WARP  # rows of threads where columns are along x
RESULT, COLUMN, ELEMENT = ("result",), ("column",), ("element",)


@dataclass
class SplitReduction:
    """The two kernels of a reduction in two steps; a single chunk needs only the first.

    ``partials``: arrays of partial results, one row per chunk.
    """

    nest: Nest
    partials: list[Temporary] = field(default_factory=list)

    def __post_init__(self) -> None:
        nest, stage = self.nest, self.stage
        self.results = merged(nest, [*nest.outer, *stage.parallel])
        self.reduced = merged(nest, stage.reduced)
        self.along_columns = stage.in_memory
        self.count, self.size = iterations(self.results), iterations(self.reduced)
        lane = self.results[-1] if self.along_columns else self.reduced[-1]
        self.width = vector_width(nest, lane[-1])
        limit = extent(lane) if self.along_columns else self.size
        words = sum(element_bytes(t.element) for t in self._parts()) // 4 if self.along_columns else 0
        while self.width > 1 and (words * self.width > HELD or (isinstance(limit, int) and limit % self.width)):
            self.width //= 2
        self.chunks = self._chunks()

    @property
    def stage(self) -> NestStage:
        return self.nest.stages[0]

    @property
    def columns(self) -> Dim:
        """Number of results along x."""
        return extent(self.results[-1]) if self.along_columns else 1

    def _chunks(self) -> Dim:
        least = LEAST if self.along_columns else LEAST_FLAT
        most = sym_min(ix.ceil_div(self.size, least), MOST)
        if isinstance(self.count, int):
            tile = WARP * self.width if self.along_columns else 1
            blocks = -(-self.count // tile)
            most = sym_min(most, max(1, BLOCKS // max(1, blocks)))
        return sym_max(most, 1)

    def temporaries(self) -> list[Temporary]:
        if self.chunks == 1:
            return []
        self.partials = [Temporary(t.element, (self.chunks, self.count)) for t in self._parts()]
        return list(self.partials)

    def _parts(self) -> list[Tensor]:
        return [tensor for op in self.stage.reductions for tensor in op.outputs]

    def kernels(self, memory: KernelMemory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        kernels = [self._first(memory, name, fast)]
        if self.partials:
            kernels.append(self._second(memory, f"{name}_chunks", fast))
        return kernels

    def _buffers(self) -> list[Buffer]:
        partials = [p.buffer for p in self.partials if p.buffer is not None]
        return [*buffers_of(self.nest), *partials]

    def _first(self, memory: KernelMemory, name: str, fast: bool) -> tuple[Kernel, Launch]:
        threads = (WARP, HIGH, 1) if self.along_columns else (THREADS, 1, 1)
        kernel = Kernel(memory, name, self._buffers(), threads, fast)
        lane = self.columns if self.along_columns else self.size
        width = self.width if fast and kernel.divisible(lane, self.width) else 1
        emitter = _Chunk(kernel, self, width)
        if self.along_columns:
            emitter.run_columns()
            tiles = ix.ceil_div(lane, WARP * width)
            return kernel, kernel.finish((tiles, self.chunks, iterations(self.results[:-1])))
        emitter.run_flat()
        return kernel, kernel.finish((self.count, self.chunks, 1))

    def _second(self, memory: KernelMemory, name: str, fast: bool) -> tuple[Kernel, Launch]:
        kernel = Kernel(memory, name, self._buffers(), (THREADS, 1, 1), fast)
        emitter = _Chunk(kernel, self, 1)
        if self.along_columns:
            emitter.run_each()
            return kernel, kernel.finish((ix.ceil_div(self.count, THREADS), 1, 1))
        emitter.run_together()
        return kernel, kernel.finish((self.count, 1, 1))


def is_split(nest: Nest) -> bool:
    """True if a nest is a reduction, followed only by computations with its results."""
    if nest.accumulated or not nest.stages or not nest.stages[0].reductions:
        return False
    first, *rest = nest.stages
    members = nest.group.members
    if any(s.reductions or set(s.parallel) != set(first.parallel) for s in rest):
        return False
    if any(op.is_scan for op in members) or not all(map(is_combinable, first.reductions)):
        return False
    if nest.tail and any(g.extent == 0 for g in first.parallel):
        return False  # an empty grid is not launched, but a tail has results to store
    if first.in_memory:
        return True
    rows = extent(nest.outer) if not first.parallel else 0
    size = extent(first.reduced)
    few = isinstance(rows, int) and rows < BLOCKS
    return few and not (isinstance(size, int) and size <= LONG and rows != 1)


class _Chunk(KernelEmitter):
    def __init__(self, kernel: Kernel, split: SplitReduction, width: int) -> None:
        super().__init__(kernel, split.nest)
        self.split, self.width = split, width
        self.carried_all = [c for op in split.stage.reductions for c in self.carried(op)]
        with self.scope.point():
            self.thread = self.gpu.position("thread_id", "x")

    # --- the first step --------------------------------------------------------------------------

    def _bounds(self) -> tuple[ir.Value, ir.Value]:
        """Start and end of this block's chunk; chunks are multiples of the vector width."""
        gpu, split = self.gpu, self.split
        vectors = split.size if split.along_columns else split.size // self.width
        share = ix.ceil_div(vectors, split.chunks)
        if not split.along_columns:
            share = share * self.width
        chunk = gpu.position("block_id", "y")
        first = gpu.least(gpu.mul(chunk, self.size(share)), self.size(split.size))
        last = gpu.least(gpu.add(first, self.size(share)), self.size(split.size))
        return first, last

    def run_flat(self) -> None:
        """Emit the first kernel if neighbouring threads read neighbouring reduced elements."""
        gpu, split = self.gpu, self.split
        with self.scope.point():
            self.atoms[RESULT] = (gpu.position("block_id", "x"), 0)
            first, last = self._bounds()
            start = gpu.add(first, gpu.mul(self.thread, gpu.constant(self.width)))
            starts = self.neutrals(self.carried_all)
        self.place_spread(split.results, ix.atom(RESULT))
        step = THREADS * self.width
        with self.loop(ELEMENT, start, last, step, starts) as loop:
            self.store_lanes(ELEMENT, self.width, split.reduced, split.stage)
            totals = list(loop.inner_iter_args)
            for _ in self.lanes(ELEMENT, self.width, split.reduced):
                with self.scope.point():
                    totals = self.fold(self.carried_all, totals)
            self.end_loop(totals)
        with self.scope.point():
            combiners = combiners_of(self.carried_all)
            totals = in_block(self.kernel, combiners, list(loop.results), THREADS)
        with self.first_only(self.thread):
            self._deliver(totals, self.atoms[RESULT][0])

    def run_columns(self) -> None:
        """Emit the first kernel if neighbouring threads compute neighbouring results (columns).

        Each row of threads in a block reduces a part of the chunk.
        """
        gpu, split, width = self.gpu, self.split, self.width
        with self.scope.point():
            self.atoms[RESULT] = (gpu.position("block_id", "z"), 0)
            tile = gpu.mul(gpu.position("block_id", "x"), gpu.constant(WARP * width))
            column = gpu.add(tile, gpu.mul(self.thread, gpu.constant(width)))
            inside = gpu.less(column, self.size(split.columns))
            end = gpu.add(self.size(split.columns), gpu.constant(-width))
            self.atoms[COLUMN] = (gpu.least(column, end), 0)
            first, last = self._bounds()
            row = gpu.position("thread_id", "y")
            start = gpu.add(first, row)
            last = gpu.select(inside, last, start)
            starts = self.neutrals(self.carried_all) * width
        self.place_spread(split.results[:-1], ix.atom(RESULT))
        with self.loop(ELEMENT, start, last, HIGH, starts) as loop:
            self.end_loop(self._column_step(list(loop.inner_iter_args)))
        totals = self._down(list(loop.results), row)
        with self.scope.point():
            is_first = gpu.equal(row, gpu.constant(0))
            is_first = gpu.create("arith.andi", gpu.i1, is_first, inside)
        with self.only_if(is_first):
            for lane in self.lanes(COLUMN, width, [split.results[-1]]):
                with self.scope.point():
                    column = self.index_value(lane.index)
                    result = gpu.mul(self.atoms[RESULT][0], self.size(split.columns))
                    number = lane.number * len(self.carried_all)
                    part = totals[number : number + len(self.carried_all)]
                    self._deliver(part, gpu.add(result, column))

    def _column_step(self, totals: list[ir.Value]) -> list[ir.Value]:
        """Fold one more row into the accumulators of neighbouring columns; returns new values."""
        self.place_spread(self.split.reduced, ix.atom(ELEMENT))
        groups = [self.split.results[-1]]
        self.store_lanes(COLUMN, self.width, groups, self.split.stage)
        count = len(self.carried_all)
        new: list[ir.Value] = []
        for lane in self.lanes(COLUMN, self.width, groups):
            with self.scope.point():
                start = lane.number * count
                new += self.fold(self.carried_all, totals[start : start + count])
        return new

    def _down(self, values: list[ir.Value], row: ir.Value) -> list[ir.Value]:
        """Combine the values of all rows of threads in order; the first row gets the results."""
        gpu = self.gpu
        combiners = combiners_of(self.carried_all) * self.width
        totals = list(values)
        with self.scope.point():
            own = gpu.add(gpu.mul(row, gpu.constant(WARP)), self.thread)
            # All rows execute this code, but only the results of the first row are used.
            places = [gpu.add(self.thread, gpu.constant(k * WARP)) for k in range(1, HIGH)]
            for type_ in dict.fromkeys(v.type for v in values):
                mine = [k for k, v in enumerate(values) if v.type == type_]
                most = SHARED // (element_bytes(type_) * HIGH * WARP)
                memories = [self.kernel.shared(HIGH * WARP, type_) for _ in mine[:most]]
                for start in range(0, len(mine), most):
                    if start:
                        gpu.barrier()  # all threads have read the values of the last round
                    part = list(zip(memories, mine[start : start + most], strict=False))
                    for memory, k in part:
                        gpu.store(values[k], gpu.offset(memory, own, type_))
                    gpu.barrier()
                    for memory, k in part:
                        for place in places:
                            other = gpu.load(gpu.offset(memory, place, type_), type_)
                            totals[k] = combined(gpu, combiners[k], totals[k], other)
        return totals

    def _deliver(self, totals: list[ir.Value], number: ir.Value) -> None:
        """Store the partial results of a chunk, or the results if there is only one chunk."""
        if not self.split.partials:
            self._results(self.carried_all, totals)
            return
        gpu = self.gpu
        with self.scope.point():
            chunk = gpu.position("block_id", "y")
            place = gpu.add(gpu.mul(chunk, self.size(self.split.count)), number)
            for partial, total in zip(self.split.partials, totals, strict=True):
                gpu.store(total, gpu.offset(self._memory(partial), place, total.type))

    def _memory(self, partial: Temporary) -> ir.Value:
        assert partial.buffer is not None
        return self.pointers[partial.buffer]

    # --- the second step -------------------------------------------------------------------------

    def run_each(self) -> None:
        """Emit the second kernel with one thread per result."""
        gpu = self.gpu
        with self.scope.point():
            block = gpu.mul(gpu.position("block_id", "x"), gpu.constant(THREADS))
            result = gpu.add(block, self.thread)
            inside = gpu.less(result, self.size(self.split.count))
        with self.only_if(inside):
            with self.scope.point():
                zero = gpu.constant(0)
            totals = self._chunk_totals(zero, 1, result)
            self._finish(result, totals)

    def run_together(self) -> None:
        """Emit the second kernel with one block per result."""
        with self.scope.point():
            result = self.gpu.position("block_id", "x")
        totals = self._chunk_totals(self.thread, THREADS, result)
        with self.scope.point():
            totals = in_block(self.kernel, combiners_of(self.carried_all), totals, THREADS)
        with self.first_only(self.thread):
            self._finish(result, totals)

    def _chunk_totals(self, first: ir.Value, step: int, result: ir.Value) -> list[ir.Value]:
        gpu, split = self.gpu, self.split
        with self.scope.point():
            starts = self.neutrals(self.carried_all)
        with self.loop(ELEMENT, first, self.size(split.chunks), step, starts) as loop:
            with self.scope.point():
                place = gpu.mul(loop.induction_variable, self.size(split.count))
                place = gpu.add(place, result)
                parts = [gpu.load(gpu.offset(self._memory(p), place, p.element), p.element) for p in split.partials]
                combiners = combiners_of(self.carried_all)
                totals = [
                    combined(gpu, c, a, b) for c, a, b in zip(combiners, loop.inner_iter_args, parts, strict=True)
                ]
            self.end_loop(totals)
        return list(loop.results)

    def _finish(self, result: ir.Value, totals: list[ir.Value]) -> None:
        self.atoms[RESULT] = (result, len(self.scopes) - 1)
        self.place_spread(self.split.results, ix.atom(RESULT))
        self._results(self.carried_all, totals)

    def _results(self, carried: list[Carried], totals: list[ir.Value]) -> None:
        """Store the results of the reductions, and the values computed from them."""
        with self.scope.point():
            self.complete(carried, totals)
        after: list[Compute] = [op for stage in self.nest.stages[1:] for op in stage.maps]
        for op in [*self.split.stage.reductions, *after]:
            self.store_outputs(op)
        self.store_tail(self.split.stage.parallel)
