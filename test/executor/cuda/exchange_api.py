"""DLPack's exchange of tensors between C functions, in Python: for array libraries of the tests."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from profuse.executor.exchange.dlpack import Device, DLTensor, data_type

_DESCRIBE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(DLTensor))
_STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
_MAKE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_ADDRESS = ctypes.c_void_p
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _ADDRESS, _ADDRESS, _ADDRESS)(("PyCapsule_New", ctypes.pythonapi))
_forever: list[Any] = []  # C functions live as long as the classes that lend them
NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")

Description = tuple[int, tuple[int, ...], tuple[int, ...], np.dtype, tuple[int, int]]


def capsule(
    describe: Callable[[Any], Description],
    stream: Callable[[], int],
    version: int = 1,
    make: Callable[[int], Any] | None = None,
) -> Any:
    """The capsule of a library.

    Args:
        describe: array -> pointer, shape, strides in elements, dtype, (device type, index); may
            raise.
        stream: the current stream.
        make: address of a ``DLManagedTensorVersioned`` -> a tensor that owns it; may raise.
    """

    def fill(address: int, tensor: Any) -> int:
        array = ctypes.cast(address, ctypes.py_object).value
        try:
            pointer, shape, strides, dtype, device = describe(array)
        except Exception:  # no exception leaves a callback of ctypes
            return -1
        # As long as the array: descriptions borrow.
        array.borrowed = [(ctypes.c_int64 * len(shape))(*part) for part in (shape, strides)]
        made = DLTensor(pointer, Device(*device), len(shape), data_type(dtype), *array.borrowed, 0)
        ctypes.memmove(tensor, ctypes.byref(made), ctypes.sizeof(DLTensor))
        return 0

    def current(_type: int, _index: int, found: Any) -> int:
        found[0] = stream()
        return 0

    def made(address: int, out: Any) -> int:
        assert make is not None
        try:
            tensor = make(address)
        except Exception:
            return -1
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
        out[0] = id(tensor)
        return 0

    functions = _MAKE(made), _DESCRIBE(fill), _STREAM(current)
    words = (ctypes.c_uint64 * 7)(version, 0, 0, 0)
    words[4:] = [ctypes.cast(f, ctypes.c_void_p).value for f in functions]
    words[4] = words[4] if make is not None else 0
    _forever.extend((functions, words))
    return new_capsule(ctypes.addressof(words), ctypes.addressof(NAME), None)
