"""Functions of users that graphs call on the host, by the names under which graphs know them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from ...errors import IRError

_functions: WeakValueDictionary[str, Any] = WeakValueDictionary()
_numbers: dict[str, int] = {}  # how many functions of a name there have been
_lock = threading.Lock()


def enter(entry: Any, name: str) -> str:
    """Enter an object with an attribute ``function``; returns the name that graphs use for it.

    That is its own, with a number behind it if there has been another one with it: a graph may
    have outlived that.
    """
    with _lock:
        number = _numbers[name] = _numbers.get(name, 0) + 1
        full_name = name if number == 1 else f"{name}#{number}"
        _functions[full_name] = entry
        return full_name


def users_function(name: str) -> Callable[..., Any]:
    """The function of a name; raises IRError if this process has none."""
    entry = _functions.get(name)
    if entry is None:
        raise IRError(
            f"a graph calls {name}, a function that pf.host has not been given in this process",
            hint="trace the function that calls it here",
        )
    function: Callable[..., Any] = entry.function
    return function
