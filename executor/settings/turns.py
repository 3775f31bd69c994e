"""Turns of the pool's threads while the user's code runs Python: how soon they come."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS = 2e-4  # for which a thread may keep the interpreter where another waits for it


class _Turns:
    """The interpreter's switch interval, while threads of the pool have something to do.

    A thread that waits for the interpreter asks for it after an interval in which nobody else has
    got it. Code that calls BLAS each 0.1 ms gives it away and takes it back so often that, at
    Python's 5 ms, a thread of the pool never asks: it took 16 s to load what 1 s does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before = self._set = 0.0

    def begin(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._before = self._set = sys.getswitchinterval()
                if self._before > _SECONDS:
                    sys.setswitchinterval(_SECONDS)
                    self._set = sys.getswitchinterval()

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count and sys.getswitchinterval() == self._set:  # else somebody set it
                sys.setswitchinterval(self._before)

    def start_over(self) -> None:
        """Forget, in a forked child, the threads of the parent."""
        at_work, self._count = self._count, min(self._count, 1)
        self._lock = threading.Lock()
        if at_work:
            self.end()


_TURNS = _Turns()
os.register_at_fork(after_in_child=_TURNS.start_over)


@contextmanager
def short_turns() -> Iterator[None]:
    """Let no thread keep the interpreter for long where another waits for it."""
    _TURNS.begin()
    try:
        yield
    finally:
        _TURNS.end()
