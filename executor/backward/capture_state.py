"""State of a thread: whether its backward runs are captured, and the capture that is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from ...dialect.errors import GradientError

Compiler = Callable[[Any], Callable[..., Any]]


class _ThreadState(threading.local):
    """The state of one thread.

    Attributes:
        compiler: makes a callable of a captured run; None = runs are eager.
        key: what compilers have in common that are served by the same captures.
        dynamic: sizes are passed from the first capture on.
        forced: enabling has no effect in this thread (R4.2).
        eager: a scope that would have enabled captures is open, without effect.
        capturing: a capture, or its compile, is under way.
        running: how many runs are under way that are captured, or eager while others capture them.
    """

    compiler: Compiler | None = None
    key: Hashable = None
    dynamic = False
    forced = False
    eager = False
    capturing = False
    running = 0


STATE = _ThreadState()


def nested() -> GradientError:
    """The error for a scope that is entered while this thread captures a run (R4.6)."""
    return GradientError(
        "a backward run is asked for while another one is captured",
        hint="call backward in a hook: hooks run when the capture has ended",
    )
