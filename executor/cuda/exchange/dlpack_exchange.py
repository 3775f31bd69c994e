"""DLPack's exchange of tensors by C functions, for emitted code.

A library that supports it publishes the addresses of C functions that describe an array without a
capsule, and that tell the library's current stream (dlpack.h, version 1.3: ``DLPackExchangeAPI``).
Before emitted code relies on descriptions, `verify` compares some with what Python reports.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialect.dataclass import dataclass
from ....dialect.ir.device import index_of
from ...memory.placement import Refused
from ..nvidia.driver_api import DriverError
from .dlpack import CUDA, Device, Tensor, data_type, pointer_of

if TYPE_CHECKING:
    from .libraries import Library

_ATTRIBUTE, _NAME = "__dlpack_c_exchange_api__", b"dlpack_exchange_api"
_MAJOR = 1


class _Api(ctypes.Structure):
    """``DLPackExchangeAPI`` of dlpack.h, with the functions as addresses."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p), ("describe", ctypes.c_void_p), ("stream", ctypes.c_void_p),
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Exchange:
    """How emitted code reads and makes arrays of a library.

    Attributes:
        kind: exact type of the arrays.
        describe: address of ``int (PyObject *, DLTensor *)``, which borrows the array's memory.
        stream: address of ``int (device type, index, void **)``.
        empty: Python callable that makes an array of a shape and strides (in elements) that are
            passed by position, and of the values of ``made_of``, passed by keyword.
        keywords: names of the keywords for the two values of ``made_of``.
        made_of: (dtype, device index) -> the library's objects for the dtype and the device.
        false: attributes that must be False; other arrays are left to Python.
        negative: methods that must return False; other arrays are left to Python.
    """

    kind: type
    describe: int
    stream: int
    empty: Callable[..., Any]
    keywords: tuple[str, str]
    made_of: Callable[[np.dtype, int], tuple[Any, Any]]
    false: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


def functions_of(kind: type) -> tuple[int, int]:
    """Addresses of the C functions ``describe`` and ``stream`` of an array type's library.

    Raises Refused if the library has none, or has another major version of them.
    """
    capsule = getattr(kind, _ATTRIBUTE, None)
    if capsule is None:
        raise Refused(f"{kind.__module__} has no {_ATTRIBUTE}")
    try:
        found = _Api.from_address(pointer_of(capsule, _NAME))
    except (TypeError, ValueError) as error:
        raise Refused(f"{_ATTRIBUTE} of {kind.__module__} cannot be read: {error}") from None
    if found.major != _MAJOR:
        raise Refused(
            f"{_ATTRIBUTE} of {kind.__module__} is of version {found.major}, not {_MAJOR}"
        )
    if not found.describe or not found.stream:
        raise Refused(f"{_ATTRIBUTE} of {kind.__module__} lacks functions")
    return found.describe, found.stream


def type_word(dtype: np.dtype) -> int:
    """The 32 bits with which a ``DLTensor`` describes a dtype."""
    return int.from_bytes(bytes(data_type(dtype)), "little")


def device_word(device: str) -> int:
    """The 64 bits with which a ``DLTensor`` describes a device."""
    return int.from_bytes(bytes(Device(CUDA, index_of(device))), "little")


_describe_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_SAMPLES = (
    ((2, 3), (3, 1)), ((2, 3), (1, 2)), ((4,), (2,)), ((), ()), ((1, 5), (5, 1)),
)  # fmt: skip


def verify(exchange: Exchange, library: Library, index: int) -> None:
    """Make arrays on a device as emitted code will, and compare them with what Python reports.

    Raises Refused at the first difference, and DriverError if the library makes no device array.
    """
    describe: Callable[..., Any] = _describe_type(exchange.describe)
    for dtype in (np.dtype(np.float32), np.dtype(np.int64)):
        more = dict(zip(exchange.keywords, exchange.made_of(dtype, index), strict=True))
        for shape, strides in _SAMPLES:
            array = exchange.empty(shape, strides, **more)
            tensor = Tensor()
            try:
                failed = describe(array, ctypes.addressof(tensor))
            except Exception as error:  # whatever the library raises
                failed = error
            if failed or type(array) is not exchange.kind:
                raise Refused(f"an array of {library.name} is not described as expected")
            place = library.place(array)
            if place is None:
                raise DriverError(f"{library.name} makes no array on the device", "library")
            given = place.device, place.pointer, place.shape, place.strides, place.dtype
            steps = [s * dtype.itemsize for s in tensor.strides[: tensor.ndim]]
            found = (
                tensor.device.index, (tensor.data or 0) + tensor.byte_offset,
                tuple(tensor.shape[: tensor.ndim]), tuple(steps), dtype,
            )  # fmt: skip
            expected = data_type(dtype)
            words = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
            if found != given or words != (expected.code, expected.bits, expected.lanes):
                raise Refused(f"{library.name} describes an array in C otherwise than in Python")
