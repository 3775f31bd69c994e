"""The tables of pages on `bench/programs`: means, and each row in which an aim is missed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
_OF_NUMPY, _OF_NUMBA = 0.9, 0.9
_NAMES = {"arrays": "on whole arrays", "loops": "loops over elements, rows and steps"}


def programs(found: dict[str, Any]) -> str:
    """The tables for what ``python -m programs`` has written."""
    rows = list(found["rows"].values())
    where = found["environment"]
    lines = [
        f"One core of an {where['processor']}, {where['date']}, numpy {where['numpy']}, "
        f"numba {where['numba']}. Times of the other one over those of Profuse; medians.",
        "",
        "| programs | number | NumPy | below 0.9 | native | numba | seconds to the last tier |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_means(name, [r for r in rows if r["kind"] == kind]) for kind, name in _NAMES.items()]
    missed = [row for row in rows if _is_missed(row)]
    lines += [
        "",
        "Programs that take longer than under NumPy, more than 1.1 times as long as under numba, "
        "or that are not native:",
        "",
        "| program | us | NumPy | numba | where |",
        "|---|---|---|---|---|",
        *(_line(row) for row in sorted(missed, key=lambda r: r["ratio"][1])),
    ]
    return "\n".join(lines)


def _is_missed(row: Row) -> bool:
    slower = row["numba"] is not None and row["numba"] < _OF_NUMBA
    return slower or row["ratio"][1] < 1 or not row["native"]


def _means(name: str, rows: Sequence[Row]) -> str:
    ratios = [row["ratio"][1] for row in rows]
    beside = [row["numba"] for row in rows if row["numba"] is not None]
    tops = [row["top"] for row in rows]
    return (
        f"| {name} | {len(rows)} | {statistics.geometric_mean(ratios):.1f} | "
        f"{sum(r < _OF_NUMPY for r in ratios)} | {sum(row['native'] for row in rows)} | "
        f"{statistics.geometric_mean(beside):.2f} in {len(beside)} | "
        f"{statistics.median(tops):.1f}, at most {max(tops):.0f} |"
    )


def _line(row: Row) -> str:
    low, middle, high = (_ratio(x) for x in row["ratio"])
    numba = "-" if row["numba"] is None else _ratio(row["numba"])
    place = "native" if row["native"] else "Python" if row["tier"] == "python" else "in part"
    ours = f"{row['ours'] * 1e6:,.0f}"
    return f"| `{row['name']}` | {ours} | {middle} ({low} to {high}) | {numba} | {place} |"


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


__all__ = ["programs"]
