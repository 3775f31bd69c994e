"""The things that users add to a compiler that is already there, and can take away again."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Things in the order in which they were registered; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: tuple[Registration[T], ...] = ()

    def add(self, item: T) -> Registration[T]:
        """Register ``item``; the same one may be there several times."""
        registration = Registration(item, self)
        with self._lock:
            self._entries = (*self._entries, registration)
        return registration

    def discard(self, entry: Registration[T]) -> None:
        """Take a registration out, if it is still in."""
        with self._lock:
            self._entries = tuple(e for e in self._entries if e is not entry)

    @property
    def items(self) -> tuple[T, ...]:
        """The items that are registered now."""
        return tuple(e.item for e in self._entries)


class Registration(Generic[T]):
    """Something that is in use until `remove` is called, or for the time of a ``with`` block."""

    def __init__(self, item: T, home: Registry[T]) -> None:
        self.item = item
        self._home = home

    def remove(self) -> None:
        """End the use, for graphs made or optimised from now on; a second call does nothing."""
        self._home.discard(self)

    def __enter__(self) -> Registration[T]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
