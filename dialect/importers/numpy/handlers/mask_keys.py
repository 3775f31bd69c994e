"""Masks in keys: which view of an array they pick from, and whether they are still the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....errors import BoundsError
from ..tracing.current import size_error, trace_error, user_loc
from ..tracing.operators import op
from ..tracing.recorder import Recorder
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar
from .axes import as_traced, is_mask

_MOST_OPS = 64  # of two masks that are compared


class Mask:
    """The places at which elements are picked.

    Attributes:
        picked: the traced array of bools.
        head: number of axes before those of the mask.
        values: number of values in the graph when the mask was read, which tells later writes.
    """

    __slots__ = ("head", "picked", "values")

    def __init__(self, picked: Traced, head: int) -> None:
        self.picked, self.head = picked, head
        self.values = picked.rec.program.count

    def moved(self, head: int) -> Mask:
        """The same mask, with another number of axes before its own."""
        mask = Mask(self.picked, head)
        mask.values = self.values
        return mask

    def over(self, rank: int) -> Traced:
        """The mask in a shape that broadcasts to that of an array of this rank.

        Raises TraceError if the mask has been written since it was read.
        """
        self.check_unwritten()
        tail = self.tail(rank)
        axes = tuple(range(self.picked.ndim, self.picked.ndim + tail))
        return op("expand_dims", self.picked, axes=axes) if axes else self.picked

    def check_unwritten(self) -> None:
        """Raise TraceError if the mask holds something else than when it was read."""
        if is_written(self.picked.rec, self.picked.value, self.values):
            raise trace_error(
                "a boolean mask is written between its use and that of what it has picked",
                "use a mask of its own: mask = mask & condition",
            )

    def tail(self, rank: int) -> int:
        """The number of axes after those of the mask, of an array of this rank."""
        return rank - self.head - self.picked.ndim


def same_mask(one: Mask, two: Mask) -> bool:
    """True if two masks pick the same places, as far as the graph tells."""
    a, b = one.picked.value, two.picked.value
    rec, memory, since = one.picked.rec, set[int](), min(one.values, two.values)
    todo, ops = [(a, b)], 0
    while todo:
        a, b = todo.pop()
        memory |= {memory_of(rec, a), memory_of(rec, b)}
        if a == b:
            continue
        instr, other = rec.defs.get(a), rec.defs.get(b)
        ops += 1
        if instr is None or other is None or instr.op is not other.op or ops > _MOST_OPS:
            return False
        if instr.blocks or not instr.op.pure or len(instr.results) != 1 or instr.attrs != other.attrs:
            return False
        if len(instr.operands) != len(other.operands):
            return False
        since = min(since, a, b)
        todo += zip(instr.operands, other.operands, strict=True)
    return memory.isdisjoint(written_since(rec, since))


def memory_of(rec: Recorder, value: int) -> int:
    """The value whose memory a view shows, or the value itself."""
    while (definition := rec.defs.get(value)) is not None:
        shared = definition.op.shared_operands(definition.results.index(value), len(definition.operands))
        if not shared:
            break
        value = definition.operands[shared[0]]
    return value


def is_written(rec: Recorder, value: int, since: int) -> bool:
    """True if the memory that a value shows was written after the value ``since`` was made."""
    memory = memory_of(rec, value)
    return any(memory == other for other in written_since(rec, since))


def written_since(rec: Recorder, since: int) -> Iterator[int]:
    """The memory that was written after the value ``since`` was made."""
    for block in rec.blocks:
        for instr in block.walk():
            if instr.op.writes and instr.results and instr.results[0] >= since:
                yield from (memory_of(rec, instr.operands[k]) for k in instr.op.writes)


def under_mask(x: Traced, key: Any) -> tuple[Traced, Mask] | None:
    """The view of ``x`` and the mask that pick what ``x[key]`` does; None for other keys.

    A key may have slices, numbers and newaxes beside one mask. Raises BoundsError for a mask that
    does not fit, and TraceError where NumPy's rule for several index arrays moves axes.
    """
    items = list(key) if isinstance(key, tuple) else [key]
    places = [k for k, item in enumerate(items) if is_mask(item)]
    if len(places) != 1:
        return None
    (at,) = places
    mask = as_traced(items[at])
    others = [i for k, i in enumerate(items) if k != at]
    if not all(i is None or i is Ellipsis or isinstance(i, (slice, TracedScalar)) or type(i) is int for i in others):
        return None
    count = mask.ndim + sum(i is not None and i is not Ellipsis for i in others)
    if count > x.ndim:
        raise BoundsError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {count} were indexed", loc=user_loc()
        )
    numbers = [k for k, i in enumerate(items) if type(i) is int or isinstance(i, TracedScalar)]
    if numbers and max(*numbers, at) - min(*numbers, at) != len(numbers):
        return None  # NumPy moves the axis of the picked elements to the front
    width = [slice(None)] * mask.ndim
    basic = [*items[:at], *width, *items[at + 1 :]]
    ellipsis = [k for k, i in enumerate(items) if i is Ellipsis]
    before = items[:at]
    if ellipsis and ellipsis[0] < at:
        rest = [slice(None)] * (x.ndim - count)
        before = [*items[: ellipsis[0]], *rest, *items[ellipsis[0] + 1 : at]]
        basic = [*before, *width, *items[at + 1 :]]
    head = sum(i is None or isinstance(i, slice) for i in before)
    plain = all(isinstance(i, slice) and i == slice(None) for i in basic if i is not Ellipsis)
    view = x if plain else x[tuple(basic)]
    _check_mask(view, mask, head)
    return view, Mask(mask, head)


def _check_mask(x: Traced, mask: Traced, head: int) -> None:
    for axis in range(mask.ndim):
        a, b = mask.hint[axis], x.hint[head + axis]
        if None in (a, b):
            continue
        # The sizes are compared for later calls, too: an axis of size 1 would broadcast.
        if a != b or not bool(mask.shape[axis] == x.shape[head + axis]):
            raise size_error(
                BoundsError,
                f"boolean index did not match indexed array along axis {head + axis}; size of axis "
                f"is {b} but size of corresponding boolean axis is {a}",
            )
