"""DLPack: reading the capsules of other libraries, and lending our own memory to them.

The structures in capsules are those of dlpack.h, version 0.8: every library accepts capsules without
a version. The C functions of a library (`c_functions`) take tensors with one, of version 1.
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
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
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
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
pointer_of = _api.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
# These two take the address of a capsule that is being destroyed: a new reference to the capsule
# would destroy it again.
_is_valid = _api["PyCapsule_IsValid"]
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
_pointer_in = _api["PyCapsule_GetPointer"]
_pointer_in.restype, _pointer_in.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
_set_name = _api.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


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


# Address of a lent tensor -> the objects that a borrower may still use. All tensors have the same
# deleter, because a deleter of their own could be garbage-collected while it runs.
_lent: dict[int, tuple[Any, ...]] = {}


def _give_back(managed: Any) -> None:
    _lent.pop(ctypes.addressof(managed.contents), None)


def _give_back_at(address: int, lent: dict[int, tuple[Any, ...]] = _lent) -> None:
    lent.pop(address, None)


_give_back_c = _Deleter(_give_back)
_give_back_at_c = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_give_back_at)
_give_back_address = ctypes.cast(_give_back_at_c, ctypes.c_void_p).value


def lent(array: np.ndarray) -> int:
    """The address of a ``DLManagedTensorVersioned`` of a host array, for a library to take over.

    Its deleter lets go of the array. The strides are multiples of the item size.
    """
    rank, itemsize = array.ndim, array.dtype.itemsize
    shape = (ctypes.c_int64 * rank)(*array.shape)
    steps = tuple(step // itemsize for step in array.strides) if array.size else row_major(array.shape)
    strides = (ctypes.c_int64 * rank)(*steps)
    pointer = array.__array_interface__["data"][0] if array.size else None
    tensor = DLTensor(pointer, Device(CPU, 0), rank, data_type(array.dtype), shape, strides, 0)
    managed = Versioned(*VERSION, None, _give_back_address, 0, tensor)
    place = ctypes.addressof(managed)
    _lent[place] = (managed, shape, strides, array)
    return place


def taken_back(address: int) -> None:
    """Let go of a tensor of `lent` that no library has taken over."""
    _give_back_at(address)


def _destroy(capsule: int) -> None:
    """Destructor of capsules: ends the loan of a capsule that no library has consumed."""
    if _is_valid(capsule, _NAME):
        _lent.pop(_pointer_in(capsule, _NAME), None)


_destroy_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_destroy_c = _destroy_type(_destroy)


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
        rank = len(self._shape)
        shape = (ctypes.c_int64 * rank)(*self._shape)
        strides = (ctypes.c_int64 * rank)(*row_major(self._shape))
        managed = _Managed()
        managed.tensor = DLTensor(
            self._pointer, Device(CUDA, self._index), rank, data_type(self._dtype), shape, strides, 0
        )
        managed.deleter = _give_back_c
        place = ctypes.addressof(managed)
        _lent[place] = (managed, shape, strides, self._owner)
        return _new(place, _NAME, ctypes.cast(_destroy_c, ctypes.c_void_p))


def take(capsule: Any) -> Callable[[], None]:
    """Consume a capsule, as a borrower does; returns a function that gives the tensor back."""
    place = pointer_of(capsule, _NAME)
    managed = _Managed.from_address(place)
    _set_name(capsule, _USED)
    return lambda: managed.deleter(ctypes.pointer(managed))
