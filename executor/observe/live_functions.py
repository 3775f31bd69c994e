"""The functions that this process has made and still holds, and the class they are of."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..settings.fork_lock import hold_over_forks

if TYPE_CHECKING:
    from ..functions.function import GraphFunction

_lock = threading.Lock()
_functions: weakref.WeakKeyDictionary[GraphFunction, int] = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)
holders: list[Callable[[GraphFunction], None]] = []
"""The receivers of every new function: recordings keep those that are made meanwhile."""
kinds: list[type[GraphFunction]] = []
"""The class of functions, once it is loaded: recordings measure its calls."""
hold_over_forks(_lock)


def add(function: GraphFunction) -> None:
    """Register a function that is ready for calls, and pass it to all `holders`."""
    with _lock:
        _functions[function] = next(_numbers)
    for holder in tuple(holders):
        holder(function)


def number_of(function: GraphFunction) -> int:
    """The number of a function: unique in this process, in the order in which they were made."""
    return _functions[function]


def functions() -> list[GraphFunction]:
    """The functions that are still alive, in the order in which they were made."""
    with _lock:
        numbered = list(_functions.items())
    return [function for function, _ in sorted(numbered, key=lambda item: item[1])]
