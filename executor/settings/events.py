"""Events: one structured record per tier transition, compile, miss, refusal, with its time and reason.

A bounded ring keeps the latest events. With the ``log`` knob, `event_log` also writes each as a
line. Traces subscribe to events (`observe.timeline`).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any

from ...dialect.dataclass import dataclass
from . import event_log
from .fork_lock import hold_over_forks
from .knobs import knobs

# Kinds of events that are not of level "info".
_LEVELS = dict.fromkeys(
    (
        "api-usage",
        "backward-end",
        "backward-start",
        "disk-hit",
        "disk-miss",
        "disk-skip",
        "disk-store",
        "load",
        "release",
        "worker-ended",
        "worker-said",
        "worker-started",
    ),
    "debug",
) | dict.fromkeys(
    (
        "backward-failed",
        "backward-limit",
        "callback-failed",
        "check-failed",
        "compile-failed",
        "compiled-in-process",
        "device-fallback",
        "device-group-failed",
        "disk-corrupt",
        "disk-emptied",
        "disk-off",
        "draws-lost",
        "dropped",
        "kernel-failed",
        "log-off",
        "no-assembler",
        "python",
        "setting-unknown",
        "slower",
        "strategy-exceeded",
        "trace-lost",
        "worker-lost",
        "worker-replaced",
        "workers-given-up",
    ),
    "warning",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        kind: e.g. ``"compile"``, ``"tier"``, ``"guard-miss"``, ``"refused"``.
        function: name of the jitted function, or "".
        reason: why, as a sentence.
        seconds: how long it took, where that means something.
        details: further facts, as plain values.
        time: ``time.time()`` when it was recorded.
        thread: identifier of the thread that did it.
    """

    kind: str
    function: str = ""
    reason: str = ""
    seconds: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    time: float = 0.0
    thread: int = 0

    @property
    def level(self) -> str:
        """``"debug"``, ``"info"`` or ``"warning"``; the kind decides."""
        return _LEVELS.get(self.kind, "info")

    def __str__(self) -> str:
        parts = [f"profuse: {self.kind}"]
        if self.function:
            parts.append(self.function)
        if self.seconds is not None:
            parts.append(f"{self.seconds * 1e3:.2f} ms")
        # Mappings, such as a compile's stages, appear only in the JSON lines.
        parts += [f"{k}={v}" for k, v in self.details.items() if not isinstance(v, Mapping)]
        if self.reason:
            parts.append(f"({self.reason})")
        return " ".join(parts)


_lock = threading.Lock()
_ring: deque[Event] | None = None
_subscribers: tuple[Callable[[Event], None], ...] = ()
hold_over_forks(_lock)


def log(kind: str, function: str = "", reason: str = "", seconds: float | None = None, **details: Any) -> Event:
    """Record an event and return it."""
    global _ring
    event = Event(kind, function, reason, seconds, details, time.time(), threading.get_ident())
    with _lock:
        if _ring is None:
            _ring = deque(maxlen=knobs.event_ring)
        _ring.append(event)
    for subscriber in _subscribers:
        subscriber(event)
    if where := knobs.log:
        try:
            event_log.write(event, where)
        except OSError as error:
            give_up("logs", where, error)
    return event


def give_up(does: str, where: str, error: OSError) -> None:
    """Give up a file or folder, and say so once, on stderr and as an event."""
    if reason := event_log.lose(does, where, error):
        log("log-off", "", reason)


def subscribe(subscriber: Callable[[Event], None]) -> Callable[[], None]:
    """Call ``subscriber`` with every event from now on, on the thread that records the event.

    Returns a function that ends the subscription.
    """
    global _subscribers
    with _lock:
        _subscribers = (*_subscribers, subscriber)

    def end() -> None:
        global _subscribers
        with _lock:
            _subscribers = tuple(s for s in _subscribers if s is not subscriber)

    return end


def events() -> tuple[Event, ...]:
    """The most recent events of this process, oldest first."""
    with _lock:
        return tuple(_ring or ())


def clear() -> None:
    """Forget all events so far."""
    with _lock:
        if _ring is not None:
            _ring.clear()


@dataclass(slots=True)
class Counters:
    """Counts of one executor.

    An increment is one attribute update, within which CPython does not switch threads. So the fast
    path takes no lock.

    Attributes:
        calls: calls of the jitted function (not of fallbacks).
        profiled_runs: runs recorded by observers.
        compiles: graphs specialised; one per specialisation.
        kernels_compiled: native kernels made.
        kernels_checked, kernels_partly_checked, kernels_unchecked: kernels by how far they were
            compared with tier 0 before they were used.
        check_failures: kernels whose check found wrong results or a crash; they are not used.
        demotions: kernels that are not used because op-by-op evaluation was measured to be faster.
        guard_hits, guard_misses: outcomes of guards.
        value_misses: the ``guard_misses`` of device groups whose types were right, and a value was not (R3.38).
        forced_misses: the ``guard_misses`` that stress mode caused.
        fallback_calls: calls of fallbacks, which guards caused.
        kernel_launches, library_calls: native calls, and library products inside them.
        voided_launches: launches whose results were dropped (say, an index was out of range) and
            computed op by op instead.
        evaluated_ops: ops run one by one on tier 0.
        refusals: ops that fusion refused.
        compile_failures: graphs or groups that could not be compiled.
        input_copies: arguments and captured arrays copied because kernels cannot read their layout.
        copies_to_device, copies_to_host: arrays copied between host and device.
        device_syncs: times that a call waited for a device.
        graph_replays: launches of several kernels as one CUDA graph.
        device_fallbacks: calls on device arrays that the host computed because the device failed.
        epilogue_misses: library products whose epilogue did not add the bias, at the cost of one
            more pass over the result.
        output_copies: results that were copied into the array given for them.
        donated_results: results that were made in the memory of donated arguments.
        python_calls: calls that Python ran, as no graph can hold them.
        python_looks: those of them for which a graph was looked for in vain.
        lost_draws: calls of which another thread had drawn before what they had drawn could be taken back.
        traces: graphs made by tracing.
        dropped_traces: traces dropped for newer ones, with all that was compiled for them.
        cache_hits, cache_misses: look-ups of compiled code.
        disk_hits, disk_misses: compile requests that the disk cache could and could not answer.
        profiles_restored: graphs whose profile was read from disk instead of recorded.
        executors_constructed: spec-keyed executors made.
        invocations: runs of spec-keyed executors, traced ones and those on fallback plans included.
        in_process_compiles: compiles in this process because no worker could do them.
        native: functions that add the counts of emitted code to these counters (`dispatch`).
        heir: the counters to which these were added when their executor was dropped. They also get
            the counts of calls that emitted code finishes afterwards.
    """

    calls: int = 0
    profiled_runs: int = 0
    compiles: int = 0
    kernels_compiled: int = 0
    kernels_checked: int = 0
    kernels_partly_checked: int = 0
    kernels_unchecked: int = 0
    check_failures: int = 0
    demotions: int = 0
    guard_hits: int = 0
    guard_misses: int = 0
    value_misses: int = 0
    forced_misses: int = 0
    fallback_calls: int = 0
    kernel_launches: int = 0
    library_calls: int = 0
    voided_launches: int = 0
    evaluated_ops: int = 0
    refusals: int = 0
    compile_failures: int = 0
    input_copies: int = 0
    copies_to_device: int = 0
    copies_to_host: int = 0
    device_syncs: int = 0
    graph_replays: int = 0
    device_fallbacks: int = 0
    epilogue_misses: int = 0
    output_copies: int = 0
    donated_results: int = 0
    python_calls: int = 0
    python_looks: int = 0
    lost_draws: int = 0
    traces: int = 0
    dropped_traces: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    disk_hits: int = 0
    disk_misses: int = 0
    profiles_restored: int = 0
    executors_constructed: int = 0
    invocations: int = 0
    in_process_compiles: int = 0
    native: list[Callable[[], None]] = field(default_factory=list, repr=False, compare=False)
    heir: Counters | None = field(default=None, repr=False, compare=False)

    def current(self) -> Counters:
        """Add the counts of emitted code to these, and return these."""
        for add_up in tuple(self.native):
            add_up()
        return self

    def as_dict(self) -> dict[str, int]:
        """The present counts by name, including those of emitted code."""
        self.current()
        return {name: getattr(self, name) for name in COUNTERS}

    def add(self, other: Counters) -> None:
        """Add another object's counts to these."""
        other.current()
        _add(self, other)

    def move(self, into: Counters) -> None:
        """Make ``into`` the heir: it gets these counts, and those that emitted code still adds."""
        self.heir = into  # first, so that emitted code adds its counts to the heir from now on
        into.native += [f for f in self.native if f not in into.native]
        into.add(self)

    def last_heir(self) -> Counters:
        """The counters at the end of the chain of heirs, which hold these counts now."""
        counters = self
        while counters.heir is not None:
            counters = counters.heir
        return counters


COUNTERS = tuple(f.name for f in fields(Counters) if f.name not in ("native", "heir"))


def _adder() -> Callable[[Counters, Counters], None]:
    """Generate a function that adds counts without a loop or call, where threads may switch."""
    scope: dict[str, Any] = {}
    exec("\n".join(["def add(a, b):", *(f"    a.{n} += b.{n}" for n in COUNTERS)]), scope)
    return scope["add"]


_add = _adder()

_live: dict[int, Counters] = {}
_retired = Counters()
# The garbage collector may run an owner's finalizer at any point of any thread, even while that
# thread holds this module's lock. So a finalizer only appends.
_dead: deque[Counters] = deque()


def new_counters(owner: object) -> Counters:
    """New counters of ``owner``; `totals` includes their counts even after the owner is freed."""
    counters = Counters()
    with _lock:
        _live[id(counters)] = counters
        _bury()
    weakref.finalize(owner, _dead.append, counters).atexit = False
    return counters


def absorb(into: Counters, counters: Counters) -> None:
    """Move the counts of a dropped executor to another one.

    If Python code still runs a call of the dropped executor, the call's further counts are lost.
    """
    with _lock:
        if counters is not into and _live.pop(id(counters), None) is not None:
            counters.move(into)


def _bury() -> None:
    """Add the counts of freed owners to `_retired`; the caller holds the lock."""
    while _dead:
        counters = _dead.popleft()
        if _live.pop(id(counters), None) is not None:
            counters.move(_retired)


def totals() -> dict[str, int]:
    """Sums over every executor that this process has had."""
    out = Counters()
    with _lock:
        _bury()
        for counters in (_retired, *_live.values()):
            out.add(counters)
    return out.as_dict()
