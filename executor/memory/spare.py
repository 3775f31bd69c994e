"""Memory of a loop in a plan: a kernel writes where the result of the round before last lay.

A round reads what the one before has made, and makes an array of the same size. Two arrays are
enough for all rounds, as long as nobody else holds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .donation import is_sole


class Spare:
    """The last two arrays that a kernel has made in the rounds of one run of a loop.

    All of them own their memory, or have it of the pool: none is a view of an array. So whoever can
    see the memory of such an array holds the array, or a view that does.
    """

    __slots__ = ("_arrays",)

    def __init__(self) -> None:
        self._arrays: list[Any] = [None, None]

    def take(self) -> np.ndarray | None:
        """The array of the round before last, if nobody else holds it; else None."""
        arrays = self._arrays
        return arrays[0] if arrays[0] is not None and is_sole(arrays, 0) else None

    def keep(self, array: np.ndarray) -> None:
        """Note what the kernel has made in this round."""
        arrays = self._arrays
        arrays[0], arrays[1] = arrays[1], array
