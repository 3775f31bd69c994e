"""A log of the latest slow work (tracing, profiling, compiling) of each jitted function."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...dialect.dataclass import dataclass
from ..settings.events import Counters
from ..settings.fork_lock import ForkLock

_KEPT = 64  # entries per function
_LEAST_SECONDS = 1e-3  # `timed` leaves out shorter work: most calls find the work done already


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work that no later call has to repeat.

    Attributes:
        call: number of the call of the jitted function that did the work, counted from 1.
        thread: identifier of the thread that did the work.
        what: ``"traced"``, ``"recalled"`` (searched for stored profiles), ``"profiled"``,
            ``"prepared"`` (loaded the compile pool), ``"compiled"``, ``"loaded"`` (read compiled
            code from a cache) or ``"failed"`` (a compile failed).
        seconds: time that the work took.
        where: name of the executor.
        detail: a description, such as ``"static specialisation with 1 kernel"``.
    """

    call: int
    thread: int
    what: str
    seconds: float
    where: str
    detail: str = ""


class WorkLog:
    """The latest work of one graph and its fallback chain; bounded and thread-safe.

    Args:
        counters: the counters of the outermost executor, which count the calls.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        # Writers replace the whole tuple, so readers need no lock. A deque would need one: copying
        # it may first run the garbage collector, and thereby let another thread append.
        self._items: tuple[Work, ...] = ()
        self._writing = ForkLock()

    def note(self, what: str, seconds: float, where: str, detail: str = "", *, before_call: bool = False) -> None:
        """Record work of the current call, or with ``before_call`` of the call counted next."""
        call = self._counters.current().calls + before_call
        work = Work(call, threading.get_ident(), what, seconds, where, detail)
        with self._writing:
            self._items = (*self._items, work)[-_KEPT:]

    @contextmanager
    def timed(self, what: str, where: str) -> Iterator[None]:
        """Time the ``with`` block, and record it if it took at least a millisecond."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        if seconds >= _LEAST_SECONDS:
            self.note(what, seconds, where)

    def note_plan(self, found_in: str, seconds: float, where: str, detail: str) -> None:
        """Record that this call made a plan; ``found_in`` names the cache, "" = it compiled."""
        if found_in:
            self.note("loaded", seconds, where, f"{detail} from {found_in}")
        else:
            self.note("compiled", seconds, where, detail)

    def slow_calls(self) -> list[list[Work]]:
        """The recorded work, one list per call, oldest first."""
        calls: dict[tuple[int, int], list[Work]] = {}
        for item in self._items:
            calls.setdefault((item.call, item.thread), []).append(item)
        return list(calls.values())
