"""The cells in which emitted code counts, and the settings on which the code depends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import HOST
from .leaf_spec import Leaf
from .llvm_writer import Writer
from .refs import Ref


@dataclass
class LeafCells:
    """Table indices of a leaf's cells. Each cell holds a 64-bit integer.

    Attributes:
        hits: number of complete calls.
        timed: guard index -> number of timed hits.
        nanoseconds: guard index -> total time of the timed hits.
        slow: per step; nonzero if its latest timed run took longer than the threshold.
        when: the dispatcher's clock at the latest hit (the clock counts hits that come after a
            miss); None for the leaf of an outermost plan, which no miss precedes.
        missed: per array that outer guards check, the first of the cells that keep its flags,
            whether it requires gradients, its sizes and strides at the latest hit.
        late: number of calls that were given up behind a function of a library; None = it calls
            none.
        launched: number of kernels started on a device, where sizes decide which kernels a call
            starts; None on the host, where each call starts all kernels.
    """

    hits: int
    timed: dict[int, int] = field(default_factory=dict)
    nanoseconds: dict[int, int] = field(default_factory=dict)
    slow: list[int] = field(default_factory=list)
    when: int | None = None
    missed: dict[Ref, int] = field(default_factory=dict)
    late: int | None = None
    launched: int | None = None


def cells_of(leaf: Leaf, w: Writer) -> LeafCells:
    """Allocate the cells of a leaf."""
    cells = LeafCells(w.cell())
    for step in leaf.steps:
        cells.slow.append(w.cell())
        if step.guard is not None and step.guard not in cells.timed:
            cells.timed[step.guard] = w.cell()
            cells.nanoseconds[step.guard] = w.cell()
    if leaf.between:
        cells.late = w.cell()
    if leaf.device != HOST:
        cells.launched = w.cell()
    for value in leaf.checked():
        places = [w.cell() for _ in range(2 + 2 * len(value.sizes))]
        cells.missed[value.ref] = places[0]
    if leaf.missed:
        cells.when = w.cell()
    return cells


@dataclass(frozen=True)
class Shared:
    """Table indices of the cells that all leaves share.

    Attributes:
        current: number of the leaf that ran last, counted from 1.
        clock: number of hits that came after a miss.
    """

    current: int
    clock: int


@dataclass(frozen=True)
class Settings:
    """Settings and functions on which the emitted code depends, besides the leaves.

    Attributes:
        time_every: one hit in this many is timed.
        release_from: a kernel that takes at least this many nanoseconds runs without the GIL.
        recent: address of `last_executed.RECENT`.
        last: `last_executed.LAST`; its attribute ``plan`` is the plan that this thread ran last.
        empty: (shape, dtype) -> a new array; used for large arrays.
        workspace: number of bytes -> address of a kernel workspace of this thread.
        scratch: number of bytes -> array of at least that size, to be dropped after the call.
        asks: whether calls may be plain Python's, where debuggers are at work for instance.
    """

    time_every: int
    release_from: int
    recent: int
    last: Any
    empty: Callable[[tuple, np.dtype], np.ndarray]
    workspace: Callable[[int], int]
    scratch: Callable[[int], np.ndarray]
    asks: bool = False
