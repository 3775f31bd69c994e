"""Views on the tape: arrays that share memory, and what a write through one of them means.

The first array that has the memory is the base of all views of it. A write through a view gives the
base a new node (`CopySlices`), and other views theirs when they are used next (`ViewOf`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .node import Node

if TYPE_CHECKING:
    from .array import Array


class ViewPart:
    """The elements of a base that a view, or an index, takes.

    Args:
        base: the array behind the view.
        view: an array in its memory.
        key: an index of the view that takes some of its elements only, once each or more often.
    """

    __slots__ = ("_key", "_offset", "_shape", "_size", "_steps", "_strides", "_whole")

    def __init__(self, base: np.ndarray, view: np.ndarray, key: Any = None) -> None:
        self._whole, self._steps = base.shape, base.strides
        self._shape, self._strides = view.shape, view.strides
        self._offset = _address(view) - _address(base)
        self._size, self._key = base.itemsize, key

    def numbers(self) -> np.ndarray:
        """For each element of the part, its number in the base, counted in C order."""
        # Elements of the base lie apart by multiples of the size of one, but not in C order.
        low = sum(min(0, (n - 1) * s) for n, s in zip(self._whole, self._steps, strict=True))
        high = sum(max(0, (n - 1) * s) for n, s in zip(self._whole, self._steps, strict=True))
        size = self._size
        memory = np.zeros((high - low) // size + 1, np.int64)
        numbers: np.ndarray = np.ndarray(
            self._whole, np.int64, memory, -low // size * 8, tuple(s // size * 8 for s in self._steps)
        )
        numbers[...] = np.arange(numbers.size).reshape(self._whole)
        part: np.ndarray = np.ndarray(
            self._shape, np.int64, memory, (self._offset - low) // size * 8, tuple(s // size * 8 for s in self._strides)
        )
        return part.copy() if self._key is None else part[self._key].copy()

    def of(self, whole: Any) -> Any:
        """The elements of the part, of something with the shape of the base.

        Zero for an element that a later one of the part has overwritten.
        """
        numbers = self.numbers()
        elements = np.take(np.reshape(whole, -1), numbers)
        if self._key is None:
            return elements
        last = np.zeros(self._whole, np.int64).reshape(-1)
        places = np.arange(numbers.size).reshape(numbers.shape)
        last[numbers] = places
        return np.where(last[numbers] == places, elements, np.zeros((), whole.dtype))

    def without(self, whole: Any) -> Any:
        """``whole``, of the shape of the base, with zeros where the part lies."""
        inside = np.zeros(self._whole, bool)
        inside.reshape(-1)[self.numbers()] = True
        return np.where(inside, np.zeros((), whole.dtype), whole)

    def placed(self, g: Any) -> Any:
        """Zeros of the shape of the base, with ``g`` added where the part lies."""
        numbers = self.numbers()
        if type(g).__module__ == "numpy":
            out = np.zeros(self._whole, g.dtype)
            np.add.at(out.reshape(-1), numbers, g)
            return out
        flat = np.take(
            np.reshape(np.concatenate([np.reshape(g, -1), np.zeros(1, g.dtype)]), -1), self._sources(numbers)
        )
        return np.reshape(flat, self._whole)

    def _sources(self, numbers: np.ndarray) -> np.ndarray:
        """For each element of the base, which of the part lies there; past the last: none."""
        source = np.full(self._whole, numbers.size).reshape(-1)
        source[numbers] = np.arange(numbers.size).reshape(numbers.shape)
        return source


def _address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


class CopySlices(Node):
    """A base after a write through a view: the base before it, and what was written (R4.28)."""

    __slots__ = ("part",)
    op_name = "copy_slices"

    def __init__(self, base: Array, view: Array, written: Array, key: Any = None) -> None:
        super().__init__([base.edge(), written.edge()], [(base.shape, base.dtype)])
        self.part = ViewPart(base.data, view.data, key)

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        g = gradients[0]
        old, new = self.edges
        return [None if old is None else self.part.without(g), None if new is None else self.part.of(g)]


class ViewOf(Node):
    """A view whose base was written to after the view was made."""

    __slots__ = ("part",)
    op_name = "view_of"

    def __init__(self, base: Array, view: Array) -> None:
        super().__init__([base.edge()], [(view.shape, view.dtype)])
        self.part = ViewPart(base.data, view.data)

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        g = gradients[0]
        return [self.part.placed(g)]
