"""Look-up keys of calls that need no flattening."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

NUMBERS = frozenset({bool, int, float, complex})


def flat_key(args: tuple) -> tuple | None:
    """The look-up key of a call: dtype and rank of each array, type of each number.

    None if an argument is neither a Python number nor an aligned np.ndarray in native byte order.
    """
    key: list[Any] = []
    for arg in args:
        kind = type(arg)
        if kind is np.ndarray:
            if not arg.flags.aligned or not arg.dtype.isnative:
                return None
            key += (arg.dtype, arg.ndim)
        elif kind in NUMBERS:
            key.append(kind)
        else:
            return None
    return tuple(key)


_MOST = 64  # items of a container that are looked at


def sized_outline(args: tuple, kwargs: dict[str, Any]) -> tuple | None:
    """`outline` with the magnitudes of arrays and ints; None for a call with containers.

    What a container holds may be of any size.
    """
    key: list[Any] = [*kwargs]
    for arg in (*args, *kwargs.values()) if kwargs else args:
        kind = type(arg)
        if kind is list or kind is tuple or kind is dict:
            return None
        key += _outlined(arg, kind)
        if kind is np.ndarray or kind is int:
            key.append(magnitude(arg))
    return tuple(key)


def magnitude(leaf: Any) -> int:
    """How large an argument is, to the next power of 2: calls in one class take similar times."""
    if isinstance(leaf, np.ndarray):
        return leaf.size.bit_length()
    return leaf.bit_length() if type(leaf) is int else 0


def outline(args: tuple, kwargs: dict[str, Any]) -> tuple:
    """What can be told of any call at once: `flat_key`, and of containers what types they hold.

    Calls of different structures may have the same outline.
    """
    key: list[Any] = [*kwargs]
    for arg in (*args, *kwargs.values()) if kwargs else args:
        kind = type(arg)
        if kind is list or kind is tuple:
            key += (kind, len(arg), frozenset(map(type, arg[:_MOST])))
        elif kind is dict:
            key += (kind, len(arg), frozenset(map(type, islice(arg.values(), _MOST))))
        else:
            key += _outlined(arg, kind)
    return tuple(key)


def _outlined(arg: Any, kind: type) -> tuple:
    """The part of an outline that is of an argument that is no container."""
    if kind is np.ndarray:
        return arg.dtype, arg.ndim
    if kind is str or kind is bool:
        return kind, arg
    if kind in NUMBERS or kind.__hash__ is None or issubclass(kind, np.ndarray):
        return (kind,)
    return kind, id(arg)
