"""Serial kernels: one thread per iteration of the outer loops runs all other loops like a CPU.

They serve the nests that no other family supports: scans, reductions whose elements cannot be
regrouped (argmax), and nests that read elements which another iteration has computed. Each
iteration of the outer loops has a place of its own in the workspace for temporaries.
"""

from __future__ import annotations

from dataclasses import field

from ....dialect.dataclass import dataclass
from ....dialect.ir.size_algebra import sym_min
from ....dialect.ir.symbolic import Dim
from ...emit.nest import NestEmitter
from ...emit.steps import buffers_of
from ...schedule import affine as ix
from ...schedule.affine import AffineIndex
from ...schedule.graph import Compute, Tensor
from ...schedule.groups import Loop
from ...schedule.nests import TILE, Nest, Scratch
from ..launch_plan import Launch
from .emitter import KernelEmitter, extent
from .kernel import Kernel, KernelMemory, Temporary

THREADS = 128
BLOCKS = 4096
ROW = ("row",)


@dataclass
class Serial:
    """The kernel of a nest in which only the outer loops run in parallel.

    ``scratch``: temporaries of the nest, one copy for each iteration of the outer loops and tiles.
    """

    nest: Nest
    scratch: dict[Tensor, Temporary] = field(default_factory=dict)

    @property
    def rows(self) -> Dim:
        return extent(self.nest.outer)

    @property
    def tiles(self) -> Dim:
        tile = self.nest.tile
        return 1 if tile is None else ix.ceil_div(tile.extent, TILE)

    def temporaries(self) -> list[Temporary]:
        self.scratch = {
            tensor: Temporary(scratch.element, (self.rows, self.tiles, *scratch.dims))
            for tensor, scratch in self.nest.scratch.items()
        }
        return list(self.scratch.values())

    def kernels(self, memory: KernelMemory, name: str, fast: bool) -> list[tuple[Kernel, Launch]]:
        buffers = dict.fromkeys(buffers_of(self.nest))
        buffers.update((t.buffer, None) for t in self.scratch.values() if t.buffer is not None)
        kernel = Kernel(memory, name, list(buffers), (THREADS, 1, 1), fast)
        _Serial(kernel, self).run()
        count = self.rows if self.nest.outer else self.tiles
        blocks = sym_min(ix.ceil_div(count, THREADS), BLOCKS)
        return [(kernel, kernel.finish((blocks, 1, 1)))]


class _Serial(KernelEmitter):
    def __init__(self, kernel: Kernel, serial: Serial) -> None:
        super().__init__(kernel, serial.nest)
        self.serial = serial
        for tensor, temporary in serial.scratch.items():
            assert temporary.buffer is not None
            self.scratch[tensor] = self.pointers[temporary.buffer]

    def run(self) -> None:
        gpu = self.gpu
        with self.scope.point():
            threads = gpu.constant(THREADS)
            block = gpu.mul(gpu.position("block_id", "x"), threads)
            self.thread = gpu.add(block, gpu.position("thread_id", "x"))
            self.total = gpu.mul(gpu.position("grid_dim", "x"), threads)
        if self.nest.tile is not None and not self.nest.outer:
            self._row_or_tiles()
            return
        with self.loop(ROW, self.thread, self.size(self.serial.rows), self.total):
            if self.nest.outer:
                self.place_spread([[g] for g in self.nest.outer], ix.atom(ROW))
            self._row_or_tiles()
            self.end_loop()

    def _row_or_tiles(self) -> None:
        if self.nest.tile is None:
            self.iteration()
        else:
            self._tiles(self.nest.tile)

    def _tiles(self, loop: Loop) -> None:
        """Loop over the tiles of a row; if there is only one row, threads share its tiles."""
        gpu, high = self.gpu, self.size(loop.extent)
        low, step = self.size(0), self.size(TILE)
        if not self.nest.outer:
            with self.scopes[0].point():
                low, step = gpu.mul(self.thread, step), gpu.mul(self.total, step)
        with self.loop(("tile", loop), low, high, step):
            with self.scope.point():
                start = self.atoms["tile", loop][0]
                self.tile_end = gpu.least(gpu.add(start, self.size(TILE)), high)
            self.iteration()
            self.end_loop()

    def is_inlined(self, op: Compute) -> bool:
        return NestEmitter.is_inlined(self, op)

    def _scratch_offset(self, scratch: Scratch, index: tuple[AffineIndex, ...]) -> AffineIndex:
        offset = super()._scratch_offset(scratch, index)
        size = ix.product(scratch.dims)
        if self.nest.tile is not None:
            tile = ix.quotient(ix.atom(("tile", self.nest.tile)), TILE, False)
            offset = offset + tile.scale(size)
        if self.nest.outer:
            offset = offset + ix.atom(ROW).scale(self.serial.tiles * size)
        return offset
