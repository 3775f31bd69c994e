"""A library of tensors in host memory with DLPack's C exchange, which needs no package."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

import exchange_api
import numpy as np
from profuse.executor.dispatch.layout import addresses
from profuse.executor.exchange.dlpack import Versioned, numpy_dtype

CPU = 1, 0
_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor:
    """A tensor of the elements of an array.

    Attributes:
        held: the array.
        requires_grad: as users set it.
        live: addresses of the memory that the library has taken over, and not given back.
        made: how many tensors were made of such memory.
        fails: raise an error in place of making or describing one.
        wrong: addresses of memory that overlaps its description, or was given before.
    """

    live: ClassVar[set[int]] = set()
    made: ClassVar[int] = 0
    fails: ClassVar[bool] = False
    wrong: ClassVar[list[int]] = []
    device: ClassVar[tuple[int, int]] = CPU
    requires_grad = False

    def __init__(self, held: Any, place: int = 0) -> None:
        self.held, self._place = np.asarray(held), place

    def described(self) -> exchange_api.Description:
        if self.fails:
            raise RuntimeError("no elements")
        steps = tuple(step // self.held.itemsize for step in self.held.strides)
        pointer = self.held.__array_interface__["data"][0]
        return pointer, self.held.shape, steps, self.held.dtype, self.device

    @classmethod
    def of_memory(cls, place: int) -> Tensor:
        """A tensor that owns a ``DLManagedTensorVersioned``, as a library's C function makes one."""
        if cls.fails:
            raise RuntimeError("out of memory")
        tensor = Versioned.from_address(place).tensor
        dtype, shape = numpy_dtype(tensor.dtype), tuple(tensor.shape[: tensor.ndim])
        strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim])
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
        memory = (ctypes.c_char * (reach if 0 not in shape else 0)).from_address(tensor.data or 0)
        end_of_head = place + ctypes.sizeof(Versioned) + 16 * tensor.ndim
        if place in cls.live or (place < (tensor.data or 0) < end_of_head):
            cls.wrong.append(place)
        cls.live.add(place)
        cls.made += 1
        return cls(np.ndarray(shape, dtype, memory, strides=strides), place)

    @property
    def is_of_emitted_code(self) -> bool:
        """True if the memory is no array's: emitted code has made it."""
        return self._place in self.live and Versioned.from_address(self._place).deleter == addresses()["free"]

    def __del__(self) -> None:
        if self._place:
            self.live.remove(self._place)
            _deleter(Versioned.from_address(self._place).deleter)(self._place)


class Parameter(Tensor):
    """Another type of the same library."""


class Elsewhere:
    """A tensor of another library."""

    made = Tensor.made

    def __init__(self, held: Any) -> None:
        self.held = np.asarray(held)

    described = Tensor.described
    fails, device = False, CPU


Tensor.__dlpack_c_exchange_api__ = exchange_api.capsule(Tensor.described, lambda: 0, make=Tensor.of_memory)
Tensor.__dlpack__ = Tensor.__dlpack_device__ = None
Elsewhere.__c_dlpack_exchange_api__ = exchange_api.capsule(Elsewhere.described, lambda: 0, make=Tensor.of_memory)
Elsewhere.__module__ = "elsewhere"
