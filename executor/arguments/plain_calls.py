"""Descriptions of calls that need no flattening: look-up keys and outlines."""

from __future__ import annotations

from collections.abc import Callable
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


_MOST = 16  # items of a container that are looked at
_CONTAINERS = frozenset({list, tuple, dict})
_OF_NUMPY = (np.ndarray, np.generic)


def sized_outline(args: tuple, kwargs: dict[str, Any]) -> tuple | None:
    """`outline` with the magnitudes of arrays and ints; None for many items, or nested ones."""
    return _itemised(args, kwargs, _sized)


def valued_outline(args: tuple, kwargs: dict[str, Any]) -> tuple | None:
    """`outline` with shapes and numbers; None for a call with many items, or nested ones."""
    return _itemised(args, kwargs, _valued)


def _itemised(args: tuple, kwargs: dict[str, Any], told: Callable) -> tuple | None:
    """The outline of arguments, and of the items of containers."""
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
    """The size of an argument, to the next power of 2: calls in one class take similar times."""
    if isinstance(leaf, np.ndarray):
        return leaf.size.bit_length()
    return leaf.bit_length() if type(leaf) is int else 0


def outline(args: tuple, kwargs: dict[str, Any]) -> tuple:
    """The outline of any call, at once: `flat_key`, and of containers what types they hold.

    Calls of different structures may have the same outline.
    """
    key: list[Any] = [*kwargs]
    for arg in (*args, *kwargs.values()) if kwargs else args:
        kind = type(arg)
        if kind is np.ndarray:
            key += (arg.dtype, arg.ndim)
        else:
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
    if kind in NUMBERS or kind.__hash__ is None or issubclass(kind, _OF_NUMPY):
        return (kind,)
    return kind, id(arg)
