"""What slow calls did: traced, profiled, compiled; the last few, per jitted function."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..settings.events import Counters
from ..settings.fork_lock import ForkLock

_KEPT = 64
_LEAST_SECONDS = 1e-3  # of what is mostly there already, and then takes next to nothing


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work that no later call has to repeat.

    Attributes:
        call: number of the call of the jitted function that did it, from 1.
        thread: the thread it ran in.
        what: ``"traced"``, ``"recalled"`` (looked for stored profiles), ``"profiled"``,
            ``"prepared"`` (loaded what compiles in the background), ``"compiled"``, ``"loaded"``
            (what some cache had compiled) or ``"failed"`` (to compile).
        seconds: how long it took.
        where: name of the executor.
        detail: e.g. ``"static specialisation with 1 kernel"``.
    """

    call: int
    thread: int
    what: str
    seconds: float
    where: str
    detail: str = ""


class WorkLog:
    """The latest work of one graph and its fallback chain; bounded, safe among threads.

    Args:
        counters: those of the outermost executor, which count calls.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        # Replaced as a whole, so that readers need no lock: even the copy of a deque may collect
        # garbage before it begins, and so let another thread append.
        self._items: tuple[Work, ...] = ()
        self._writing = ForkLock()

    def note(
        self, what: str, seconds: float, where: str, detail: str = "", *, before_call: bool = False
    ) -> None:
        """Record work of the current call (``before_call``: of the one about to be counted)."""
        call = self._counters.current().calls + before_call
        work = Work(call, threading.get_ident(), what, seconds, where, detail)
        with self._writing:
            self._items = (*self._items, work)[-_KEPT:]

    @contextmanager
    def timed(self, what: str, where: str) -> Iterator[None]:
        """Around work of the current call that is recorded if it takes a millisecond."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        if seconds >= _LEAST_SECONDS:
            self.note(what, seconds, where)

    def note_plan(self, found_in: str, seconds: float, where: str, detail: str) -> None:
        """Record that a plan was made on this call, of code that was compiled or found."""
        if found_in:
            self.note("loaded", seconds, where, f"{detail} from {found_in}")
        else:
            self.note("compiled", seconds, where, detail)

    def slow_calls(self) -> list[list[Work]]:
        """Work by call, in order of time."""
        calls: dict[tuple[int, int], list[Work]] = {}
        for item in self._items:
            calls.setdefault((item.call, item.thread), []).append(item)
        return list(calls.values())
