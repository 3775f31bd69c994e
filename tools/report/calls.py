"""Calls by what they did: kinds, runs of like ones, and bars for a chart."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...executor.observe.timeline import TimedCall
from ..quantities import plural

# In order of what matters most in a call, with what a legend says of it.
KINDS = {
    "error": "raised an exception",
    "compile": "first with newly compiled code",
    "profiling": "profiled, op by op",
    "fallback": "missed a guard, then ran another specialisation",
    "interpreted": "ran op by op",
    "optimized": "ran native code",
    "inlined": "became part of another function",
}
_GAINED = {
    "profiled_runs": "profiled run",
    "compiles": "compile",
    "kernel_launches": "kernel launch",
    "guard_misses": "guard miss",
    "evaluated_ops": "op",
}


def kind_of(call: TimedCall) -> str:
    """The one of `KINDS` that a call is of."""
    gained = call.gained
    if call.error:
        return "error"
    if "compiles" in gained:
        return "compile"
    if "profiled_runs" in gained:
        return "profiling"
    if "fallback_calls" in gained:
        return "fallback"
    if "kernel_launches" in gained:
        return "optimized"
    return "interpreted" if call.tier else "inlined"


def gains(call: TimedCall) -> str:
    """``1 compile, 1 kernel launch, 2 guard misses``."""
    texts = [plural(call.gained[n], noun) for n, noun in _GAINED.items() if n in call.gained]
    texts = [f"{t} in NumPy" if t.endswith((" op", " ops")) else t for t in texts]
    return ", ".join([*texts, *([call.error] if call.error else [])])


def errors(calls: Iterable[TimedCall]) -> list[str]:
    """Every exception that they raised, once, with how often."""
    counts = Counter(call.error for call in calls if call.error)
    return [f"raised {text}" + (f" ({n} times)" if n > 1 else "") for text, n in counts.items()]


@dataclass(frozen=True)
class Stretch:
    """Calls in a row that did the same.

    Attributes:
        first, last: their numbers, from 1.
        kind: see `KINDS`.
        median, worst: seconds.
        total: seconds of all of them.
        gained: what each did.
    """

    first: int
    last: int
    kind: str
    median: float
    worst: float
    total: float
    gained: str


def stretches(calls: Sequence[TimedCall]) -> list[Stretch]:
    """All calls, those that follow one another and did the same as one."""
    groups = []
    numbered = enumerate(calls, 1)
    for (kind, gained), same in itertools.groupby(numbered, lambda n: (kind_of(n[1]), gains(n[1]))):
        group = list(same)
        times = [call.nanoseconds / 1e9 for _, call in group]
        first, last = group[0][0], group[-1][0]
        groups.append(Stretch(first, last, kind, statistics.median(times), max(times), sum(times), gained))
    return groups


@dataclass(frozen=True)
class Bar:
    """The slowest of some calls in a row.

    Attributes:
        first, last: their numbers, from 1.
        kind: of the one among them that matters most.
        seconds: the longest.
        height: 0 to 1, on a scale of powers of ten.
    """

    first: int
    last: int
    kind: str
    seconds: float
    height: float


@dataclass(frozen=True)
class Chart:
    """Bars, and the powers of ten (of seconds) between which they stand."""

    bars: tuple[Bar, ...]
    low: int
    high: int


def chart(calls: Sequence[TimedCall], most: int = 160) -> Chart:
    """At most so many bars for the calls of a function, of which there is at least one."""
    seconds = [max(call.nanoseconds, 1) / 1e9 for call in calls]
    low = math.floor(math.log10(min(seconds)))
    high = max(math.ceil(math.log10(max(seconds))), low + 1)
    width = -(-len(calls) // most)
    bars = []
    for start in range(0, len(calls), width):
        longest = max(seconds[start : start + width])
        kind = _weightiest(kind_of(call) for call in calls[start : start + width])
        height = (math.log10(longest) - low) / (high - low)
        bars.append(Bar(start + 1, min(start + width, len(calls)), kind, longest, height))
    return Chart(tuple(bars), low, high)


def _weightiest(kinds: Iterable[str]) -> str:
    order = list(KINDS)
    return min(kinds, key=order.index)
