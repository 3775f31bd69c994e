"""Contents of arrays that a trace has read as plain values.

Arrays from outside of the call are inputs of the graph: their contents may change. Where the code
needs them as they are (`if W.any()`, a table of strings, what a package holds), what it has
computed of them is part of the graph, which then holds for these contents alone.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..tracing.recorder import checksum

_BYTES = 1 << 24  # of arrays that are kept as copies; larger ones are compared by checksum


class Contents:
    """What an array held when the function was traced."""

    __slots__ = ("_held", "_meta", "_parts")

    def __init__(self, array: np.ndarray) -> None:
        self._meta = array.dtype, array.shape
        self._parts = [Contents(part) for part in _parts(array)]
        self._held: Any
        if array.dtype.hasobject:
            self._held = list(array.flat)
        elif array.nbytes <= _BYTES:
            self._held = np.array(array, subok=False)
        else:
            self._held = checksum(array)

    def fits(self, array: np.ndarray) -> bool:
        """True if the array holds this now, bit by bit."""
        if (array.dtype, array.shape) != self._meta:
            return False
        parts = _parts(array)
        if len(parts) != len(self._parts) or not all(map(Contents.fits, self._parts, parts)):
            return False
        if isinstance(self._held, list):
            return same_objects(array, self._held)
        if isinstance(self._held, int):
            return checksum(array) == self._held
        return same_bits(array, self._held)


def _parts(array: np.ndarray) -> list[np.ndarray]:
    """Arrays that an array of a subclass has as attributes, such as its mask."""
    return [x for x in getattr(array, "__dict__", {}).values() if type(x) is np.ndarray]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """True if arrays of one dtype and shape hold the same, bit by bit: also nan and -0.0."""
    if not a.nbytes:
        return True
    if a.flags.c_contiguous and b.flags.c_contiguous:
        word = np.uint64 if a.nbytes % 8 == 0 else np.uint8
        a, b = (np.asarray(x).reshape(-1).view(np.uint8).view(word) for x in (a, b))
        return not (a != b).any()
    return checksum(a) == checksum(b)


def same_objects(array: np.ndarray, held: list[Any]) -> bool:
    """True if the elements of an array of objects are these very ones."""
    return array.size == len(held) and all(map(operator.is_, array.flat, held))


def may_change(array: np.ndarray) -> bool:
    """False for an array that nobody can write to any more."""
    return array.dtype.hasobject or array.flags.writeable or isinstance(array.base, np.ndarray)


__all__ = ["Contents", "may_change", "same_bits", "same_objects"]
