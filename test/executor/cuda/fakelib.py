"""An array library for the emulated device: arrays that say where they are, and `from_dlpack`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from profuse.executor.cuda.nvidia.driver import driver
from profuse.executor.exchange.dlpack import read, row_major, take

STREAM = 7
"""The stream that arrays are made on."""


class Array:
    """A device array; ``stream``: where its content is made, None = it does not say."""

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...],
        owner: Any,
        stream: int | None = STREAM,
    ) -> None:
        self.pointer, self.shape, self.dtype, self.strides = pointer, shape, dtype, strides
        self.owner, self.stream = owner, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": self.strides,
            "version": 3,
            "stream": self.stream,
        }

    def __array_namespace__(self) -> Any:
        return sys.modules[__name__]

    @property
    def T(self) -> Array:
        """The transpose, a view."""
        return Array(self.pointer, self.shape[::-1], self.dtype, self.strides[::-1], self.owner, self.stream)

    def __getitem__(self, rows: slice) -> Array:
        """Some rows, a view."""
        start, stop, step = rows.indices(self.shape[0])
        count = max(0, -(-(stop - start) // step))
        return Array(
            self.pointer + start * self.strides[0],
            (count, *self.shape[1:]),
            self.dtype,
            (self.strides[0] * step, *self.strides[1:]),
            self.owner,
            self.stream,
        )

    def get(self) -> np.ndarray:
        """A copy on the host."""
        assert self.strides == row_major(self.shape, self.dtype.itemsize), "only results are read"
        out = np.empty(self.shape, self.dtype)
        if out.size:
            driver().to_host(0, out, self.pointer, STREAM)
        return out


class _Memory:
    def __init__(self, device: int, nbytes: int) -> None:
        self.driver, self.device = driver(), device
        self.pointer = self.driver.allocate(device, nbytes, STREAM)

    def __del__(self) -> None:
        self.driver.free(self.device, self.pointer, STREAM)


def array(value: Any, device: int = 0, stream: int | None = STREAM) -> Array:
    """A copy of a host array on a device."""
    host = np.asarray(value, order="C")
    memory = _Memory(device, host.nbytes)
    if host.nbytes:
        driver().to_device(device, memory.pointer, host, STREAM)
    strides = row_major(host.shape, host.itemsize)
    return Array(memory.pointer, host.shape, host.dtype, strides, memory, stream)


class _Borrowed:
    def __init__(self, capsule: Any) -> None:
        self.give_back = take(capsule)

    def __del__(self) -> None:
        self.give_back()


def from_dlpack(other: Any) -> Array:
    """An array that shares the memory of another library's."""
    capsule = other.__dlpack__(stream=STREAM)
    _, pointer, shape, strides, dtype = read(capsule)
    return Array(pointer, shape, dtype, strides, _Borrowed(capsule))
