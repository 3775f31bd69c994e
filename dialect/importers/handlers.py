"""Tables of handlers: what records a NumPy function, ufunc or method that meets a traced value.

The modules of `importers.numpy` fill the tables when `tracing.tracer` imports them.  Traced values
look their handlers up here.  This module imports neither, so that traced values need not know
what handles them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]

FUNCTIONS: dict[Any, Handler] = {}  # NumPy function -> handler
UFUNCS: dict[str, str] = {}  # ufunc name -> op name
COMPOSED: dict[str, Handler] = {}  # ufuncs that are two or three ops, by name
# ndarray method -> handler (first parameter: the array); of special methods those that NumPy's
# indexing and ufuncs call, such as ``__getitem__``.
METHODS: dict[str, Handler] = {}
CREATION: dict[str, Handler] = {}  # functions that do not dispatch on arguments; see `substitutes`
# Asked for functions that have no handler, which few programs call: what they load is loaded then.
LATE: list[Callable[[Any], Handler | None]] = []


def handler_of(function: Any) -> Handler | None:
    """What records a NumPy function, or None."""
    try:
        found = FUNCTIONS.get(function)
    except TypeError:
        return None  # unhashable: no function
    if found is None:
        found = next((made for find in LATE if (made := find(function)) is not None), None)
    return found


__all__ = [
    "COMPOSED", "CREATION", "FUNCTIONS", "LATE", "METHODS", "UFUNCS", "Handler", "handler_of",
]  # fmt: skip
