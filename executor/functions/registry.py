"""Every function that this process has made and still holds, for those who look at all of them."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..settings.knobs import knobs

if TYPE_CHECKING:
    from .base import GraphFunction

_lock = threading.Lock()
_functions: weakref.WeakKeyDictionary[GraphFunction, int] = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)
holders: list[Callable[[GraphFunction], None]] = []
"""What every new function is handed to: recordings keep those that are made meanwhile."""
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def add(function: GraphFunction) -> None:
    """A function has been made, and is ready."""
    if knobs.trace:
        from ..observe.perfetto import trace_from_environment

        trace_from_environment(knobs.trace)
    with _lock:
        _functions[function] = next(_numbers)
    for holder in tuple(holders):
        holder(function)


def number_of(function: GraphFunction) -> int:
    """A number that no other function of this process has, in the order of making."""
    return _functions[function]


def functions() -> list[GraphFunction]:
    """The functions that are still there, in the order of making."""
    with _lock:
        numbered = list(_functions.items())
    return [function for function, _ in sorted(numbered, key=lambda item: item[1])]
