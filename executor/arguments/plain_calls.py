"""What can be told of calls without flattening them: look-up keys, and which calls are Python's.

To flatten a call, to find its graph and to find that there is none takes up to a hundred times as
long as Python takes for a short function. So what has been found of one call holds for those that
look like it. An outline tells less than a look, hence one call in many is looked at all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass

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


_MOST = 16  # items of a container that are looked at
_CONTAINERS = frozenset({list, tuple, dict})


def sized_outline(args: tuple, kwargs: dict[str, Any]) -> tuple | None:
    """`outline` with the magnitudes of arrays and ints; None for many items, or nested ones."""
    return _itemised(args, kwargs, _sized)


def valued_outline(args: tuple, kwargs: dict[str, Any]) -> tuple | None:
    """`outline` with shapes and numbers; None for a call with many items, or nested ones."""
    return _itemised(args, kwargs, _valued)


def _itemised(args: tuple, kwargs: dict[str, Any], told: Callable) -> tuple | None:
    """What is told of arguments, and of the items of containers."""
    key: list[Any] = [*kwargs]
    for arg in (*args, *kwargs.values()) if kwargs else args:
        kind = type(arg)
        if kind not in _CONTAINERS:
            key += told(arg, kind)
            continue
        items = arg.values() if kind is dict else arg
        if len(arg) > _MOST or not _CONTAINERS.isdisjoint(map(type, items)):
            return None
        key += (kind, len(arg))
        for item in items:
            key += told(item, type(item))
    return tuple(key)


def _sized(arg: Any, kind: type) -> tuple:
    if kind is np.ndarray:
        return arg.dtype, arg.ndim, magnitude(arg)
    return (kind, magnitude(arg)) if kind is int else _outlined(arg, kind)


def _valued(arg: Any, kind: type) -> tuple:
    if kind is np.ndarray:
        return arg.dtype, arg.shape
    if kind in NUMBERS or isinstance(arg, np.generic):
        return kind, arg
    return _outlined(arg, kind)


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
        key += _contents(arg, kind) if kind in _CONTAINERS else _outlined(arg, kind)
    return tuple(key)


def outline_of_kinds(args: tuple, kwargs: dict[str, Any]) -> tuple:
    """`outline` without the identities of objects, and without texts."""
    key: list[Any] = [*kwargs]
    for arg in (*args, *kwargs.values()) if kwargs else args:
        kind = type(arg)
        if kind in _CONTAINERS:
            key += _contents(arg, kind)
        elif kind is np.ndarray:
            key += (arg.dtype, arg.ndim)
        else:
            key.append(kind)
    return tuple(key)


def _contents(arg: Any, kind: type) -> tuple:
    """The part of an outline that is of a container."""
    items = arg.values() if kind is dict else arg
    return kind, len(arg), frozenset(map(type, islice(items, _MOST)))


def _outlined(arg: Any, kind: type) -> tuple:
    """The part of an outline that is of an argument that is no container."""
    if kind is np.ndarray:
        return arg.dtype, arg.ndim
    if kind is str or kind is bool:
        return kind, arg
    if kind in NUMBERS or kind.__hash__ is None or issubclass(kind, (np.ndarray, np.generic)):
        return (kind,)
    return kind, id(arg)


_FIRST = 64  # calls until one is looked at again
_LONGER = 4  # times as many after each that has been found to be Python's once more
_MOST_CALLS = 1 << 14
_KEPT = 1024  # outlines

Outline = Callable[[tuple, dict[str, Any]], Hashable]


@dataclass(eq=False)
class _Left:
    """Calls of one outline: how many are left unseen now, and how many were after the last look."""

    calls: int
    wait: int


class Unseen:
    """What is known of calls by one kind of outline.

    Args:
        outline: of a call; None for calls of which it tells too little.
        grows: whether more calls are left unseen each time that a look has been in vain.
    """

    def __init__(self, outline: Outline, *, grows: bool = True) -> None:
        self._outline, self._grows = outline, grows
        self._left: dict[Hashable, _Left] = {}
        self._mixed: dict[Hashable, None] = {}  # outlines that calls with graphs have, too

    def takes(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Whether Python takes a call unseen."""
        if not self._left:
            return False
        left = self._left.get(self._outline(args, kwargs))
        if left is None or left.calls <= 0:
            return False
        left.calls -= 1
        return True

    def note(self, args: tuple, kwargs: dict[str, Any], calls: int | None = None) -> bool:
        """Leave calls like one that was looked at to Python; returns whether that could be noted.

        ``calls``: as many are left unseen; None = as many as pay off.
        """
        key = self._outline(args, kwargs)
        if key is None or key in self._mixed:
            return False
        left = self._left.get(key)
        if left is None:
            if len(self._left) >= _KEPT:  # of objects that are gone, for the most part
                self._left.clear()
            left = self._left[key] = _Left(0, 0)
        wait = min(left.wait * _LONGER, _MOST_CALLS) if self._grows else 0
        left.calls = left.wait = max(wait, _FIRST) if calls is None else calls
        return True

    def drop(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Look at all calls like this one from now on: it has a graph."""
        if not self._left:
            return
        key = self._outline(args, kwargs)
        if self._left.pop(key, None) is not None and len(self._mixed) < _KEPT:
            self._mixed[key] = None

    def clear(self) -> None:
        """Look at each call again."""
        self._left.clear()
