"""Functions whose trace has recursed too deeply: Python runs their calls, and those within.

Each call within would be traced as well, and end the same way. Between two calls of the user's function are frames of
ours. The limit of frames is raised by as many for each such call that is open, and by no more: other recursion, which
may go through code of C with its own stack, ends where it ends without ours.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

_FRAMES = 5  # that lead from a call to the next one, one of C for `__call__` among them
_lock = threading.Lock()
_open: dict[int, int] = {}  # calls of such functions that are open, by thread
_limits: list[int] = []  # the user's limit, while any are


class Recursion(threading.local):
    """Of one function: ``is_open`` tells whether Python runs a call of it on this thread."""

    is_open = False

    def call(self, fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call in Python, and all calls of the function in it."""
        was_open, self.is_open = self.is_open, True
        _count(1)
        try:
            return fn(*args, **kwargs)
        finally:
            self.is_open = was_open
            _count(-1)


def _count(change: int) -> None:
    """Count the calls that are open on this thread, and set the limit of frames accordingly."""
    thread = threading.get_ident()
    with _lock:
        if not _limits:
            _limits.append(sys.getrecursionlimit())
        _open[thread] = _open.get(thread, 0) + change
        if not _open[thread]:
            del _open[thread]
        sys.setrecursionlimit(_limits[0] + _FRAMES * max(_open.values(), default=0))
        if not _open:
            _limits.clear()
