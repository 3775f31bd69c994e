"""A lock that a forked child finds free, whichever thread of the parent held it.

Only the thread that forks lives on in the child. Waiting for all others before a fork would stall
it for as long as a trace or a compile takes; instead, what they were at starts over.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

_generation = 0  # forks between the first process and this one


class ForkLock:
    """A re-entrant lock.

    Args:
        start_over: a method, called under the lock in a forked child whose parent had another
            thread at work under it; what it guards may be half changed. Its object is not kept
            alive. None = nothing is ever half changed.
    """

    def __init__(self, start_over: Callable[[], None] | None = None) -> None:
        self._lock = threading.RLock()
        self._generation = _generation
        self._start_over = None if start_over is None else weakref.WeakMethod(start_over)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; False if it is taken and must not be waited for."""
        if self._generation != _generation:
            self._renew()
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Give it back."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def _renew(self) -> None:
        with _renewing:
            if self._generation == _generation:
                return  # another thread of the child has already done this
            if self._lock.acquire(blocking=False):  # free, or the forking thread's own
                self._lock.release()
            else:
                self._lock = threading.RLock()
                start_over = None if self._start_over is None else self._start_over()
                if start_over is not None:
                    start_over()
            self._generation = _generation


def hold_over_forks(lock: Any) -> None:
    """Have a plain lock of this module's users taken around every fork.

    No child may start with the lock held by a thread that it does not have.
    """
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


_renewing = threading.RLock()


def _in_forked_child() -> None:
    global _generation, _renewing
    _generation += 1
    _renewing = threading.RLock()


os.register_at_fork(after_in_child=_in_forked_child)
