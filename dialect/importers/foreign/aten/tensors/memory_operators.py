"""Tensors read, and written, by places in the memory of another, which lies in a known order of its axes.

Arrays of a graph lie as they like, so readers of graphs say how torch has the tensor: the names of these operators are
this package's. The tensor has all of its memory, each element once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...array_values import constant_or_created
from ..aten_table import aten
from ..promotion import cast


def _flat(x: Any, order: Sequence[int]) -> Any:
    """The elements in the order of memory."""
    return np.reshape(np.transpose(x, tuple(order)), (-1,))


def _places(size: Sequence[Any], stride: Sequence[Any], offset: Any) -> Any:
    """The place in memory of each element."""
    places: Any = np.zeros((1,) * len(size), np.int64) + (offset or 0)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = (-1, *(1,) * (len(size) - axis - 1))
        places = places + np.reshape(constant_or_created("arange", count) * step, shape)
    return places


def _turned(size: Sequence[Any], stride: Sequence[Any], offset: Any, count: Any) -> list[int] | None:
    """The axes from the outermost to the innermost, where the elements are all of the memory; None = they are not."""
    if any(type(n) is not int for n in (*size, *stride, offset or 0, count)) or offset or math.prod(size) != count:
        return None
    axes = sorted(range(len(size)), key=lambda k: (-stride[k], -size[k]))
    step = 1
    for k in reversed(axes):
        if size[k] != 1 and stride[k] != step:
            return None
        step *= size[k]
    return axes


@aten("profuse::as_strided", "profuse::as_strided_copy")
def as_strided(self: Any, size: Any, stride: Any, storage_offset: Any = None, *, memory_order: Sequence[int]) -> Any:
    flat = _flat(self, memory_order)
    axes = _turned(size, stride, storage_offset, self.size)
    if axes is not None:
        back = sorted(range(len(axes)), key=axes.__getitem__)
        return np.transpose(np.reshape(flat, tuple(size[k] for k in axes)), back)
    return np.take(flat, _places(size, stride, storage_offset), axis=0)


@aten("profuse::as_strided_scatter")
def as_strided_scatter(
    self: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None, *, memory_order: Sequence[int]
) -> Any:
    flat = np.copy(_flat(self, memory_order))
    flat[_places(size, stride, storage_offset)] = cast(src, self.dtype)
    back = sorted(range(self.ndim), key=list(memory_order).__getitem__)
    return np.transpose(np.reshape(flat, tuple(self.shape[k] for k in memory_order)), back)


__all__: list[str] = []
