"""Donated arguments (``jit(donate=…)``), into which a call may write results, and memory that nobody else holds."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import KnobError
from .destinations import is_plain

Pair = tuple[int, int]


def parameter_names(fn: Callable[..., Any], donate: Any) -> tuple[str, ...]:
    """Names of donated parameters, given by name or position; raises KnobError."""
    if donate is None:
        return ()
    parameters = (donate,) if isinstance(donate, (str, int)) else donate
    try:
        names = list(inspect.signature(fn).parameters)
        return tuple(dict.fromkeys(names[d] if isinstance(d, int) else names[names.index(d)] for d in parameters))
    except (TypeError, ValueError, IndexError):
        raise KnobError(
            f"donate={donate!r}: expected names or positions of parameters of {getattr(fn, '__name__', fn)}"
        ) from None


def positions(names: Sequence[str], donate: Sequence[str]) -> tuple[int, ...]:
    """Indices of the argument leaves, named like ``'x'[1]``, that belong to donated parameters."""
    return tuple(k for k, name in enumerate(names) if name.split("'")[1] in donate)


def given_memory(pairs: Sequence[Pair], inputs: Sequence[Any], count: int) -> list:
    """Per output, the donated array into which it is written in this call, or None."""
    arrays: list[np.ndarray | None] = [None] * count
    for output, k in pairs:
        array = inputs[k]
        if isinstance(array, np.ndarray) and is_plain(array) and array.flags.writeable:
            rest = (x for n, x in enumerate(inputs) if n != k and isinstance(x, np.ndarray))
            is_view = type(array.base) is np.ndarray
            if not is_view and not any(np.may_share_memory(array, x) for x in rest):
                arrays[output] = array
    return arrays


def sole_memory(pairs: Sequence[Pair], inputs: list, count: int) -> list:
    """As `given_memory`, of the donated arrays that nobody holds but the list of inputs.

    No other input is such an array or shares its memory, and nobody can see that it is written to.
    """
    arrays: list[np.ndarray | None] = [None] * count
    for output, k in pairs:
        if is_sole(inputs, k):
            array = inputs[k]
            if isinstance(array, np.ndarray) and array.flags.owndata and is_plain(array):
                arrays[output] = array if array.flags.writeable else None
    return arrays


def is_sole(items: list, k: int) -> bool:
    """True if nobody holds an item of a list but the list; views of an array hold it, too."""
    return _holders(items, k) <= _SOLE


def _holders(items: list, k: int) -> int:
    return sys.getrefcount(items[k])


_SOLE = _holders([np.empty(1)], 0)
"""The number that Python counts for an array that is in one list alone, which its versions do not agree on."""
