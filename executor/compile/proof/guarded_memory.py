"""Arrays with guard bytes on both sides, in memory that is filled with a byte pattern."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PATTERNS = (0x4B, 0xC7)
"""The bytes that fill memory before a run. As floats and as integers of any width, the two patterns
are large numbers of different signs and differ in every byte, so a kernel that reads them gives
different results."""

FRAME = 512  # guard bytes on either side
_ALIGNMENT = 64


_PIECE = 1 << 18  # bytes that are compared at a time; they fit into a cache


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """True if two arrays of one dtype and size have the same bits, in C order."""
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return all(
        np.array_equal(a[start : start + _PIECE], b[start : start + _PIECE]) for start in range(0, a.size, _PIECE)
    )


class Framed:
    """An array with guard bytes on both sides.

    Args:
        shape: shape of the array.
        dtype: dtype of the array.
        pattern: the byte that fills the memory.
        strides: strides in elements; None = C-contiguous.
        offset: distance in bytes from an address divisible by 64 to the array's memory.
        spare: pieces of memory to reuse if one has the right size, because new memory is slow.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: np.dtype,
        pattern: int,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        spare: list[np.ndarray] | None = None,
    ) -> None:
        low = high = 0
        total = int(np.prod(shape, dtype=np.int64))
        if strides is not None and total:
            steps = [step * (size - 1) for step, size in zip(strides, shape, strict=True)]
            low, high = sum(min(s, 0) for s in steps), sum(max(s, 0) for s in steps)
        count = high - low + 1 if strides is not None else total
        nbytes = count * dtype.itemsize
        capacity = nbytes + 2 * FRAME + 2 * _ALIGNMENT
        fitting = [k for k, memory in enumerate(spare or ()) if memory.size == capacity]
        self.whole = spare.pop(fitting[0]) if spare and fitting else np.empty(capacity, np.uint8)
        self.whole.fill(pattern)
        address = self.whole.__array_interface__["data"][0]
        self._start = FRAME + -(address + FRAME) % _ALIGNMENT + offset
        self._end = self._start + nbytes
        self._pattern = pattern
        memory = self.whole[self._start : self._end].view(dtype)
        if strides is None:
            self.array = memory.reshape(shape)
        else:
            steps = [s * dtype.itemsize for s in strides]
            self.array = np.lib.stride_tricks.as_strided(memory[-low:], shape, steps)

    @property
    def address(self) -> int:
        """Address of the array's first element."""
        return self.array.__array_interface__["data"][0]

    def holds(self, value: np.ndarray) -> bool:
        """True if the array has the same bits as ``value``, and the guard bytes are intact."""
        return self.is_intact and same_bits(np.asarray(value, self.array.dtype), self.array)

    @property
    def is_intact(self) -> bool:
        """True if nothing has been written before or behind the array."""
        return bool(
            (self.whole[: self._start] == self._pattern).all() and (self.whole[self._end :] == self._pattern).all()
        )
