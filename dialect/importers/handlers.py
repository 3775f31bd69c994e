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

__all__ = ["COMPOSED", "CREATION", "FUNCTIONS", "METHODS", "UFUNCS", "Handler"]
