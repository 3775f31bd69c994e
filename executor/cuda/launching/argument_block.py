"""Kernel arguments as the driver takes them: a pointer to each of a block of values."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

_SLOT = 8  # bytes; all parameters are pointers, i64 or f64


class ArgumentBlock:
    """Memory for the arguments of one launch; calls reuse it and overwrite its values.

    Attributes:
        values: an 8-byte slot per parameter, as integers.
        address: address of the array of pointers to the slots.
    """

    __slots__ = ("_pointers", "address", "values")

    def __init__(self, values: Sequence[int]) -> None:
        count = len(values)
        self.values = (ctypes.c_int64 * count)(*values)
        first = ctypes.addressof(self.values)
        slots = range(first, first + _SLOT * count, _SLOT)
        self._pointers = (ctypes.c_void_p * count)(*slots)
        self.address = ctypes.addressof(self._pointers)


def float_bits(value: float) -> int:
    """An f64 as the integer of its bits."""
    return struct.unpack("<q", struct.pack("<d", value))[0]
