"""Device arrays in emitted code, by the C functions of their libraries (`exchange.c_functions`).

Before emitted code relies on descriptions, `verify` compares some with what Python reports.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialect.dataclass import dataclass
from ...exchange.c_functions import Reader, api_of
from ...exchange.dlpack import DLTensor, data_type
from ...memory.offsets import Refused
from ..nvidia.driver_api import DriverError

if TYPE_CHECKING:
    from .libraries import Library


@dataclass(frozen=True, eq=False)
class Exchange(Reader):
    """The way in which emitted code reads and makes arrays of a library.

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
    api = api_of(kind)
    if not api.describe or not api.stream:
        raise Refused(f"the C exchange of {kind.__module__} lacks functions")
    return api.describe, api.stream


_describe_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_SAMPLES = (((2, 3), (3, 1)), ((2, 3), (1, 2)), ((4,), (2,)), ((), ()), ((1, 5), (5, 1)))


def verify(exchange: Exchange, library: Library, index: int) -> None:
    """Make arrays on a device as emitted code will, and compare them with what Python reports.

    Raises Refused at the first difference, and DriverError if the library makes no device array.
    """
    describe: Callable[..., Any] = _describe_type(exchange.describe)
    for dtype in (np.dtype(np.float32), np.dtype(np.int64)):
        more = dict(zip(exchange.keywords, exchange.made_of(dtype, index), strict=True))
        for shape, strides in _SAMPLES:
            array = exchange.empty(shape, strides, **more)
            tensor = DLTensor()
            try:
                failed = describe(array, ctypes.addressof(tensor))
            except Exception as error:  # whatever the library raises
                failed = error
            if failed or type(array) is not exchange.kind:
                raise Refused(f"an array of {library.name} is not described as expected")
            place = library.place(array)
            if place is None:
                raise DriverError(f"{library.name} makes no array on the device", "library")
            in_python = place.device, place.pointer, place.shape, place.strides, place.dtype
            steps = [s * dtype.itemsize for s in tensor.strides[: tensor.ndim]]
            in_c = (
                tensor.device.index,
                (tensor.data or 0) + tensor.byte_offset,
                tuple(tensor.shape[: tensor.ndim]),
                tuple(steps),
                dtype,
            )
            expected = data_type(dtype)
            words = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
            if in_c != in_python or words != (expected.code, expected.bits, expected.lanes):
                raise Refused(f"{library.name} describes an array in C otherwise than in Python")
