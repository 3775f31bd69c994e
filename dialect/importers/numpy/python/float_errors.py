"""The settings of NumPy for floating-point errors in this thread (`np.errstate`, `np.seterr`).

Kernels notice no such errors, so that calls are Python's where somebody has asked to be told of
them: by an exception, a call, or a line of text. So are functions that compute anything in such a
state of their own making (`Recorder.append`). That NumPy may warn, as it does by default, or
ignore them is no such wish. NumPy keeps its choice in a context variable, whose value is another
object after each change.
"""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np
from numpy._core import umath

from ....errors import TraceError

TELLS = frozenset({"raise", "call", "print", "log"})
# `np.geterr` makes a dict, for a microsecond; to compare objects takes a thirtieth of that.
STATE: contextvars.ContextVar[Any] = umath._extobj_contextvar
_DEFAULT: Any = contextvars.Context().run(STATE.get)
_last: tuple[Any, str | None] = (_DEFAULT, None)  # a value, and what it asks for


def told_errors() -> str | None:
    """The way in which floating-point errors are to be told; None if NumPy warns at most."""
    global _last
    state = STATE.get()
    last_state, way = _last
    if state is _DEFAULT:
        return None
    if state is not last_state:
        way = next((how for how in np.geterr().values() if how in TELLS), None)
        _last = state, way
    return way


def told_error(how: str) -> TraceError:
    """The reason why a call has no graph where errors are to be told."""
    return TraceError(
        f"NumPy is asked to {how} at floating-point errors (np.errstate or np.seterr), which no graph notices",
        hint="ask the results (np.isfinite(x).all()), or call it outside of np.errstate",
    )
