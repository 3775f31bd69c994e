"""Contents of arrays and records, as they were when a trace met them.

Arrays from outside of the call are inputs of the graph: their contents may change. Where the code
needs them as they are (`if W.any()`, a table of strings, what a package holds), what it has
computed of them is part of the graph, which then holds for these contents alone. What a trace
itself changes of them is restored.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..tracing.captures import checksum

_BYTES = 1 << 22  # of arrays that are kept as copies; larger ones are compared by checksum


class Contents:
    """The contents of an array, or a record, at one time.

    Args:
        array: the array.
        most: so many bytes of it may be kept; of a larger one, a checksum has to do.
    """

    __slots__ = ("_held", "_meta", "_parts")

    def __init__(self, array: Any, most: int = _BYTES) -> None:
        self._meta = array.dtype, array.shape
        self._parts = [Contents(part, most) for part in _parts(array)]
        self._held: Any
        plain = np.asarray(array)  # of a record, this has its memory
        if array.dtype.hasobject:
            self._held = None if array.dtype.names else list(plain.flat)
        else:
            self._held = np.array(plain) if array.nbytes <= most else checksum(array)

    @property
    def nbytes(self) -> int:
        """The bytes of the array that are kept."""
        return self._held.nbytes if isinstance(self._held, np.ndarray) else 0

    def fits(self, array: Any) -> bool:
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
        return self._held is None or same_bits(np.asarray(array), self._held)

    def restore(self, array: Any) -> None:
        """Have the array hold this again, as far as it is kept; then, it `fits`."""
        dtype, shape = self._meta
        if array.dtype != dtype or array.size != math.prod(shape):
            return
        if array.shape != shape:
            array.shape = shape
        for content, part in zip(self._parts, _parts(array), strict=False):
            content.restore(part)
        if isinstance(self._held, list):
            np.asarray(array).flat[:] = self._held
        elif isinstance(self._held, np.ndarray):
            np.asarray(array)[...] = self._held


def _parts(array: Any) -> list[np.ndarray]:
    """Fields of records with objects, and arrays that an array has as attributes, as its mask."""
    names = array.dtype.names if array.dtype.hasobject else None
    fields = [np.asarray(array)[name] for name in names or ()]
    attributes = getattr(array, "__dict__", {}).values()
    return [*fields, *(x for x in attributes if type(x) is np.ndarray)]


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


def may_change(array: Any) -> bool:
    """False for an array that nobody can write to any more."""
    if isinstance(array, np.void):
        return True
    return array.dtype.hasobject or array.flags.writeable or isinstance(array.base, np.ndarray)
