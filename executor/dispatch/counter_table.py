"""What emitted code counts and remembers, and what it depends on besides the plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...dialect.ir.device import HOST
from .leaf_spec import Leaf
from .llvm_writer import Writer
from .refs import Ref


@dataclass
class LeafCells:
    """Table indices of what a leaf counts.

    Attributes:
        hits: complete calls.
        timed, nanoseconds: per guard: how many hits were timed, and how long they took.
        slow: per step, nonzero once it has been seen to take longer than the threshold.
        when: time of the latest hit on the dispatcher's clock, which counts hits like this one;
            None for leaves that no guard has missed.
        missed: per array that outer guards check: the first of the cells for its flags, sizes and
            strides at that hit.
        launched: kernels that were started on a device, of which a call starts some; None on the
            host, where it starts all.
    """

    hits: int
    timed: dict[int, int] = field(default_factory=dict)
    nanoseconds: dict[int, int] = field(default_factory=dict)
    slow: list[int] = field(default_factory=list)
    when: int | None = None
    missed: dict[Ref, int] = field(default_factory=dict)
    launched: int | None = None


def cells_of(leaf: Leaf, w: Writer) -> LeafCells:
    """Cells for a leaf."""
    cells = LeafCells(w.cell())
    for step in leaf.steps:
        cells.slow.append(w.cell())
        if step.guard is not None and step.guard not in cells.timed:
            cells.timed[step.guard] = w.cell()
            cells.nanoseconds[step.guard] = w.cell()
    if leaf.device != HOST:
        cells.launched = w.cell()
    for value in leaf.checked():
        places = [w.cell() for _ in range(1 + 2 * len(value.sizes))]
        cells.missed[value.ref] = places[0]
    if leaf.missed:
        cells.when = w.cell()
    return cells


@dataclass(frozen=True)
class Shared:
    """Table indices of what all leaves share.

    Attributes:
        current: the number of the leaf that ran last, counted from 1.
        clock: how many hits came after a miss.
    """

    current: int
    clock: int


@dataclass(frozen=True)
class Settings:
    """What the emitted code depends on besides the leaves.

    Attributes:
        time_every: one hit in so many is timed.
        release_from: nanoseconds from which a kernel runs with the GIL released.
        recent: address of `last_executed.RECENT`.
        last: the object whose attribute ``plan`` says what this thread ran last.
        empty: (shape, dtype) -> array, for big ones.
        workspace: bytes -> address of scratch memory of this thread.
        scratch: bytes -> array of so many or more, to be dropped after the call.
    """

    time_every: int
    release_from: int
    recent: int
    last: Any
    empty: Callable[[tuple, np.dtype], np.ndarray]
    workspace: Callable[[int], int]
    scratch: Callable[[int], np.ndarray]
