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

# Modules that few programs need. They are loaded when a trace meets what no table has.
_SELDOM = ("applied", "histograms", "index_writes", "masked_reductions", "masked_writes")
_loaded: list[str] = []


def load_all() -> bool:
    """Load the modules that few programs need, which fill the tables; False if all were loaded."""
    if _loaded:
        return False
    _loaded.extend(_SELDOM)
    for name in _SELDOM:
        # By name: these modules import this one, and most traces do without them.
        importlib.import_module(f"{__package__.rpartition('.')[0]}.handlers.{name}")
    return True


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
    if handler is None and load_all():
        handler = FUNCTIONS.get(function)
    if handler is None:
        handler = next((late for find in LATE if (late := find(function)) is not None), None)
    return handler


def method_handler(name: str) -> Handler | None:
    """The handler of a method of ndarray; None if it has none."""
    handler = METHODS.get(name)
    return METHODS.get(name) if handler is None and load_all() else handler
