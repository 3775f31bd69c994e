"""Pointwise kernels: every thread computes neighbouring elements, in grid-stride loops.

Loops are merged where all accesses can use one index for them. The innermost remaining loop runs
along x of the grid, and all others, as rows, along y. Only the row number is split by divisions,
outside of the loop along x.
"""

from __future__ import annotations

from ....dialect.ir.size_algebra import sym_min
from ....dialect.ir.symbolic import Dim
from ...emit.steps import buffers_of
from ...schedule import affine as ix
from ...schedule.groups import Loop
from ...schedule.nests import Nest, NestStage
from ..launch_plan import Launch
from .emitter import KernelEmitter, extent, iterations, merged, vector_width
from .kernel import Kernel, KernelMemory

THREADS = 256
BLOCKS = 1 << 16  # largest number of blocks along x; a grid-stride loop does the rest
ROWS = 65535  # largest number of blocks along y that the hardware allows
COLUMN, ROW = ("column",), ("row",)


def is_pointwise(nest: Nest) -> bool:
    """True if a nest computes each element independently of all others."""
    if len(nest.stages) > 1 or any(op.is_reduction for op in nest.group.members):
        return False
    # An empty grid is not launched, but a tail still has results to store.
    return not nest.tail or all(g.extent != 0 for s in nest.stages for g in s.parallel)


def pointwise(memory: KernelMemory, name: str, nest: Nest, fast: bool) -> tuple[Kernel, Launch]:
    """The kernel of a pointwise nest."""
    stage = nest.stages[0] if nest.stages else NestStage([], maps=list(nest.group.members))
    groups = merged(nest, [*nest.outer, *stage.parallel]) or [[]]
    inner, outer = groups[-1], groups[:-1]
    size, rows = extent(inner), iterations(outer)
    width = _width(nest, inner, size, bool(outer))
    threads = _threads(size, width) if outer else (THREADS if inner else 32)
    high = THREADS // threads if outer else 1
    kernel = Kernel(memory, name, buffers_of(nest), (threads, high, 1), fast)
    emitter = _Pointwise(kernel, nest, stage, inner, outer, width)
    emitter.run_rows(rows)
    along = sym_min(ix.ceil_div(size, threads * width), BLOCKS)
    return kernel, kernel.finish((along, sym_min(ix.ceil_div(rows, high), ROWS), 1))


def _width(nest: Nest, inner: list[Loop], size: Dim, has_rows: bool) -> int:
    width = vector_width(nest, inner[-1]) if inner else 1
    if isinstance(size, int):
        # Rows of other lengths start at addresses that are not aligned for vectors.
        while width > 1 and (size < width or (has_rows and size % width)):
            width //= 2
    return width


def _threads(size: Dim, width: int) -> int:
    """Number of threads along x: a power of two, and not more than a row of known size needs."""
    threads = 32
    while threads < THREADS and isinstance(size, int) and threads * width < size:
        threads *= 2
    while threads > 1 and isinstance(size, int) and threads * width >= 2 * size:
        threads //= 2
    return threads


class _Pointwise(KernelEmitter):
    def __init__(
        self, kernel: Kernel, nest: Nest, stage: NestStage, inner: list[Loop], outer: list[list[Loop]], width: int
    ) -> None:
        super().__init__(kernel, nest)
        self.stage_, self.inner, self.outer_groups = stage, inner, outer
        self.width = width if kernel.fast else 1

    def run_rows(self, rows: Dim) -> None:
        """Emit everything."""
        if not self.outer_groups:
            self.iteration()
            return
        with self.scope.point():
            first, step = self._linear("y")
        with self.loop(ROW, first, self.size(rows), step):
            self.place_spread(self.outer_groups, ix.atom(ROW))
            self.iteration()
            self.end_loop()

    def iteration(self) -> None:
        if self.inner:
            self._columns()
        else:
            self._single()
        if self.nest.stages and self.nest.tail:
            with self.scope.point():
                is_first = self.gpu.equal(self._linear("x")[0], self.size(0))
            with self.only_if(is_first):
                self.store_tail([g for g in self.stage_.parallel if g not in self.inner])

    def _linear(self, axis: str):
        """This thread's number along an axis of the grid, and the number of threads along it."""
        gpu = self.gpu
        threads = gpu.position("block_dim", axis)
        block = gpu.mul(gpu.position("block_id", axis), threads)
        total = gpu.mul(gpu.position("grid_dim", axis), threads)
        return gpu.add(block, gpu.position("thread_id", axis)), total

    def _columns(self) -> None:
        size = extent(self.inner)
        with self.scopes[0].point():
            thread, total = self._linear("x")
            step = self.gpu.mul(total, self.size(self.width))
            first = self.gpu.mul(thread, self.size(self.width))
            whole = self.size(size // self.width * self.width)
        self._along(first, whole, step, self.width)
        if self.width > 1 and not self._is_whole(size):
            with self.scopes[0].point():
                first = self.gpu.add(whole, thread)
            self._along(first, self.size(size), total, 1)

    def _is_whole(self, size: Dim) -> bool:
        """True if vectors cover a whole row, without single elements at its end."""
        if isinstance(size, int):
            return size % self.width == 0
        return bool(self.outer_groups) and self.kernel.divisible(size, self.width)

    def _along(self, first, end, step, width: int) -> None:
        with self.loop(COLUMN, first, end, step):
            self.store_lanes(COLUMN, width, [self.inner], self.stage_)
            self.end_loop()

    def _single(self) -> None:
        """Compute a result of one element, in one thread."""
        with self.scope.point():
            thread = self.gpu.position("thread_id", "x")
        with self.first_only(thread):
            self.store_lanes(COLUMN, 1, [], self.stage_)
