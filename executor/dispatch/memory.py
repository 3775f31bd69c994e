"""Memory of what a leaf's kernels hand to each other: one block, whose places are used again.

Nothing but the kernels of the same call can see these arrays, which is why they need no array
objects and can lie at fixed places. Sizes may be expressions; so are then the places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...dialect.device import HOST
from ..arrays import ALIGNMENT
from .sizes import Size, bytes_of
from .spec import MadeValue, Step, Value


@dataclass(frozen=True)
class Placement:
    """Where in the block arrays lie.

    Attributes:
        offsets: value -> bytes from the start, a multiple of `arrays.ALIGNMENT`.
        total: bytes of the block; 0 = no array needs a place.
    """

    offsets: Mapping[int, Size] = field(default_factory=dict)
    total: Size = 0


def lay_out(
    steps: Sequence[Step], values: Mapping[int, Value], outputs: Sequence[int]
) -> Placement:
    """Places for the arrays that some step makes and the caller never sees.

    Two share memory only if the last step that reads the one runs before the step that makes the
    other: kernels are compiled for outputs that overlap no input.
    """
    last = {o: k for k, step in enumerate(steps) for o in (*step.results, *step.operands)}
    sizes: list[Size] = []  # per place
    free: list[int] = []
    where: dict[int, int] = {}
    for index, step in enumerate(steps):
        for result in step.results:
            made = values[result]
            if not isinstance(made, MadeValue) or result in outputs:
                continue
            if made.sizes or made.device != HOST:  # the host's of rank 0 lie on the stack
                where[result] = _take(bytes_of(made.dtype.itemsize, made.sizes), sizes, free)
        touched = dict.fromkeys((*step.results, *step.operands))
        free += [where[v] for v in touched if v in where and last[v] == index]
    starts: list[Size] = [0]
    for size in sizes:
        starts.append(_sum(starts[-1], _aligned(size)))
    return Placement({value: starts[k] for value, k in where.items()}, starts[-1])


def larger(a: Size, b: Size) -> Size:
    """The larger of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a if a == b else ("max", a, b)


def _take(size: Size, sizes: list[Size], free: list[int]) -> int:
    """A free place for so many bytes, made bigger if need be, or a new one."""
    if not free:
        sizes.append(size)
        return len(sizes) - 1
    found = min(free, key=lambda k: _misfit(sizes[k], size))
    free.remove(found)
    sizes[found] = larger(sizes[found], size)
    return found


def _misfit(room: Size, size: Size) -> tuple[int, int]:
    """How badly a place fits: the least waste first, then the least growth, unknown ones last."""
    if room == size:
        return 0, 0
    if isinstance(room, int) and isinstance(size, int):
        return (1, room - size) if room > size else (2, size - room)
    return 3, 0


def _sum(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) and isinstance(b, int) else ("+", a, b)


def _aligned(size: Size) -> Size:
    if isinstance(size, int):
        return -(-size // ALIGNMENT) * ALIGNMENT
    return "*", ("//", ("+", size, ALIGNMENT - 1), ALIGNMENT), ALIGNMENT
