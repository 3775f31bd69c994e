"""What a guard sees of a value: its type, and for arrays what the type alone does not tell."""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from ..dataclass import dataclass
from ..errors import DTypeError
from ..ir.device import HOST, DeviceTensor
from ..ir.dtypes import dtype_of
from ..ir.gradient_mode import requires_grad
from ..ir.types import ListType, ScalarType, TensorType, Type, in_elements, type_of


@dataclass(frozen=True, slots=True)
class UnreadableType(TensorType):
    """The type of an array that no guard with a known dtype and layout admits, whatever its shape.

    Attributes:
        is_foreign: its byte order is not native.
        misaligned: its elements do not start at multiples of so many bytes; 0 = they do.
        other: NumPy's dtype where it is none of ours.
    """

    is_foreign: bool = False
    misaligned: int = 0
    other: str = ""


_PLAIN = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))  # in native byte order

# A class stands for a value that is no tensor, number or list; None for the undefined tensor.
Seen = Union[Type, type, None]


def seen_type(value: object) -> Seen:
    """The type of any object; an `UnreadableType` of arrays that kernels cannot read."""
    if not isinstance(value, (np.ndarray, np.generic, DeviceTensor)):
        if value is None:
            return None
        found = type_of(value) if isinstance(value, (int, float, complex, list, tuple)) else None
        readable = isinstance(found, (ScalarType, ListType))  # no subclass of a number
        return found if readable else type(value)
    array: Any = value  # one of the tape is not made a plain one
    other = ""
    try:
        known = type_of(value)
        assert isinstance(known, TensorType)
    except DTypeError:
        other, device = str(array.dtype), getattr(value, "device", HOST)
        fits = array.is_contiguous if isinstance(array, DeviceTensor) else array.flags.c_contiguous
        strides = "contiguous" if fits else (None,) * array.ndim
        known = TensorType(None, array.shape, strides, device, requires_grad(value), True)
    foreign, misaligned = not array.dtype.isnative, _misalignment(array)
    if not (foreign or misaligned or other):
        return known
    return UnreadableType(
        known.dtype, known.shape, known.strides, known.device, known.requires_grad, known.defined,
        foreign, misaligned, other,
    )  # fmt: skip


def noted(value: object) -> object:
    """What `type_noted` needs to tell the type of a value, which takes less time than the type."""
    if type(value) is np.ndarray and value.flags.aligned and value.dtype in _PLAIN:
        return value.dtype, value.shape, value.strides, value.flags.c_contiguous
    return seen_type(value)


def type_noted(found: Any) -> Seen:
    """The `seen_type` of a value of which `noted` has said this."""
    if type(found) is not tuple:
        return found
    dtype, shape, steps, is_contiguous = found
    strides = "contiguous" if is_contiguous else in_elements(steps, dtype.itemsize)
    return TensorType(dtype_of(dtype), shape, strides, HOST, False, True)


def _misalignment(array: np.ndarray | DeviceTensor) -> int:
    """How many bytes the elements should be aligned to, if there are any and they are not; else 0.

    NumPy's rule, and what kernels rely on: a complex element is aligned as its parts are.
    """
    if isinstance(array, DeviceTensor):
        address = array.address or 0
    else:
        address = 0 if array.flags.aligned else array.ctypes.data
    wanted = array.dtype.alignment
    return wanted if array.size and address % wanted else 0


__all__ = ["Seen", "UnreadableType", "noted", "seen_type", "type_noted"]
