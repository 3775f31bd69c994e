"""Row kernels: a warp or a block per iteration of the outer loops, all stages in one kernel.

The size of a row decides where one stage keeps data for the next:

* in registers, if the size is known and moderate (`_held`): loops over the row are unrolled;
* in shared memory, if the data that later stages need fits (`in_shared`, `staging`). A row of
  unknown size is tested by a condition of the launch;
* otherwise nowhere: each stage reads the row again.
"""

from __future__ import annotations

from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.ir.symbolic import Dim
from ...emit.reduction_loops import Carried
from ...emit.steps import buffers_of
from ...schedule import affine as ix
from ...schedule.affine import Atom
from ...schedule.groups import Loop
from ...schedule.nests import Nest, NestStage
from ..chip import shared_bytes
from ..launch_plan import Condition, Launch
from .combine import combiners_of, in_block, is_combinable
from .emitter import KernelEmitter, iterations, merged, offsets, spread, vector_width
from .kernel import Kernel, KernelMemory, element_size
from .ops import WARP
from .staging import RowMemory, Staging, staging

SMALL = 512  # one warp computes a row of at most this many elements
SHARE = 8  # number of elements of a row that each thread of a block should compute
MOST = 16  # largest number of elements of each tensor that a thread keeps in registers
HELD = 64  # largest number of registers for kept elements
THREADS = 1024
WARPS = 4  # rows per block, if one warp computes a row
DYNAMIC_THREADS = 256
ROW = ("row",)


@dataclass(frozen=True)
class Shape:
    """The division of rows among threads.

    Attributes:
        width: number of neighbouring elements per access.
        threads: number of threads per row, a power of two.
        rows: number of rows per block.
    """

    width: int
    threads: int
    rows: int


def is_rows(nest: Nest) -> bool:
    """True if every stage either reduces whole rows or computes elements.

    Elements that a later stage reads can then be computed again, so nothing has to be stored in
    between. A reduction along only a part of the row could not be computed again.
    """
    if nest.tile is not None or nest.accumulated or not nest.stages:
        return False
    return all(
        is_combinable(op) and not stage.parallel for stage in nest.stages for op in stage.reductions
    ) and not any(op.is_scan for op in nest.group.members)


def in_shared(nest: Nest, chip: str) -> tuple[bool, Condition | None]:
    """True if rows can be kept in shared memory, and the condition of the launch; None = none."""
    stages = _stages(nest)
    shape = _shape(nest, stages)
    need = _staging(nest, stages, shape).bytes_ * shape.rows
    warps = shape.threads // WARP
    parts = [t for stage in nest.stages for op in stage.reductions for t in op.outputs]
    combining = sum(map(element_size, parts)) * warps if warps > 1 else 0
    room = shared_bytes(chip, shape.threads * shape.rows) - combining
    if isinstance(need, int):
        return 0 < need <= room, None
    return (True, Condition("below", str(need), room + 1)) if room > 0 else (False, None)


def rows(memory: KernelMemory, name: str, nest: Nest, fast: bool, staged: bool) -> tuple[Kernel, Launch]:
    """The kernel of a nest of rows; ``staged``: keep rows in shared memory (`in_shared`)."""
    stages = _stages(nest)
    shape = _shape(nest, stages)
    kernel = Kernel(memory, name, buffers_of(nest), (shape.threads, shape.rows, 1), fast)
    if not fast or not all(kernel.divisible(iterations(groups), shape.width) for groups in stages):
        shape = Shape(1, shape.threads, shape.rows)
    outer = merged(nest, nest.outer)
    count = iterations(outer)
    plan = _staging(nest, stages, shape) if staged else Staging()
    _Rows(kernel, nest, shape, stages, outer, plan).run_all(count)
    return kernel, kernel.finish((ix.ceil_div(count, shape.rows), 1, 1))


def _stages(nest: Nest) -> list[list[list[Loop]]]:
    return [merged(nest, [*stage.parallel, *stage.reduced]) for stage in nest.stages]


def _staging(nest: Nest, stages: list[list[list[Loop]]], shape: Shape) -> Staging:
    most = _held(nest, shape)
    loops = {
        number: (_column(iterations(groups)), groups)
        for number, groups in enumerate(stages)
        if not _is_unrolled(iterations(groups), shape, most)
    }
    return staging(nest, spread(merged(nest, nest.outer), ix.atom(ROW)), loops)


def _column(size: Dim) -> Atom:
    return ("column", size)


def _chunks(size: int, shape: Shape) -> int:
    return -(-size // (shape.threads * shape.width))


def _is_unrolled(size: Dim, shape: Shape, most: int) -> bool:
    return isinstance(size, int) and _chunks(size, shape) * shape.width <= most


def _shape(nest: Nest, stages: list[list[list[Loop]]]) -> Shape:
    sizes = [iterations(groups) for groups in stages]
    widths = [vector_width(nest, groups[-1][-1]) for groups in stages if groups]
    width = min(widths, default=1)
    literals = [s for s in sizes if isinstance(s, int)]
    while width > 1 and any(s % width for s in literals):
        width //= 2
    if len(literals) < len(sizes):
        return Shape(width, DYNAMIC_THREADS, 1)
    longest = max(literals)
    if longest <= SMALL:
        return Shape(width, WARP, WARPS)
    threads = 2 * WARP
    while threads < THREADS and threads * SHARE < longest:
        threads *= 2
    return Shape(width, threads, 1)


class _Rows(KernelEmitter):
    def __init__(
        self,
        kernel: Kernel,
        nest: Nest,
        shape: Shape,
        stages: list[list[list[Loop]]],
        outer: list[list[Loop]],
        kept: Staging,
    ) -> None:
        super().__init__(kernel, nest)
        self.shape, self.stage_groups, self.outer_groups = shape, stages, outer
        self.row = RowMemory(self, kept, shape.width, shape.rows)
        self.held = _held(nest, shape)

    def run_all(self, count: Dim) -> None:
        """Emit everything."""
        gpu = self.gpu
        with self.scope.point():
            row = gpu.position("block_id", "x")
            self.thread = gpu.position("thread_id", "x")
            self.row.declare()
            if self.shape.rows > 1:
                row = gpu.mul(row, gpu.constant(self.shape.rows))
                row = gpu.add(row, gpu.position("thread_id", "y"))
        self.atoms[ROW] = (row, 0)
        self.place_spread(self.outer_groups, ix.atom(ROW))
        if self.shape.rows > 1 and not (isinstance(count, int) and count % self.shape.rows == 0):
            with self.scope.point():
                inside = gpu.less(row, self.size(count))
            # All lanes of a warp belong to the same row, so they take the same branch.
            with self.only_if(inside):
                self._stages()
        else:
            self._stages()

    def _stages(self) -> None:
        for number, stage in enumerate(self.nest.stages):
            self.stage_number = number
            groups = self.stage_groups[number]
            carried = [c for op in stage.reductions for c in self.carried(op)]
            with self.scope.point():
                starts = self.neutrals(carried)
            size = iterations(groups)
            if isinstance(size, int) and _is_unrolled(size, self.shape, self.held):
                ends = self._unrolled(stage, groups, size, carried, starts)
            else:
                ends = self._looped(stage, groups, size, carried, starts)
            self._finish(carried, ends)
        self._store_results()

    # --- one stage -------------------------------------------------------------------------------

    def _unrolled(
        self, stage: NestStage, groups: list[list[Loop]], size: int, carried: list[Carried], totals: list[ir.Value]
    ) -> list[ir.Value]:
        for number in range(_chunks(size, self.shape)):
            atom, inside = self._chunk(size, number)
            if inside is None:
                self.store_lanes(atom, self.shape.width, groups, stage)
            elif any(t.buffer is not None for op in stage.maps for t in op.outputs):
                with self.only_if(inside):
                    self.store_lanes(atom, self.shape.width, groups, stage)
            totals = self._folded(stage, groups, atom, carried, totals, inside)
        return totals

    def _chunk(self, size: int, number: int) -> tuple[Atom, ir.Value | None]:
        """The start of a thread's part of a row, and whether it is inside the row; None = it is.

        A thread outside of the row computes the row's last elements, and its values are ignored.
        """
        gpu, shape = self.gpu, self.shape
        atom = ("chunk", size, number)
        key = ("inside", atom)
        entry = self.remembered(key)
        if entry is None:
            with self.scope.point():
                start = gpu.mul(self.thread, gpu.constant(shape.width))
                start = gpu.add(start, gpu.constant(number * shape.threads * shape.width))
                inside = None
                if (number + 1) * shape.threads * shape.width > size:
                    inside = gpu.less(start, gpu.constant(size))
                    start = gpu.least(start, gpu.constant(size - shape.width))
            self.atoms[atom] = (start, len(self.scopes) - 1)
            entry = self.scope.memo[key] = (inside,)
        return atom, entry[0]

    def _looped(
        self, stage: NestStage, groups: list[list[Loop]], size: Dim, carried: list[Carried], starts: list[ir.Value]
    ) -> list[ir.Value]:
        shape = self.shape
        with self.scope.point():
            first = self.gpu.mul(self.thread, self.gpu.constant(shape.width))
        atom = _column(size)
        step = shape.threads * shape.width
        with self.loop(atom, first, self.size(size), step, starts) as loop:
            with self.scope.point():
                self.row.take(self.stage_number)
            self.store_lanes(atom, shape.width, groups, stage)
            inner = self._folded(stage, groups, atom, carried, list(loop.inner_iter_args), None)
            with self.scope.point():
                self.row.leave(self.stage_number, groups)
            self.end_loop(inner)
        return list(loop.results)

    def _folded(
        self,
        stage: NestStage,
        groups: list[list[Loop]],
        atom: Atom,
        carried: list[Carried],
        totals: list[ir.Value],
        inside: ir.Value | None,
    ) -> list[ir.Value]:
        """Fold one more part of the row into the accumulators; returns their new values."""
        for _ in self.lanes(atom, self.shape.width, groups):
            with self.scope.point():
                new = self.fold(carried, totals)
                if inside is not None:
                    new = [self.gpu.select(inside, n, t) for n, t in zip(new, totals, strict=True)]
                totals = new
        return totals

    # --- results ---------------------------------------------------------------------------------

    def _finish(self, carried: list[Carried], ends: list[ir.Value]) -> None:
        if not carried:
            return
        with self.scope.point():
            totals = in_block(self.kernel, combiners_of(carried), ends, self.shape.threads)
            self.complete(carried, totals)

    def _store_results(self) -> None:
        """Store the results that have one element per row."""
        reductions = [op for stage in self.nest.stages for op in stage.reductions]
        stored = [op for op in [*reductions, *self.nest.tail] if any(t.buffer is not None for t in op.outputs)]
        if not stored:
            return
        with self.first_only(self.thread):
            for op in stored:
                self.store_outputs(op)


def _held(nest: Nest, shape: Shape) -> int:
    """Number of elements of each tensor that a thread can keep in registers."""
    inner = {g for stage in nest.stages for g in (*stage.parallel, *stage.reduced)}
    streams = {
        tensor
        for tensor, offset in offsets(nest).pairs
        if any(a in inner for index in [offset] for a in ix.atoms_of(index))
    }
    registers = HELD if shape.threads <= THREADS // 2 else HELD // 2
    return min(MOST, registers // max(1, len(streams)))
