"""What happened, when and why: one structured record per tier transition, compile, miss, refusal.

Events are kept in a bounded ring; with the ``log`` knob each is also one line on stderr.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .knobs import knobs

COUNTERS = (
    "calls", "profiled_runs", "compiles", "kernels_compiled", "guard_hits", "guard_misses",
    "fallback_calls", "kernel_launches", "library_calls", "evaluated_ops", "refusals",
    "compile_failures", "input_copies", "traces", "cache_hits", "cache_misses",
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
    """

    kind: str
    function: str = ""
    reason: str = ""
    seconds: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    time: float = 0.0

    def __str__(self) -> str:
        parts = [f"profuse: {self.kind}"]
        if self.function:
            parts.append(self.function)
        if self.seconds is not None:
            parts.append(f"{self.seconds * 1e3:.2f} ms")
        parts += [f"{k}={v}" for k, v in self.details.items()]
        if self.reason:
            parts.append(f"({self.reason})")
        return " ".join(parts)


_lock = threading.Lock()
_ring: deque[Event] | None = None


def log(
    kind: str, function: str = "", reason: str = "", seconds: float | None = None, **details: Any
) -> Event:
    """Record an event and return it."""
    global _ring
    event = Event(kind, function, reason, seconds, details, time.time())
    with _lock:
        if _ring is None:
            _ring = deque(maxlen=knobs.event_ring)
        _ring.append(event)
    if knobs.log:
        print(event, file=sys.stderr)
    return event


def events() -> tuple[Event, ...]:
    """The most recent events of this process, oldest first."""
    with _lock:
        return tuple(_ring or ())


class Counters:
    """Named counts of one executor, also added to the process totals.

    Increments are single attribute updates between bytecode boundaries at which CPython may
    switch threads, so no lock is taken on the fast path.
    """

    __slots__ = COUNTERS

    def __init__(self) -> None:
        for name in COUNTERS:
            setattr(self, name, 0)

    def as_dict(self) -> dict[str, int]:
        """A snapshot."""
        return {name: getattr(self, name) for name in COUNTERS}


_live: list[Counters] = []
_retired: Counter[str] = Counter()


def new_counters() -> Counters:
    """Counters that `totals` includes for as long as the process lives."""
    made = Counters()
    with _lock:
        _live.append(made)
    return made


def retire(counters: Counters) -> None:
    """Fold the counts of a dropped executor into the totals and forget the object."""
    with _lock:
        if counters in _live:
            _live.remove(counters)
            _retired.update(counters.as_dict())


def totals() -> dict[str, int]:
    """Sums over every executor that this process has had."""
    with _lock:
        out = Counter(_retired)
        for counters in _live:
            out.update(counters.as_dict())
    return {name: out.get(name, 0) for name in COUNTERS}
