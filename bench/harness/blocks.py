"""Tables of Markdown made of results, and their places in pages: between two comments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from suite.kernel import SIZES

from . import tables
from .kept import judged
from .systems import OURS, SYSTEMS

Row = dict[str, Any]

NAMES = {"numpy": "NumPy", "jax": "JAX", "by-hand": "by hand", "ours-dynamic": "ours, any sizes"}
BEST, WORST = 4, 10  # rows of a kind that are shown for each number of cores
APART = 1.5  # third quartile of a ratio over the first, from which on the machine was busy


def place(page: str, name: str) -> re.Match[str]:
    """The place of a block in the text of a page; raises LookupError if it has no place."""
    begin, end = (re.escape(mark) for mark in marks(name))
    found = re.search(f"(?<={begin}\n).*?(?=\n{end})", page, re.DOTALL)
    if found is None:
        raise LookupError(f"no place for {name}: it needs {' and '.join(marks(name))}")
    return found


def marks(name: str) -> tuple[str, str]:
    """The comments before and after a block."""
    return f"<!-- {name}: written by bench/readme.py -->", f"<!-- end of {name} -->"


def written(page: str, name: str, block: str) -> str:
    """The text of a page with a block in its place; raises LookupError if there is none."""
    found = place(page, name)
    return page[: found.start()] + block + page[found.end() :]


def write(path: Path, name: str, block: str) -> bool:
    """Put a block into a file; returns whether it has changed."""
    before = path.read_text("utf-8")
    after = written(before, name, block)
    if after != before:
        path.write_text(after, "utf-8")
    return after != before


def kernels(found: dict[str, Any]) -> str:
    """Geomeans, and the best and the worst rows, of what `bench/kernels.py` has written."""
    rows = [row for row in found["rows"].values() if row["dtype"] == "f32"]
    cores = sorted({row["threads"] for row in rows})
    systems = _systems(rows)
    heads = [_cores(n) for n in cores]
    lines = [
        "Time of a peer over the time of Profuse, above 1 Profuse is faster: "
        f"{_setting(found, rows)}. Rows are sorted by the fastest peer.",
        "",
        f"| geomean | {' | '.join(heads)} |",
        _rule(len(heads)),
    ]
    for system in systems:
        cells = [_geomean(_of(rows, n), system) for n in cores]
        lines.append(f"| {_named(system)} | {' | '.join(cells)} |")
    best = [[b for r in _of(rows, n) if (b := tables.against_best(r)) is not None] for n in cores]
    if all(best):
        means = " | ".join(_ratio(tables.geomean(b)) for b in best)
        slower = " | ".join(f"{sum(x < 1 for x in b)} of {len(b)}" for b in best)
        lines += [
            f"| the better of JAX and torch.compile | {means} |",
            f"| kernels in which that one is faster than Profuse | {slower} |",
        ]
    for n in cores:
        of = sorted((r for r in _of(rows, n) if r.get("ratios")), key=tables.worst)
        worst, better = of[:WORST], of[WORST:][-BEST:]
        heading = f"best and worst on {_cores(n)}"
        lines += ["", f"| {heading} | {' | '.join(map(_named, systems))} |", _rule(len(systems))]
        lines += [_line(row, systems) for row in reversed(better)]
        lines += [f"| … {len(of) - len(worst) - len(better)} more |{' |' * len(systems)}"]
        lines += [_line(row, systems) for row in reversed(worst)]
    return "\n".join([*lines, "", *_notes(rows)])


def gradients(found: dict[str, Any], aims: Iterable[str]) -> str:
    """All rows of what `bench/gradients.py` has written, and what is said of its aims."""
    rows = [row for row in found["rows"].values() if row["dtype"] == "f32"]
    systems = _systems(rows)
    lines = [f"Time of a peer over the time of Profuse: {_setting(found, rows)}."]
    for size, n in sorted({(r["size"], r["threads"]) for r in rows}):
        of = [r for r in _of(rows, n) if r["size"] == size and r.get("ratios")]
        head = f"{_size(size)}, {_cores(n)}"
        lines += ["", f"| {head} | µs | {' | '.join(map(_named, systems))} |", _rule(len(systems) + 1)]
        for row in sorted(of, key=tables.worst, reverse=True):
            lines.append(_line(row, systems, _microseconds(row)))
    lines += ["", "Aims:", "", *(f"* {line}" for line in aims)]
    return "\n".join([*lines, "", *_notes(rows)])


def gradient_bytes(found: dict[str, Any]) -> str:
    """The table that `bench/gradients.py --bytes` has measured, and its aims."""
    rows = found["rows"]
    budgets = next(iter(rows.values()))["budgets"]
    heads = " | ".join(f"budget {b:g}" for b in budgets)
    lines = [f"| KB | | {heads} |", _rule(len(budgets) + 1)]
    for name, row in rows.items():
        for what in ("kept", "peak"):
            cells = " | ".join(f"{n / 1e3:,.0f}" for n in row[what])
            lines.append(f"| {name} | {what} | {cells} |")
    return "\n".join([*lines, "", "Aims:", "", *(f"* {line}" for line in judged(rows))])


def _systems(rows: Sequence[Row]) -> list[str]:
    met = {system for row in rows for system in row.get("ratios", {})}
    return [s for s in ("by-hand", *(s for s in SYSTEMS if s != "by-hand")) if s in met]


def _of(rows: Iterable[Row], cores: int) -> list[Row]:
    return [row for row in rows if row["threads"] == cores]


def _named(system: str) -> str:
    return NAMES.get(system, system)


def _cores(n: int) -> str:
    return f"{n} core{'s' if n > 1 else ''}"


def _rule(columns: int) -> str:
    return "|---" * (columns + 1) + "|"


def _ratio(value: float) -> str:
    """Three digits, and bold where a peer is faster."""
    if math.isnan(value):
        return "-"
    text = f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"**{text}**" if value < 1 else text


def _microseconds(row: Row) -> str:
    value = row["seconds"]["ours"][1] * 1e6
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _geomean(rows: Iterable[Row], system: str) -> str:
    return _ratio(tables.geomean(r["ratios"][system][1] for r in rows if system in r.get("ratios", {})))


def _line(row: Row, systems: Sequence[str], *more: str) -> str:
    cells = [_ratio(row["ratios"].get(s, [math.nan] * 3)[1]) for s in systems]
    return f"| `{row['kernel']}` | {' | '.join([*more, *cells])} |"


def _setting(found: dict[str, Any], rows: Sequence[Row]) -> str:
    """A line on the machine and the measured functions."""
    where = found["environment"]
    peers = {s.partition(".")[0] for row in rows for s in row["tried"]}
    versions = [
        f"{NAMES.get(name, name)} {where[name]}"
        for name in ("numpy", "jax", "torch", "autograd")
        if name in peers and name in where
    ]
    kernels = len({row["kernel"] for row in rows if row.get("ratios")})
    sizes = " and ".join(dict.fromkeys(_size(row["size"]) for row in rows))
    return f"{kernels} functions on {sizes} float32, {where['processor']}, {where['date']}, " + (", ".join(versions))


def _notes(rows: Sequence[Row]) -> list[str]:
    """A line on what is refused or computed by NumPy, and how steady the ratios are."""
    refused = sorted({row["kernel"] for row in rows if "ours" in row["skipped"]})
    parts = sorted({row["kernel"] for row in rows if any(row["steady"].get(s, {}).get("ops by NumPy") for s in OURS)})
    spread = [q[2] / q[0] for row in rows for s, q in row.get("ratios", {}).items() if s not in OURS]
    apart = sum(x > APART for x in spread)
    lines = []
    if refused:
        lines.append(f"Profuse refuses {_listed(refused)}.")
    if parts:
        lines.append(f"NumPy computes a part of {_listed(parts)}.")
    lines.append(
        f"Ratios are medians; the third quartile is more than {APART:g} times the first in {apart} "
        f"of {len(spread)}, where other programs had the machine as well."
    )
    return [" ".join(lines)]


def _size(name: str) -> str:
    """Rows and columns of a size."""
    known = SIZES.get(name)
    return f"{known.rows}×{known.columns}" if known else name.replace("x", "×")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
