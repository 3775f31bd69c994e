"""The tables of measurements: a line a row, the table worst first, the geomean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from .systems import COMPILERS, OURS, SYSTEMS

Row = dict[str, Any]


def against_best(row: Row) -> float | None:
    """Time of the better of JAX and torch.compile over ours; None where neither was measured."""
    found = [row["ratios"][s][1] for s in COMPILERS if s in row.get("ratios", {})]
    return min(found) if found else None


def worst(row: Row) -> float:
    """The smallest ratio to any peer: by this rows are sorted."""
    found = [q[1] for s, q in row.get("ratios", {}).items() if s not in OURS]
    return min(found) if found else -1.0 if "ours" in row["skipped"] else math.inf


def geomean(values: Iterable[float]) -> float:
    """Geometric mean; NaN of nothing."""
    kept = list(values)
    return math.exp(sum(map(math.log, kept)) / len(kept)) if kept else math.nan


def mark(row: Row) -> str:
    """``<`` = a peer is faster, ``<<`` = by a tenth, ``!`` = not all fused, ``-`` = refused."""
    if "ours" in row["skipped"]:
        return "-"
    ratio = worst(row)
    slow = "<<" if ratio < 0.9 else "<" if ratio < 1.0 else ""
    return slow + ("!" if unfused(row) else "")


def unfused(row: Row) -> str:
    """Words on how ours runs, where it is not one kernel or more alone."""
    words = []
    for system in OURS:
        if system in row["skipped"]:
            words.append(f"{system}: {row['skipped'][system]}")
        elif row["steady"].get(system, {}).get("ops by NumPy"):
            why = "; ".join(row["steady"][system]["reasons"][:1])
            words.append(f"{system}: {row['steady'][system]['ops by NumPy']} ops by NumPy, {why}")
    return ". ".join(words)


def columns(systems: Sequence[str]) -> str:
    """The head of the table."""
    peers = "".join(f"{s:>22}" for s in systems if s != "ours")
    return f"{'':3}{'kernel':<27}{'dtype':<5}{'size':<8}{'thr':>3}{'us':>11}{'roof':>6}{peers}"


def line(row: Row, systems: Sequence[str]) -> str:
    """A row: our time, the share of the roofline that it reaches, and ratios with quartiles."""
    mine = row["seconds"].get("ours")
    time = f"{mine[1] * 1e6:11.1f}{row['roof']['seconds'] / mine[1]:6.0%}" if mine else f"{'-':>17}"
    cells = []
    for system in systems:
        if system == "ours":
            continue
        q = row.get("ratios", {}).get(system)
        cells.append(f"{q[1]:8.2f} [{q[0]:5.2f}-{q[2]:5.2f}]" if q else f"{'-':>8}{'':14}")
    return f"{mark(row):<3}{row['kernel']:<27}{row['dtype']:<5}{row['size']:<8}{row['threads']:>3}{time}" + "".join(
        cells
    )


def table(rows: Iterable[Row], systems: Sequence[str]) -> str:
    """All rows, worst first, with a note under each that is not fused, ``-`` = refused."""
    out = [columns(systems)]
    for row in sorted(rows, key=worst):
        out.append(line(row, systems))
        if unfused(row):
            out.append(f"{'':6}{unfused(row)}")
    return "\n".join(out)


def summary(rows: Sequence[Row]) -> str:
    """Geomeans by size, threads and peer, and how many rows are slower."""
    out = []
    groups = sorted({(r["threads"], r["size"]) for r in rows})
    for threads, size in groups:
        of = [r for r in rows if (r["threads"], r["size"]) == (threads, size)]
        best = [x for x in map(against_best, of) if x is not None]
        each = []
        for system in SYSTEMS:
            ratios = [r["ratios"][system][1] for r in of if system in r.get("ratios", {})]
            if ratios:
                each.append(f"{system} {geomean(ratios):.2f} ({len(ratios)})")
        text = f"{size}, {threads} thread{'s' if threads > 1 else ''}: geomean {', '.join(each)}"
        if best:
            slower = sum(x < 1 for x in best)
            text += (
                f"; best of JAX and torch.compile {geomean(best):.2f}, worst {min(best):.2f}, "
                f"slower in {slower} of {len(best)}"
            )
        out.append(text)
    return "\n".join(out)


def skips(rows: Iterable[Row]) -> str:
    """By system, why how many rows have no figure of it."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for system, reason in row["skipped"].items():
            found.setdefault((system, reason), []).append(f"{row['kernel']} {row['dtype']}")
    lines = []
    for (system, reason), names in sorted(found.items()):
        shown = ", ".join(sorted(set(names))[:4])
        more = f" and {len(set(names)) - 4} more" if len(set(names)) > 4 else ""
        lines.append(f"{system}: {reason}: {shown}{more}")
    return "\n".join(lines)
