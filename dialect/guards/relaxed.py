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
    """The demands of a guard on strides.

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
    axes = [axis for axis, stride in enumerate(strides) if stride and shape[axis] != 1]
    order = sorted(axes, key=lambda axis: -(strides[axis] or 0))
    return Layout(strides, order, _dense(type_, strides, order))


def layout_mismatch(want: Layout, got: TensorType) -> str | None:
    """The reason why the strides of a value's type do not fit, in words; None if they do."""
    if 0 in (got.shape or ()):
        return None  # no element, hence no address, depends on the strides
    strides = _strides(got)
    counted = [axis for axis in want.order if (got.shape or ())[axis] != 1]
    nonzero = [strides[axis] for axis in counted if strides[axis]]
    if any(a < b for a, b in pairwise(nonzero)):  # type: ignore[operator]
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
    dense, expected = set(), 1
    for axis in reversed(order):
        stride, size = strides[axis], shape[axis]
        if size == 1:
            continue
        if stride == expected:
            dense.add(axis)
        if not isinstance(size, int) or not stride:
            break
        expected = stride * size
    return dense


def free_strides(type_: TensorType) -> tuple[int | None, ...] | str:
    """The strides of a kernel's argument, as far as the guard on a value of this type tells them.

    ``"contiguous"``, or per axis 0 where no address depends on it, 1 along an innermost axis without
    gaps, and None for what is read at run time, which `checks.checks_of` wants to be whole elements.
    """
    want, shape = layout_of(type_), type_.shape or ()
    wide = [axis for axis, size in enumerate(shape) if size != 1]
    if 0 in shape or type_.strides == "contiguous" or want.order == wide == sorted(want.dense):
        return "contiguous"
    # Of a contiguous array a guard asks for the order alone, in which axes that broadcast are missing.
    is_told = wide == sorted(want.order) and want.order[-1] in want.dense
    last = want.order[-1] if is_told else None
    return tuple(0 if size == 1 else 1 if axis == last else None for axis, size in enumerate(shape))


def relaxed(type_: Type) -> Type:
    """The type of a tensor that has passed the guard: of sizes, only those that are 0 or 1 are known."""
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
    """True if `size_eq` compares."""
    return bool(SIZE_CHECKS[0])


def sizes_match(sizes: Sequence[int] | None, reference: Sequence[int], summed: Sequence[int] | None = None) -> bool:
    """True if a run-time target of a sum stands for the same axes as the profiled one (R3.43).

    An empty reference stands for None. Else lengths are equal, and the same positions are 1.

    Args:
        summed: the sizes of the array that is summed; where they are given, it has to be one that can be
            summed to ``sizes``, which a kernel for all sizes takes for granted (A6).
    """
    if summed is not None and sizes and not _can_be_summed(summed, sizes):
        return False
    if not SIZE_CHECKS[0]:
        return True
    if not reference or sizes is None:
        return not reference and sizes is None
    return [size == 1 for size in sizes] == [size == 1 for size in reference]


def _can_be_summed(sizes: Sequence[int], target: Sequence[int]) -> bool:
    first = len(sizes) - len(target)
    return first >= 0 and all(size in (1, own) for own, size in zip(sizes[first:], target, strict=True))
