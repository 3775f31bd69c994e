"""Contents of arrays that a trace has read as plain values.

Arrays from outside of the call are inputs of the graph: their contents may change. Where the code
needs them as they are (`if W.any()`, a table of strings, what a package holds), what it has
computed of them is part of the graph, which then holds for these contents alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracing.recorder import checksum
from .journal import same_bits, same_objects

_BYTES = 1 << 22  # of arrays that are kept as copies; larger ones are compared by checksum


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


__all__ = ["Contents"]
