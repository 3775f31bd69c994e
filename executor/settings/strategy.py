"""The fusion strategy: how often, and how, a graph is re-specialised (R1.3 - R1.6)."""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from typing import Literal

from ...dialect.errors import KnobError
from .events import log
from .knobs import knobs, shown

Behavior = Literal["static", "dynamic"]
Strategy = tuple[tuple[Behavior, int], ...]

MOST = 999_999_999  # the largest count of an entry
_lock = threading.Lock()
_current: Strategy | None = None


def normalize(strategy: Sequence[tuple[str, int]]) -> Strategy:
    """Check and freeze ``[("static", 2), ("dynamic", 10)]``; raises KnobError."""
    out: list[tuple[Behavior, int]] = []
    try:
        for behavior, count in strategy:
            word = behavior.lower()
            times = operator.index(count)
            if word not in ("static", "dynamic") or isinstance(count, bool) or times < 0:
                raise ValueError(f"bad entry {(behavior, count)!r}")
            if times > MOST:
                raise ValueError(f"an entry counts more than {MOST} specialisations")
            out.append((word, times))  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError) as error:
        raise KnobError(
            f"fusion strategy {shown(strategy)}: {error}", hint='give a list such as [("static", 2), ("dynamic", 10)]'
        ) from None
    return tuple(out)


def parse_strategy(text: str) -> Strategy:
    """``"static:2,dynamic:10"`` -> strategy; raises KnobError."""
    entries: list[tuple[str, int]] = []
    for entry in text.split(","):
        behavior, _, count = entry.partition(":")
        if not count.strip().isdecimal() or len(count.strip()) > 9:
            raise KnobError(
                f"PROFUSE_FUSION_STRATEGY={text[:80]!r}: bad entry {entry[:80]!r}", hint="write static:2,dynamic:10"
            )
        entries.append((behavior.strip(), int(count)))
    return normalize(entries)


def _initial() -> Strategy:
    """The strategy by the knobs (R1.3).

    ``always_dynamic`` goes first, then ``static_then_dynamic``, which asks for the default anyway.
    """
    if knobs.always_dynamic:
        return (("dynamic", 12),)
    if knobs.fusion_strategy and not knobs.static_then_dynamic:
        return parse_strategy(knobs.fusion_strategy)
    return (("static", 2), ("dynamic", 10))


def get_fusion_strategy() -> Strategy:
    """The process-wide strategy; computed from the knobs on first use (R1.4)."""
    global _current
    with _lock:
        if _current is None:
            _current = _initial()
        return _current


def set_fusion_strategy(strategy: Sequence[tuple[str, int]]) -> Strategy:
    """Replace the process-wide strategy and return the previous one (R1.4).

    Executors copy it when they are built; those that exist keep theirs (R1.5).
    """
    global _current
    new = normalize(strategy)
    with _lock:
        previous = _current if _current is not None else _initial()
        _current = new
    return previous


def total_depth(strategy: Strategy) -> int:
    """Re-specialisations that a strategy allows in all (R1.5)."""
    return sum(count for _, count in strategy)


def behavior_at(strategy: Strategy, depth: int) -> Behavior:
    """The way to specialise with ``depth`` left: entries are counted from the last one (R1.6)."""
    total = 0
    for behavior, count in reversed(strategy):
        total += count
        if total >= depth:
            return behavior
    log("strategy-exceeded", reason=f"depth {depth} exceeds the strategy's total {total}: static")
    return "static"
