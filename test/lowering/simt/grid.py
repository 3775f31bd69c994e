"""Threads: which there are, which of them run, and who they are."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .faults import Coordinates, KernelFault, Site

SUBGROUP = 32


class Wave:
    """Blocks that run at the same time, in lock step.

    Args:
        grid, block: sizes of the launch.
        first, count: the blocks, by linear number.

    ``barriers[space]`` counts the barriers each block has passed that order that address space.
    """

    def __init__(self, grid: Coordinates, block: Coordinates, first: int, count: int) -> None:
        self.grid, self.block = grid, block
        self.first, self.count = first, count
        self.block_threads = int(np.prod(block))
        self.threads = count * self.block_threads
        self.everyone = np.ones(self.threads, bool)
        self.barriers = {space: np.zeros(count, np.int64) for space in ("global", "workgroup")}

    @cached_property
    def in_block(self) -> np.ndarray:
        """Linear number of each thread in its block."""
        return np.tile(np.arange(self.block_threads), self.count)

    @cached_property
    def block_number(self) -> np.ndarray:
        """Linear number of each thread's block in the grid."""
        return np.repeat(np.arange(self.first, self.first + self.count), self.block_threads)

    def thread_id(self, axis: int) -> np.ndarray:
        """Each thread's coordinate in its block."""
        return _coordinate(self.in_block, self.block, axis)

    def block_id(self, axis: int) -> np.ndarray:
        """The coordinate of each thread's block."""
        return _coordinate(self.block_number, self.grid, axis)


class Active:
    """The threads of a wave that run an op.

    Attributes:
        mask: True per thread of the wave that runs.
        site: the op they are at, for messages; the interpreter keeps it current.
    """

    def __init__(self, wave: Wave, mask: np.ndarray) -> None:
        self.wave, self.mask = wave, mask
        self.site: Site | None = None

    @cached_property
    def all(self) -> bool:
        """Whether every thread of the wave runs."""
        return bool(self.mask.all())

    @cached_property
    def lanes(self) -> np.ndarray:
        """Numbers in the wave of the threads that run."""
        return np.flatnonzero(self.mask)

    @cached_property
    def blocks_in_wave(self) -> np.ndarray:
        """Number in the wave of the block of each thread that runs."""
        return self.lanes // self.wave.block_threads

    @cached_property
    def threads(self) -> np.ndarray:
        """Number in the launch of each thread that runs."""
        return self.lanes + self.wave.first * self.wave.block_threads

    def first(self) -> Active:
        """The first of the threads, alone."""
        mask = np.zeros_like(self.mask)
        mask[self.lanes[:1]] = True
        alone = Active(self.wave, mask)
        alone.site = self.site
        return alone

    def where(self, bad: np.ndarray) -> tuple[Coordinates, Coordinates]:
        """Coordinates of the block and of the thread of the first True among the active threads."""
        return coordinates(self.wave, int(self.threads[np.argmax(bad)]))

    def fault(self, kind: str, what: str, bad: np.ndarray) -> None:
        """Raise a `KernelFault` at the first True among the active threads."""
        raise KernelFault(kind, what, self.site, *self.where(bad))


def coordinates(wave: Wave, thread: int) -> tuple[Coordinates, Coordinates]:
    """Coordinates of the block and of the thread with this number in the launch."""
    block, place = divmod(thread, wave.block_threads)
    return _unflatten(block, wave.grid), _unflatten(place, wave.block)


def _coordinate(number: np.ndarray, sizes: Coordinates, axis: int) -> np.ndarray:
    return number // int(np.prod(sizes[:axis], dtype=int)) % sizes[axis]


def _unflatten(number: int, sizes: Coordinates) -> Coordinates:
    x, y, _ = sizes
    return number % x, number // x % y, number // (x * y)
