"""A lock that a forked child finds free, whichever thread of the parent held it.

Only the thread that forks lives on in the child. If a fork waited for all other threads, it would
stall for as long as a trace or a compile takes. Instead, the child starts their work over.
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
        start_over: a bound method that resets the state which the lock protects. A forked child
            calls it before it first takes the lock, if another thread of the parent held the lock:
            the state may be half changed. The lock does not keep the method's object alive. None =
            the state is never half changed.
    """

    def __init__(self, start_over: Callable[[], None] | None = None) -> None:
        self._lock = threading.RLock()
        self._generation = _generation
        self._start_over = None if start_over is None else weakref.WeakMethod(start_over)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; False if ``blocking`` is False and another thread holds it."""
        if self._generation != _generation:
            self._renew()
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def _renew(self) -> None:
        with _renewing:
            if self._generation == _generation:
                return  # another thread of the child has already done this
            if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
                self._lock.release()
            else:
                self._lock = threading.RLock()
                start_over = None if self._start_over is None else self._start_over()
                if start_over is not None:
                    start_over()
            self._generation = _generation


def hold_over_forks(lock: Any) -> None:
    """Hold a plain lock during every fork.

    So no child inherits a lock that is held by a thread which the child does not have.
    """
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


_renewing = threading.RLock()


def _in_forked_child() -> None:
    global _generation, _renewing
    _generation += 1
    _renewing = threading.RLock()


os.register_at_fork(after_in_child=_in_forked_child)
