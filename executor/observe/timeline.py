"""The calls and events of a process, with their times, for as long as a `Timeline` records.

While no `Timeline` records, calls run the code they always run: the start of a recording replaces
``__call__`` and ``into`` with methods that measure, and its end puts the originals back.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ..settings.events import Event, subscribe
from ..settings.knobs import knobs
from . import live_functions

if TYPE_CHECKING:
    from ..functions.function import GraphFunction
    from ..tiers.choice import AnyExecutor

GAINS = (
    "profiled_runs",
    "compiles",
    "guard_hits",
    "guard_misses",
    "fallback_calls",
    "kernel_launches",
    "evaluated_ops",
)
"""Counters of which a call's share is recorded."""

_read = operator.attrgetter(*GAINS)
_MAX_ERROR = 500
_MAX_FUNCTIONS = 1024  # that a timeline keeps alive, so that a report can explain them


@dataclass(frozen=True, slots=True)
class TimedCall:
    """One call of a function.

    Attributes:
        function: the function's number, see `registry.number_of`.
        name: the function's name.
        start: start of the call, in nanoseconds of ``time.perf_counter_ns()``.
        nanoseconds: duration of the call, with tracing, profiling and compiling.
        thread: identifier of the thread.
        tier: tier of the plan that ran: ``"profiling"``, ``"optimized"``, ``"simple"`` or
            ``"no-opt"``; "" = no plan ran.
        gained: growth of the counters `GAINS` in this call, without those that did not grow. If
            calls overlap on several threads, the one that ends first gets the counts of all.
        error: the exception that the call raised, in one line; "" = none.
    """

    function: int
    name: str
    start: int
    nanoseconds: int
    thread: int
    tier: str
    gained: Mapping[str, int]
    error: str = ""


class Timeline:
    """Calls and events of this process between `start` and `stop`; bounded and thread-safe.

    In a forked child, the timeline starts empty.

    Args:
        on_thread: called once on each thread, before its first call or event is recorded.

    Attributes:
        pid: id of the process that made the timeline.
        calls: the first ``trace_calls`` calls, in the order in which they ended.
        events: the first ``trace_calls`` events, each with its time on the clock of `TimedCall.start`.
        lost: number of calls that were not kept.
        threads: names of the recorded threads, by identifier.
        functions: the first functions that were made during the recording.
        epoch: time of 0 on the clock of `TimedCall.start`, in seconds since 1970.
        began: time on that clock at which the timeline was made, or the process forked.
    """

    def __init__(self, on_thread: Callable[[], None] | None = None) -> None:
        self._limit = knobs.trace_calls
        self._on_thread = on_thread
        self.pid = os.getpid()
        self._forget()

    def _forget(self) -> None:
        self.calls: list[TimedCall] = []
        self.events: list[tuple[int, Event]] = []
        self.lost = 0
        self.threads: dict[int, str] = {}
        self.functions: list[GraphFunction] = []
        self.began = time.perf_counter_ns()
        self.epoch = time.time() - self.began / 1e9

    def start(self) -> None:
        """Start recording."""
        self._end = subscribe(self._note)
        live_functions.holders.append(self._hold)
        _switch(self, True)

    def stop(self) -> None:
        """Stop recording; the recorded calls and events stay."""
        self._end()
        live_functions.holders.remove(self._hold)
        _switch(self, False)

    def add(self, call: TimedCall) -> None:
        """Keep a call, or count it as lost if there are too many."""
        self._meet()
        if len(self.calls) < self._limit:
            self.calls.append(call)
        else:
            self.lost += 1

    def _hold(self, function: GraphFunction) -> None:
        with _lock:
            if _recording:
                _measure_kinds()  # this may be the first function of its class
        if len(self.functions) < _MAX_FUNCTIONS:
            self.functions.append(function)

    def _note(self, event: Event) -> None:
        self._meet()
        if len(self.events) < self._limit:
            self.events.append((time.perf_counter_ns(), event))

    def _meet(self) -> None:
        thread = threading.get_ident()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
            if self._on_thread is not None:
                self._on_thread()


_lock = threading.RLock()
_recording: tuple[Timeline, ...] = ()
_originals: dict[tuple[type[GraphFunction], str], Callable[..., Any]] = {}
_sums: weakref.WeakKeyDictionary[AnyExecutor, tuple[int, ...]] = weakref.WeakKeyDictionary()


def _in_child() -> None:
    """Empty all timelines in a forked child: their calls and events are the parent's."""
    _lock.release()
    for timeline in _recording:
        timeline._forget()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)


def recording() -> tuple[Timeline, ...]:
    """The timelines that record now, in the order in which they started."""
    return _recording


def _switch(timeline: Timeline, on: bool) -> None:
    global _recording
    # Not under `_lock`: counting takes locks of functions. A thread that traces holds such a lock,
    # and takes `_lock` when a call inside the trace is recorded.
    counts = _all_counts() if on and not _recording else {}
    with _lock:
        before = _recording
        others = tuple(t for t in before if t is not timeline)
        _recording = (*others, timeline) if on else others
        if bool(before) == bool(_recording):
            return
        if on:
            _sums.clear()
            _sums.update(counts)
            _measure_kinds()
        else:
            for (cls, name), original in _originals.items():
                setattr(cls, name, original)
            _originals.clear()


def _measure_kinds() -> None:
    """Replace the methods of all classes of functions that are loaded by now."""
    for cls, name in itertools.product(live_functions.kinds, ("__call__", "into")):
        if (cls, name) not in _originals:
            _originals[cls, name] = getattr(cls, name)
            setattr(cls, name, _measured(getattr(cls, name)))


def _measured(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: GraphFunction, /, *args: Any, **kwargs: Any) -> Any:
        error = ""
        start = time.perf_counter_ns()
        try:
            return original(self, *args, **kwargs)
        except BaseException as raised:
            error = traceback.format_exception_only(raised)[-1].strip()[:_MAX_ERROR]
            raise
        finally:
            _record(self, start, time.perf_counter_ns(), error)

    return call


def _record(function: GraphFunction, start: int, end: int, error: str) -> None:
    executor = function._current
    gained = _gained(())
    with _lock:
        if executor is not None:
            counts = _counts(executor)
            before = _sums.get(executor, (0,) * len(GAINS))
            _sums[executor] = counts
            gained = _gained(tuple(map(operator.sub, counts, before)))
        call = TimedCall(
            live_functions.number_of(function),
            function._name,
            start,
            end - start,
            threading.get_ident(),
            "" if executor is None else executor.tier,
            gained,
            error,
        )
        for timeline in _recording:
            timeline.add(call)


@functools.lru_cache(maxsize=1024)
def _gained(counts: tuple[int, ...]) -> Mapping[str, int]:
    """The counters that grew; most calls have the same, so they share one object."""
    gains = {n: count for n, count in zip(GAINS, counts, strict=False) if count > 0}
    return MappingProxyType(gains)


def _all_counts() -> dict[AnyExecutor, tuple[int, ...]]:
    return {e: _counts(e) for function in live_functions.functions() for e in function._executors()}


def _counts(executor: AnyExecutor) -> tuple[int, ...]:
    """The values of `GAINS`, summed over a chain of fallbacks."""
    every = [_read(member.counters) for member in executor.chain()]
    return every[0] if len(every) == 1 else tuple(map(sum, zip(*every, strict=True)))
