"""DLPack's exchange of tensors between C functions, in Python: for array libraries of the tests."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from profuse.executor.cuda.exchange.dlpack import Device, Tensor, data_type

_DESCRIBE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Tensor))
_STREAM = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)
)
_ADDRESS = ctypes.c_void_p
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _ADDRESS, _ADDRESS, _ADDRESS)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_forever: list[Any] = []  # C functions live as long as the classes that lend them
NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")

Description = tuple[int, tuple[int, ...], tuple[int, ...], np.dtype, tuple[int, int]]


def capsule(
    describe: Callable[[Any], Description], stream: Callable[[], int], version: int = 1
) -> Any:
    """The capsule of a library.

    Args:
        describe: array -> pointer, shape, strides in elements, dtype, (device type, index); may
            raise.
        stream: the current stream.
    """

    def fill(address: int, tensor: Any) -> int:
        array = ctypes.cast(address, ctypes.py_object).value
        try:
            pointer, shape, strides, dtype, device = describe(array)
        except Exception:  # no exception leaves a callback of ctypes
            return -1
        # As long as the array: descriptions borrow.
        array.borrowed = [(ctypes.c_int64 * len(shape))(*part) for part in (shape, strides)]
        made = Tensor(pointer, Device(*device), len(shape), data_type(dtype), *array.borrowed, 0)
        ctypes.memmove(tensor, ctypes.byref(made), ctypes.sizeof(Tensor))
        return 0

    def current(_type: int, _index: int, found: Any) -> int:
        found[0] = stream()
        return 0

    functions = _DESCRIBE(fill), _STREAM(current)
    words = (ctypes.c_uint64 * 7)(version, 0, 0, 0, 0)
    words[5], words[6] = (ctypes.cast(f, ctypes.c_void_p).value for f in functions)
    _forever.extend((functions, words))
    return new_capsule(ctypes.addressof(words), ctypes.addressof(NAME), None)
