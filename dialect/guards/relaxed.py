"""The relaxed guard of fused GPU code: sizes are free, what it was specialised for is not (R3.42).

Compared are dtype, rank, device, requires_grad, the order of strides, contiguity where it was
profiled, and which sizes are 0 and 1, which broadcast, or leave nothing to compute.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ..ir.gradient_mode import requires_grad_mismatch
from ..ir.types import TensorType, Type, contiguous_strides
from .checks import UnreadableType, misaligned_text, seen_type


def fits_relaxed(types: Sequence[Type], values: Sequence[object]) -> bool:
    """True if every value fits its type; an undefined tensor never does (R3.42)."""
    return len(types) == len(values) and all(
        isinstance(want, TensorType)
        and value is not None
        and relaxed_mismatch(want, seen_type(value)) is None
        for want, value in zip(types, values, strict=True)
    )


def relaxed_mismatch(want: TensorType, got: Type) -> str | None:
    """The first reason why a value's type does not fit, in words; None if it does."""
    if not isinstance(got, TensorType):
        return f"is a Python {got}, specialised for a tensor"
    if want.dtype is None or want.shape is None or want.device is None:
        return "was specialised without a known dtype, rank or device"
    if want.dtype is not got.dtype:
        return f"dtype is {got.dtype}, specialised for {want.dtype}"
    if want.rank != got.rank:
        return f"rank is {got.rank}, specialised for {want.rank}"
    if want.device != got.device:
        return f"is on {got.device}, specialised for {want.device}"
    reason = requires_grad_mismatch(want.requires_grad, got.requires_grad)
    if reason is not None:
        return reason
    for axis, (dim, size) in enumerate(zip(want.shape, got.shape or (), strict=True)):
        for special in (0, 1):
            if dim is not None and (dim == special) != (size == special):
                return f"size of dimension {axis} is {size}, specialised for {dim}"
    if isinstance(got, UnreadableType) and got.is_foreign:
        return f"dtype is {got.dtype} in foreign byte order, specialised for {want.dtype}"
    if isinstance(got, UnreadableType) and got.misaligned:
        return misaligned_text(got.misaligned)
    return _layout_mismatch(want, got)


def _layout_mismatch(want: TensorType, got: TensorType) -> str | None:
    if 0 in (got.shape or ()):
        return None  # no element, hence no address, depends on the strides
    wanted, strides = _strides(want), _strides(got)
    order, wanted_dense = layout_of(want)
    found = [strides[axis] for axis in order if strides[axis] and (got.shape or ())[axis] != 1]
    if any(a < b for a, b in pairwise(found)):  # type: ignore[operator]
        return f"strides {strides} are in another order, specialised for {wanted}"
    dense = _dense(got, strides, order)
    for axis in wanted_dense:
        if axis not in dense and (got.shape or ())[axis] != 1:
            return f"dimension {axis} is not contiguous, specialised for a contiguous one"
    return None


def layout_of(type_: TensorType) -> tuple[list[int], set[int]]:
    """What a guard asks of strides: the axes from the widest to the closest, those of one element
    and those that broadcast left out, and which of them have no gaps."""
    strides = _strides(type_)
    order = _order(type_, strides)
    return order, _dense(type_, strides, order)


def _strides(type_: TensorType) -> tuple[int | None, ...]:
    """Element strides; None where nothing is known."""
    shape = type_.shape or ()
    if isinstance(type_.strides, tuple):
        return type_.strides
    if type_.strides is None:
        return (None,) * len(shape)
    # Of a contiguous tensor of unknown sizes the order is known: any sizes do.
    return contiguous_strides([d if isinstance(d, int) else 2 for d in shape])  # type: ignore[return-value]


def _order(type_: TensorType, strides: Sequence[int | None]) -> list[int]:
    """Axes from the widest stride to the closest; of unknown and zero strides none."""
    known = [axis for axis, stride in enumerate(strides) if stride]
    known = [axis for axis in known if (type_.shape or ())[axis] != 1]
    return sorted(known, key=lambda axis: -(strides[axis] or 0))


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
    """What is known of a tensor that has passed the guard: nothing of sizes but 0 and 1."""
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
