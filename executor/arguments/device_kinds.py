"""The types of device arrays that this process has met, and how each becomes a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialect.errors import ProfuseError
from .plain_calls import NUMBERS

converts: dict[type, Callable[[Any], Any]] = {}  # type of device arrays -> function to a leaf


def kinds_met() -> int:
    """The number of types of device arrays that this process has seen."""
    return len(converts)


def flat_leaves(args: tuple) -> tuple[tuple, list] | None:
    """Key and leaves of a call whose arguments are numbers and arrays of known device types.

    None for other calls: their arguments have to be flattened, or are not allowed.
    """
    if not converts:
        return None
    key: list[Any] = []
    leaves: list[Any] = []
    for arg in args:
        kind = type(arg)
        convert = converts.get(kind)
        if convert is not None:
            try:
                arg = convert(arg)
            except ProfuseError:
                return None  # the slow path raises it again, with the argument's name
            key.append(arg.kind)
        elif kind in NUMBERS:
            key.append(kind)
        else:
            return None
        leaves.append(arg)
    return tuple(key), leaves
