"""The relaxed guard of fused GPU code: sizes are free, what it was specialised for is not (R3.42).

Compared are dtype, rank, device, requires_grad, the order of strides, contiguity where it was
profiled, and which sizes are 0 and 1, which broadcast, or leave nothing to compute.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from ..ir.types import TensorType, Type, contiguous_strides


class Layout(NamedTuple):
    """What a guard asks of strides.

    Attributes:
        strides: of elements, per axis; None where they are not known.
        order: axes from the largest stride to the smallest, without those of size 1, those that
            broadcast and those of unknown stride.
        dense: those of ``order`` along which there are no gaps.
    """

    strides: tuple[int | None, ...]
    order: list[int]
    dense: set[int]


def layout_of(type_: TensorType) -> Layout:
    """The layout that a type stands for; of unknown strides the order is not known."""
    strides, shape = _strides(type_), type_.shape or ()
    known = [axis for axis, stride in enumerate(strides) if stride and shape[axis] != 1]
    order = sorted(known, key=lambda axis: -(strides[axis] or 0))
    return Layout(strides, order, _dense(type_, strides, order))


def layout_mismatch(want: Layout, got: TensorType) -> str | None:
    """Why the strides of a value's type do not fit, in words; None if they do."""
    if 0 in (got.shape or ()):
        return None  # no element, hence no address, depends on the strides
    strides = _strides(got)
    counted = [axis for axis in want.order if (got.shape or ())[axis] != 1]
    found = [strides[axis] for axis in counted if strides[axis]]
    if any(a < b for a, b in pairwise(found)):  # type: ignore[operator]
        return f"strides {strides} are in another order, specialised for {want.strides}"
    dense = _dense(got, strides, want.order)
    for axis in counted:
        if axis in want.dense and axis not in dense:
            return f"dimension {axis} is not contiguous, specialised for a contiguous one"
    return None


def _strides(type_: TensorType) -> tuple[int | None, ...]:
    """Element strides; None where nothing is known."""
    shape = type_.shape or ()
    if isinstance(type_.strides, tuple):
        return type_.strides
    if type_.strides is None:
        return (None,) * len(shape)
    # Of a contiguous tensor of unknown sizes the order is known: any sizes do.
    return contiguous_strides([d if isinstance(d, int) else 2 for d in shape])  # type: ignore[return-value]


def _dense(type_: TensorType, strides: Sequence[int | None], order: Sequence[int]) -> set[int]:
    """The axes, of those in ``order``, along which there are no gaps."""
    shape = type_.shape or ()
    if type_.strides == "contiguous":
        return set(order)
    found, expected = set(), 1
    for axis in reversed(order):
        stride, size = strides[axis], shape[axis]
        if size == 1:
            continue
        if stride == expected:
            found.add(axis)
        if not isinstance(size, int) or not stride:
            break
        expected = stride * size
    return found


def relaxed(type_: Type) -> Type:
    """What is known of a tensor that has passed the guard: of sizes, only those that are 0 or 1."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    shape = tuple(d if d in (0, 1) else None for d in type_.shape)
    strides = type_.strides if type_.strides == "contiguous" else None
    return replace(type_, shape=shape, strides=strides)


# --- size checks -------------------------------------------------------------------------------


# Whether size checks compare at all, 1 or 0: in memory that emitted code reads, too.
SIZE_CHECKS = bytearray([1])
_lock = threading.Lock()


def set_size_checks(on: bool) -> bool:
    """Let `size_eq` compare, or answer true always; returns the previous setting (R3.43)."""
    with _lock:
        before, SIZE_CHECKS[0] = SIZE_CHECKS[0], bool(on)
    return bool(before)


def get_size_checks() -> bool:
    """Whether `size_eq` compares."""
    return bool(SIZE_CHECKS[0])


def sizes_match(sizes: Sequence[int] | None, reference: Sequence[int]) -> bool:
    """Whether a run-time target of a sum stands for the same axes as the profiled one (R3.43).

    An empty reference stands for None. Else lengths are equal, and the same positions are 1.
    """
    if not SIZE_CHECKS[0]:
        return True
    if not reference or sizes is None:
        return not reference and sizes is None
    return [size == 1 for size in sizes] == [size == 1 for size in reference]
