"""Tensors whose elements lie elsewhere: what types, guards and importers ask of them.

The executor has the class that holds such memory; nothing here touches a device.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable
from typing import Any

import numpy as np

HOST = "cpu"


class DeviceTensor:
    """A tensor in the memory of a device.

    Attributes:
        device: such as ``"cuda:0"``.
        dtype, shape: as of an array.
        strides: in bytes, per axis.
        requires_grad: the flag that the tensor came with, whatever gradient mode is.
    """

    __slots__ = ("device", "dtype", "shape", "strides")
    device: str
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool = False

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def address(self) -> int | None:
        """The address of the first element; None while the device has no copy of it."""
        raise NotImplementedError

    @property
    def kind(self) -> Hashable:
        """The assumption of a trace about it, as `pytree.leaf_kind` of an array."""
        raise NotImplementedError

    @property
    def is_contiguous(self) -> bool:
        """Elements lie in C order without gaps, whatever the strides of axes of size 1 are."""
        step = self.dtype.itemsize
        if self.size == 0:
            return True
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    def own(self) -> DeviceTensor:
        """The same elements in memory that nothing else here writes."""
        return self

    def stand_in(self) -> np.ndarray:
        """A host array of this dtype and shape, all of whose elements are one zero."""
        item = bytes(max(self.dtype.itemsize, 1))
        return np.ndarray(self.shape, self.dtype, item, strides=(0,) * self.ndim)


def is_foreign(value: Any) -> bool:
    """True for arrays of other libraries, whichever memory they are in."""
    kind = type(value)
    if issubclass(kind, (np.ndarray, np.generic)):
        return False
    return hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack__")


EXCHANGE_NAMES = ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")


def has_exchange(kind: type) -> bool:
    """True for a type of tensors whose library publishes DLPack's C functions, which exchange them."""
    name, older = EXCHANGE_NAMES  # calls ask for the classes of all their arguments: `any` takes three times as long
    return getattr(kind, name, None) is not None or getattr(kind, older, None) is not None


@functools.cache
def index_of(device: str) -> int:
    """The index of a device such as ``"cuda:1"``."""
    return int(device.partition(":")[2] or 0)


def device_of(value: Any) -> str | None:
    """The device of a tensor; None for anything that is none."""
    if isinstance(value, DeviceTensor):
        return value.device
    return HOST if isinstance(value, (np.ndarray, np.generic)) else None
