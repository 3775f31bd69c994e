"""Functions that only move elements, as one read at the places that they take elements from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .rule import bound, found_function


def moved(name: str, *elements: str) -> Callable[..., Any]:
    """The composition of a function of NumPy.

    Args:
        name: of the function.
        elements: the parameters whose elements are moved; all others say where to.

    The function itself, given the number of each element in its place, tells where each goes.
    """

    def composition(*args: Any, **named: Any) -> Any:
        function = found_function(f"numpy.{name}")
        arguments = bound(function, args, named)
        parts: list[Any] = []
        count: Any = 0
        for parameter in elements:
            array = arguments[parameter]
            parts.append(np.reshape(array, (-1,)))
            arguments[parameter] = numbered(array) + count
            count = count + np.size(array)
        every = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return np.take(every, function(**arguments))

    return composition


def numbered(array: Any) -> Any:
    """The numbers of an array's elements in C order, in its shape."""
    ones = np.ones_like(array, dtype=np.int64)
    return np.reshape(np.cumsum(ones) - 1, np.shape(array))


def axes_of(axis: int | Sequence[int] | None, rank: int) -> list[int]:
    """The axes that an argument names, of a call that has been run; None = all."""
    if not rank:
        return []
    listed = range(rank) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return [int(k) % rank for k in listed]


def rows_of(array: Any, axis: int | Sequence[int] | None) -> tuple[Any, list[int]]:
    """An array whose last axis has what is along some axes; and these axes, None = all."""
    rank = np.ndim(array)
    axes = sorted(axes_of(axis, rank))
    kept = [k for k in range(rank) if k not in axes]
    turned = np.transpose(array, kept + axes)
    return np.reshape(turned, (*(np.shape(array)[k] for k in kept), -1)), axes
