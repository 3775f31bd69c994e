"""DLPack: reading the capsules of other libraries, and lending our own memory to them.

The structures in capsules are those of dlpack.h, version 0.8: every library accepts capsules without
a version. The C functions of a library (`c_functions`) take tensors with one, of version 1.

What we lend, NumPy describes, as an array that keeps the memory alive, and NumPy's C code takes it back. A library
may let go of memory while an exception is on its way, and Python code that ran then would lose the exception.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dialect.ir.device import HOST, index_of
from ...dialect.ir.dtypes import BF16

CPU, CUDA = 1, 2  # kDLCPU, kDLCUDA
_NAME, _USED = b"dltensor", b"used_dltensor"
_NAME_1, _USED_1 = b"dltensor_versioned", b"used_dltensor_versioned"
COMPLEX = 5  # kDLComplex
_KINDS = {"i": 0, "u": 1, "f": 2, "c": COMPLEX, "b": 6}
_BFLOAT = 4
VERSION = (1, 0)  # of the tensors that are lent: nothing in them is newer


class Device(ctypes.Structure):
    """``DLDevice``."""

    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class DataType(ctypes.Structure):
    """``DLDataType``."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


class Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]
Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", ctypes.c_void_p),
    ("deleter", ctypes.c_void_p),
    ("flags", ctypes.c_uint64),
    ("tensor", DLTensor),
]

_api = ctypes.pythonapi
pointer_of = _api.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_set_name = _api.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


class ForeignMemory:
    """What NumPy makes an array of: memory of another object, which the array keeps alive."""

    __slots__ = ("__array_interface__", "dtype", "owner")

    def __init__(self, owner: Any, dtype: np.dtype, **interface: Any) -> None:
        self.owner, self.dtype = owner, dtype
        self.__array_interface__ = {"version": 3, **interface}


def read(capsule: Any) -> tuple[int, int, tuple[int, ...], tuple[int, ...], np.dtype]:
    """Device index, pointer, shape, strides in bytes and dtype of a tensor in device memory.

    The capsule stays unconsumed: the memory is valid for as long as the capsule lives. Raises
    ValueError for memory of another device, and for a DLPack type that no dtype corresponds to.
    """
    tensor = _Managed.from_address(pointer_of(capsule, _NAME)).tensor
    if tensor.device.type != CUDA:
        raise ValueError("the memory is no CUDA device's")
    dtype = numpy_dtype(tensor.dtype)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else row_major(shape)
    in_bytes = tuple(s * dtype.itemsize for s in strides)
    return tensor.device.index, (tensor.data or 0) + tensor.byte_offset, shape, in_bytes, dtype


def numpy_dtype(type_: DataType) -> np.dtype:
    """The dtype of a DLPack type; raises ValueError where there is none."""
    return _dtype(type_.code, type_.bits, type_.lanes)


@functools.cache
def _dtype(code: int, bits: int, lanes: int) -> np.dtype:
    if code == _BFLOAT and bits == 16 and lanes == 1:
        return BF16.numpy
    for kind, number in _KINDS.items():
        if code == number and lanes == 1 and (bits == 8 or kind != "b"):
            return np.dtype(f"{kind}{bits // 8}")
    raise ValueError(f"DLPack type ({code}, {bits}, {lanes}) has no dtype")


def data_type(dtype: np.dtype) -> DataType:
    """The DLPack description of a dtype."""
    code = _BFLOAT if dtype == BF16.numpy else _KINDS[dtype.kind]
    return DataType(code, 8 * dtype.itemsize, 1)


def device_word(device: str) -> int:
    """The 64 bits with which a ``DLTensor`` describes the host or a device."""
    described = Device(CPU, 0) if device == HOST else Device(CUDA, index_of(device))
    return int.from_bytes(bytes(described), "little")


def row_major(shape: tuple[int, ...], step: int = 1) -> tuple[int, ...]:
    """Strides of a contiguous tensor; ``step``: the stride of its last axis."""
    out = []
    for size in reversed(shape):
        out.append(step)
        step *= max(size, 1)
    return tuple(reversed(out))


def lent(array: np.ndarray) -> tuple[Any, int]:
    """A capsule with a host array for a library to take over, and the address of its ``DLManagedTensorVersioned``.

    The capsule lets go of the array when it ends, unless it has been `handed_over`. The strides are multiples of the
    item size. Raises KeyError or BufferError for a dtype that DLPack has not.
    """
    described = data_type(array.dtype)
    held = array.view(np.int16) if array.dtype == BF16.numpy else array
    capsule = held.__dlpack__(max_version=VERSION)
    place = pointer_of(capsule, _NAME_1)
    Versioned.from_address(place).tensor.dtype = described
    return capsule, place


def handed_over(capsule: Any) -> None:
    """Note that a library has taken over what a capsule of `lent` holds, and will give it back."""
    _set_name(capsule, _USED_1)


class Loan:
    """A contiguous tensor in our memory, for ``from_dlpack`` of another library.

    Args:
        index: index of the device.
        pointer: address of the first element.
        shape: the sizes.
        dtype: the dtype.
        owner: object that owns the memory; it is kept alive as long as a borrower has the memory.
        ready: called with the borrower's stream; it makes that stream wait for the tensor.
    """

    def __init__(
        self,
        index: int,
        pointer: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        owner: Any,
        ready: Callable[[int], None],
    ) -> None:
        self._index, self._pointer, self._owner, self._ready = index, pointer, owner, ready
        self._shape, self._dtype = shape, dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self._index

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """A capsule without a version, even if the borrower accepts versions."""
        if stream != -1:
            self._ready(1 if stream is None else stream)
        code = "<u2" if self._dtype == BF16.numpy else self._dtype.str
        memory = ForeignMemory(self._owner, self._dtype, data=(self._pointer, False), shape=self._shape, typestr=code)
        capsule = np.asarray(memory).__dlpack__()  # NumPy never looks at the elements
        tensor = _Managed.from_address(pointer_of(capsule, _NAME)).tensor
        tensor.data, tensor.device = self._pointer, Device(CUDA, self._index)
        tensor.dtype = data_type(self._dtype)
        return capsule


def take(capsule: Any) -> Callable[[], None]:
    """Consume a capsule, as a borrower does; returns a function that gives the tensor back."""
    place = pointer_of(capsule, _NAME)
    managed = _Managed.from_address(place)
    _set_name(capsule, _USED)
    return lambda: managed.deleter(ctypes.pointer(managed))
