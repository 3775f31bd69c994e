"""Functions whose trace has recursed too deeply: Python runs their calls, and those within.

Each call within would be traced as well, and end the same way. Between two calls of the user's
function are four frames of ours, so that the limit of frames is raised meanwhile.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_FRAMES = 5  # of a call: the user's, those that lead to it, and one of C for `__call__`
_lock = threading.Lock()
_limits: list[int] = []  # the user's limit, once for each thread that is in such a call


class Recursion(threading.local):
    """Of one function: ``is_open`` tells whether Python runs a call of it on this thread."""

    is_open = False

    @contextmanager
    def run(self) -> Iterator[None]:
        """Run a call in Python, and all calls of the function in it."""
        if self.is_open:
            yield
            return
        with _lock:
            _limits.append(_limits[0] if _limits else sys.getrecursionlimit())
            sys.setrecursionlimit(_limits[0] * _FRAMES)
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False
            with _lock:
                limit = _limits.pop()
                if not _limits:
                    sys.setrecursionlimit(limit)
