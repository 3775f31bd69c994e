"""A guard's view of a value: its type, and for arrays what the type alone does not tell."""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from ..dataclass import dataclass
from ..errors import DTypeError
from ..ir.device import HOST, DeviceTensor
from ..ir.dtypes import dtype_of
from ..ir.gradient_mode import requires_grad
from ..ir.types import ListedType, ListType, ScalarType, TensorType, Type, in_elements, type_of


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
        type_ = type_of(value) if isinstance(value, (int, float, complex, list, tuple, str)) else None
        readable = isinstance(type_, (ScalarType, ListType, ListedType))  # no subclass of a number
        return type_ if readable else type(value)
    array: Any = value  # one of the tape is not made a plain one
    other = ""
    try:
        array_type = type_of(value)
        assert isinstance(array_type, TensorType)
    except DTypeError:
        other, device = str(array.dtype), getattr(value, "device", HOST)
        fits = array.is_contiguous if isinstance(array, DeviceTensor) else array.flags.c_contiguous
        strides = "contiguous" if fits else (None,) * array.ndim
        array_type = TensorType(None, array.shape, strides, device, requires_grad(value), True)
    foreign, misaligned = not array.dtype.isnative, _misalignment(array)
    if not (foreign or misaligned or other):
        return array_type
    return UnreadableType(
        array_type.dtype,
        array_type.shape,
        array_type.strides,
        array_type.device,
        array_type.requires_grad,
        array_type.defined,
        foreign,
        misaligned,
        other,
    )


def noted(value: object) -> object:
    """The facts from which `type_noted` tells the type of a value; to note them takes less time than the type."""
    if type(value) is np.ndarray and value.flags.aligned and value.dtype in _PLAIN:
        return value.dtype, value.shape, value.strides, value.flags.c_contiguous
    return seen_type(value)


def type_noted(note: Any) -> Seen:
    """The `seen_type` of a value of which `noted` has said this."""
    if type(note) is not tuple:
        return note
    dtype, shape, steps, is_contiguous = note
    strides = "contiguous" if is_contiguous else in_elements(steps, dtype.itemsize)
    return TensorType(dtype_of(dtype), shape, strides, HOST, False, True)


def _misalignment(array: np.ndarray | DeviceTensor) -> int:
    """The number of bytes to which the elements should be aligned, if there are any and they are not; else 0.

    NumPy's rule, and what kernels rely on: a complex element is aligned as its parts are.
    """
    if isinstance(array, DeviceTensor):
        address = array.address or 0
    else:
        address = 0 if array.flags.aligned else array.ctypes.data
    alignment = array.dtype.alignment
    return alignment if array.size and address % alignment else 0
