"""Tables of handlers: what records a NumPy function, ufunc or method that meets a traced value.

The modules of `handlers` fill the tables when `capture.tracer` imports them.  Traced values look
their handlers up here.  This module imports neither, so that traced values need not know
what handles them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .current import current

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

# Modules that many programs do without. They are loaded in this order when a trace meets what no table has.
_WAITING = dict.fromkeys(("linalg", "applied", "histograms", "index_writes", "masked_reductions", "masked_writes"))


def _load_next() -> bool:
    """Load one more of the modules, which fills the tables; False if all were loaded."""
    for name in list(_WAITING):
        # By name: these modules import this one.
        importlib.import_module(f"{__package__.rpartition('.')[0]}.handlers.{name}")
        _WAITING.pop(name, None)  # behind it: other threads wait for the same module
        return True
    return False


def load_all() -> bool:
    """Load the modules that many programs do without; False if all were loaded."""
    more = _load_next()
    while _load_next():
        pass
    return more


def created(name: str, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of NumPy that makes an array, as ``arange``: an op where a trace is in progress."""
    if current() is None:
        return getattr(np, name)(*args, **kwargs)
    load_all()
    return CREATION[name](*args, **kwargs)


def function_handler(function: Any) -> Handler | None:
    """The handler of a function of NumPy or SciPy; None if it has none."""
    try:
        handler = FUNCTIONS.get(function)
    except TypeError:
        return None  # unhashable: no function
    while handler is None and _load_next():
        handler = FUNCTIONS.get(function)
    if handler is None:
        handler = next((late for find in LATE if (late := find(function)) is not None), None)
    return handler


def method_handler(name: str) -> Handler | None:
    """The handler of a method of ndarray; None if it has none."""
    handler = METHODS.get(name)
    while handler is None and _load_next():
        handler = METHODS.get(name)
    return handler
