"""The functions that this process has made and still holds, and the classes they are of."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..settings.fork_lock import hold_over_forks

if TYPE_CHECKING:
    from ..functions.base import GraphFunction

Function = TypeVar("Function", bound="GraphFunction")

_lock = threading.Lock()
_functions: weakref.WeakKeyDictionary[GraphFunction, int] = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)
holders: list[Callable[[GraphFunction], None]] = []
"""What every new function is handed to: recordings keep those that are made meanwhile."""
kinds: list[type[GraphFunction]] = []
"""The classes of functions, without their subclasses: recordings measure calls of each."""
hold_over_forks(_lock)


def kind(cls: type[Function]) -> type[Function]:
    """Class decorator: add a class of functions to `kinds`."""
    kinds.append(cls)
    return cls


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
