"""What happened, when and why: one structured record per tier transition, compile, miss, refusal.

Events are kept in a bounded ring; the ``log`` knob has each written as a line, too
(`event_log`), and traces subscribe to them (`observe.timeline`).
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
    ("api-usage", "disk-hit", "disk-miss", "disk-skip", "disk-store", "load", "release",
     "worker-ended", "worker-said", "worker-started"), "debug"
) | dict.fromkeys(
    ("callback-failed", "check-failed", "compile-failed", "compiled-in-process", "device-fallback",
     "disk-corrupt", "disk-off", "dropped", "kernel-failed", "log-off", "no-assembler",
     "setting-unknown", "slower", "strategy-exceeded", "trace-lost", "worker-lost",
     "worker-replaced", "workers-given-up"), "warning"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        kind: e.g. ``"compile"``, ``"tier"``, ``"guard-miss"``, ``"refused"``.
        function: name of the jitted function, or "".
        reason: why, as a sentence.
        seconds: how long it took, where that means something.
        details: whatever else belongs to it, plain values only.
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
        # A compile's stages are for readers of the JSON lines.
        parts += [f"{k}={v}" for k, v in self.details.items() if not isinstance(v, Mapping)]
        if self.reason:
            parts.append(f"({self.reason})")
        return " ".join(parts)


_lock = threading.Lock()
_ring: deque[Event] | None = None
_subscribers: tuple[Callable[[Event], None], ...] = ()
hold_over_forks(_lock)


def log(
    kind: str, function: str = "", reason: str = "", seconds: float | None = None, **details: Any
) -> Event:
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
    """Say once, on stderr and as an event, that nothing more is written to a file or folder."""
    if reason := event_log.lose(does, where, error):
        log("log-off", "", reason)


def subscribe(subscriber: Callable[[Event], None]) -> Callable[[], None]:
    """Have every event from now on handed over, in the thread it happens in; returns the end."""
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

    Increments are single attribute updates between bytecode boundaries at which CPython may
    switch threads, so no lock is taken on the fast path.

    Attributes:
        calls: calls of the jitted function (not of fallbacks).
        profiled_runs: runs recorded by observers.
        compiles: graphs specialised; one per specialisation.
        kernels_compiled: native kernels made.
        kernels_checked, kernels_partly_checked, kernels_unchecked: how far those among them were
            compared with their definition before they served.
        check_failures: kernels that were wrong, or crashed, and do not serve.
        guard_hits, guard_misses: outcomes of guards.
        forced_misses: misses among them that stress mode made.
        fallback_calls: calls that went to the other side of a guard.
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
        device_fallbacks: calls on device arrays that the device failed, computed on the host.
        epilogue_misses: library products that did not add their bias, which took a pass more.
        output_copies: results that were made elsewhere than in the array given for them.
        donated_results: results that were made in the memory of donated arguments.
        traces: graphs made by tracing.
        dropped_traces: traces given up, with all that they had compiled, for newer ones.
        cache_hits, cache_misses: look-ups of compiled code.
        disk_hits, disk_misses: compiles that the disk cache answered, and those it could not.
        profiles_restored: graphs that were not profiled, as a stored profile was there.
        executors_constructed: spec-keyed executors made.
        invocations: runs of spec-keyed executors, traced ones and those on fallback plans included.
        in_process_compiles: compiles that a worker should have done and could not.
        native: functions that count up what emitted code has counted (`dispatch`).
        heir: the counters that these were added to when their executor was dropped. Calls that
            emitted code still finishes are counted there.
    """

    calls: int = 0
    profiled_runs: int = 0
    compiles: int = 0
    kernels_compiled: int = 0
    kernels_checked: int = 0
    kernels_partly_checked: int = 0
    kernels_unchecked: int = 0
    check_failures: int = 0
    guard_hits: int = 0
    guard_misses: int = 0
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
        """These counts, once what emitted code has counted is in them."""
        for add_up in tuple(self.native):
            add_up()
        return self

    def as_dict(self) -> dict[str, int]:
        """A snapshot."""
        self.current()
        return {name: getattr(self, name) for name in COUNTERS}

    def add(self, other: Counters) -> None:
        """Add another object's counts to these."""
        other.current()
        _add(self, other)

    def move(self, into: Counters) -> None:
        """Make ``into`` the heir: it gets these counts, and those that emitted code still adds."""
        self.heir = into  # first: whatever is counted up from here on is counted up there
        into.native += [f for f in self.native if f not in into.native]
        into.add(self)

    def last_heir(self) -> Counters:
        """The counters at the end of the chain of heirs, which hold these counts now."""
        found = self
        while found.heir is not None:
            found = found.heir
        return found


COUNTERS = tuple(f.name for f in fields(Counters) if f.name not in ("native", "heir"))


def _adder() -> Callable[[Counters, Counters], None]:
    """Adds counts one by one without a loop or call in between, where threads may switch."""
    scope: dict[str, Any] = {}
    exec("\n".join(["def add(a, b):", *(f"    a.{n} += b.{n}" for n in COUNTERS)]), scope)
    return scope["add"]


_add = _adder()

_live: dict[int, Counters] = {}
_retired = Counters()
# Owners die inside the garbage collector, at any point of any thread, even where this module holds
# its lock: all that their finalizers may do is append.
_dead: deque[Counters] = deque()


def new_counters(owner: object) -> Counters:
    """Counters that `totals` includes for ever, in sum once their owner is gone."""
    made = Counters()
    with _lock:
        _live[id(made)] = made
        _bury()
    weakref.finalize(owner, _dead.append, made).atexit = False
    return made


def absorb(into: Counters, counters: Counters) -> None:
    """Move the counts of an executor that is dropped to another one.

    What a call that Python code has begun inside it counts from now on is lost to both.
    """
    with _lock:
        if counters is not into and _live.pop(id(counters), None) is not None:
            counters.move(into)


def _bury() -> None:
    """Fold the counts of dead owners into one object; the lock is held."""
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
