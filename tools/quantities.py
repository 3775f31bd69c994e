"""Sizes and durations as people read them."""

from __future__ import annotations

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(count: int) -> str:
    """``312 B``, ``3.2 KiB``, ``1.0 GiB``."""
    for unit in ("G", "M", "K"):
        if count >= UNITS[unit]:
            return f"{count / UNITS[unit]:.1f} {unit}iB"
    return f"{count} B"


def duration(seconds: float) -> str:
    """``840 ns``, ``3.12 µs``, ``41.8 ms``, ``1.07 s``: three digits."""
    for unit, least in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= least:
            value = seconds / least
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def plural(count: int, noun: str) -> str:
    """``1 call``, ``1,200 misses``."""
    ending = "" if count == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{count:,} {noun}{ending}"
