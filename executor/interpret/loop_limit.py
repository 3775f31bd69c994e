"""The limit of loops that a graph evaluates op by op.

A round costs an evaluation per op, many times what Python's own loop or a kernel takes. What only
wants to know something of a graph, its types or one of its results, does not wait for all rounds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...dialect.ir.program import Module
from ...dialect.ops.control_flow.control import LOOPS
from ..settings.knobs import knobs


class TooLong(Exception):
    """The loops of an evaluation have taken longer than they may."""


class SoonerInPython(Exception):
    """A call whose loops would be evaluated op by op, which Python runs in less time.

    Whoever has set the present limit runs the call in Python.
    """


class VoidRun(SoonerInPython):
    """A kernel with loops has voided its run: Python raises what NumPy raises, or computes."""


class TooManyRounds(SoonerInPython):
    """A loop of a plan, without kernels, has gone on for so long that Python takes less time."""


class Limit:
    """Ends the loops of evaluations, where `within` says so.

    Args:
        seconds: CPU time of the thread that an evaluation may take.
        truncates: loops end before their last round then, which gives the values of all later ops
            other contents; False = they raise TooLong.

    Attributes:
        over: loops have been ended.
    """

    def __init__(self, seconds: float, *, truncates: bool = False) -> None:
        self.seconds, self._truncates, self.over = seconds, truncates, False
        self.begin()

    def begin(self, times: int = 1) -> None:
        """Begin an evaluation, which may take so many times as long."""
        self._left = self.seconds * times
        self._asked = time.perf_counter()
        self._end = time.thread_time() + self._left

    def passed(self) -> bool:
        """True if a loop has to end after the present round; may raise TooLong."""
        # The clock is read without the system, and no thread takes more of the processor's time than passes by it.
        if not self.over and (now := time.perf_counter()) - self._asked >= self._left:
            self._asked, self._left = now, self._end - time.thread_time()
            if self._left < 0:
                if not self._truncates:
                    raise TooLong(f"its loops take more than {1e3 * self.seconds:.0f} ms in NumPy")
                self.over = True
        return self.over


class _Limits(threading.local):
    current: Limit | None = None


LIMITS = _Limits()
"""The limit of the present thread: ``current``; None = loops run to their end."""


_PATIENCE = 0.03  # seconds that a loop of a plan without kernels takes where a limit holds


def end_of_patience() -> float:
    """The time at which a loop without kernels that begins now has to hand the call to Python."""
    if LIMITS.current is None or not knobs.demote:
        return math.inf
    return time.perf_counter() + _PATIENCE


def check_patience(end: float) -> None:
    """Raise TooManyRounds once it is so late."""
    if time.perf_counter() > end:
        raise TooManyRounds


@contextmanager
def within(limit: Limit | None) -> Iterator[None]:
    """Evaluate graphs on this thread within a limit; None = without one."""
    outer, LIMITS.current = LIMITS.current, limit
    try:
        yield
    finally:
        LIMITS.current = outer


def run_within(limit: Limit | None, run: Callable[..., Any], *args: Any) -> Any:
    """``run(*args)`` within a limit; None = without one."""
    if limit is None and LIMITS.current is None:
        return run(*args)
    with within(limit):
        return run(*args)


def has_rounds(module: Module) -> bool:
    """True for a graph that has a loop, in whichever function and block."""
    functions = (module.main, *module.functions.values())
    return any(i.op in LOOPS for function in functions for i in function.body.walk())
