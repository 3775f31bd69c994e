"""A pause of watching while this package records for a trace: that is thousands of calls of known code.

The profile function of a trace (see `watching`) costs as much as recording does. So it is out of
force while an op is recorded, unless an operand may bring code of its own.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ....errors import COMPLAINTS, NOTICING, ProfuseError
from .instances import PLAIN_TYPES

_Call = TypeVar("_Call", bound=Callable)
# Classes of values that run nothing of the user's. Those of traced values join them.
HARMLESS: set[type] = {
    *PLAIN_TYPES,
    type,
    np.ndarray,
    np.dtype,
    np.ufunc,
    type(np.sum),
    types.ModuleType,
    *np.sctypeDict.values(),
}


WATCHES: set[Any] = set()  # profile functions of traces, as their class has them


def unwatched(function: _Call) -> _Call:
    """Decorate a function that runs no code but this package's, whatever harmless it is given."""
    return functools.wraps(function)(_pausing(function))  # type: ignore[return-value]


def bound_method(array: Any, name: str, handler: Callable) -> Callable:
    """What stands for a method of an array that has been read: it calls a handler, unwatched if it may."""
    call = _pausing(functools.partial(handler, array))
    call.__name__, call.__qualname__ = name, f"ndarray.{name}"
    return call


def _pausing(function: Callable) -> Callable:
    # One frame does it all: as long as a trace is watched, each further one costs as much as a small op.
    def call(*args: Any, **kwargs: Any) -> Any:
        event: Any = sys.getprofile()
        is_off = type(event) is types.MethodType and event.__func__ in WATCHES
        try:
            if is_off:
                sys.setprofile(None)
                if not (event.__self__.pauses and are_harmless((args, kwargs))):
                    is_off = False
                    sys.setprofile(event)
            return function(*args, **kwargs)
        except COMPLAINTS as error:
            if event is not None and NOTICING.notice is not None and not isinstance(error, ProfuseError):
                NOTICING.notice()  # our own errors tell of themselves
            raise
        finally:
            if is_off:
                sys.setprofile(event)

    return call


def apart(function: Callable, *args: Any) -> Any:
    """Call a function of this package's own, unwatched, whatever it is given."""
    event = sys.getprofile()
    if type(event) is not types.MethodType or event.__func__ not in WATCHES:
        return function(*args)
    sys.setprofile(None)
    try:
        return function(*args)
    finally:
        sys.setprofile(event)


def are_harmless(values: tuple | list) -> bool:
    """True unless one of these values, or of what is in them, may run code of a class's own."""
    for value in values:
        kind = type(value)
        if kind in HARMLESS:
            continue
        if kind is dict:
            value = tuple(value.values())
        elif kind is not tuple and kind is not list:
            return False
        if not are_harmless(value):
            return False
    return True
