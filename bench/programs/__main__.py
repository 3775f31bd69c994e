"""NumPy programs as they are, under `profuse.jit` and under numba, interleaved, on one core.

Each program runs at its real size in all ways, some milliseconds of calls each, round after round.
The table has the time of a call of ours, the median of the per-round ratios NumPy / ours with their
quartiles, that of numba / ours, the tier, the seconds from the first call to the top tier while
calls go on, and how many ops of a call NumPy computes one by one. numba compiles the very source,
by `numba.njit`; ``cannot`` stands where it refuses that. The slowest come first, means last.

A row is printed, and written, once it is measured; all of them take ten minutes. With ``--budget`` no program
begins after so many seconds, and the same command with the same file goes on.

    cd bench; python -m programs [--only REGEX] [--rounds 15] [--reasons] [--budget SECONDS] [--again] [--json out.json]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("PROFUSE_THREADS", "1")
os.environ.setdefault("PROFUSE_CACHE", "off")

import numpy as np

try:
    import numba
except ImportError:
    numba = None

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import rows_so_far, timed, write_results

from . import PROGRAMS, Program

ROUND = 0.02  # seconds of calls of each side in a round
CYCLE = 150  # calls after which a program has been through all its sizes
OP = 1e-6  # seconds that an op by NumPy takes about; more than a tenth of a call is not native
QUIET = 3  # cycles without a new kernel: what a call requests, a later one takes
LONGEST = 20.0  # seconds until a program is taken for one that stays where it is


@dataclass
class Row:
    """The measurements of one program; ``kind``: ``loops`` over elements, or ``arrays``."""

    name: str
    kind: str
    ours: float
    numpy: float
    ratio: tuple[float, float, float]
    numba: float | None
    numba_refusal: str
    tier: str
    top: float
    python_ops: float
    reasons: list[str]

    @property
    def is_native(self) -> bool:
        """True if nine tenths of the time are spent in kernels and libraries, or emitted code."""
        return self.tier == "optimized" and self.python_ops * OP <= 0.1 * self.ours

    def figures(self) -> dict[str, object]:
        """The figures for files: reasons name lines of this checkout."""
        told = {k: v for k, v in vars(self).items() if k not in ("reasons", "numba_refusal")}
        return {**told, "native": self.is_native}

    @classmethod
    def of_figures(cls, told: dict[str, Any]) -> Row:
        """The row of such figures, of another run."""
        figures = {k: v for k, v in told.items() if k != "native"}
        return cls(**{**figures, "ratio": tuple(told["ratio"])}, numba_refusal="", reasons=[])


class Jitted:
    """`profuse.jit`, which remembers its functions."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def __call__(self, function: Callable) -> Callable:
        import profuse

        made = profuse.jit(function)
        self.made.append(made)
        return made

    def count(self, name: str) -> int:
        return sum(f.state().counters[name] for f in self.made)

    @property
    def tier(self) -> str:
        tiers = [f.state().tier for f in self.made]
        return next((t for t in tiers if t != "optimized"), "optimized")


def by_numba(program: Program) -> tuple[Callable[[], object] | None, str]:
    """A call of the program as numba compiles it, or why there is none."""
    if numba is None:
        return None, "not installed"
    call, _ = program.prepare(numba.njit(cache=False), program.real, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:  # also what it raises in place of a result
            text = " ".join(str(error).split())
            return None, f"{type(error).__name__}: {text[-200:]}"
    return call, ""


def measured(program: Program, rounds: int, peers: bool) -> Row:
    """Measure one program."""
    jit = Jitted()
    plain, _ = program.prepare(lambda f: f, program.real, np.random.default_rng(0))
    ours, _ = program.prepare(jit, program.real, np.random.default_rng(0))
    start = time.perf_counter()
    while True:
        ours()
        top = time.perf_counter() - start
        if jit.tier in ("optimized", "python") or top > LONGEST:
            break
    # Programs whose sizes change from call to call come to more kernels on their way.
    settled, quiet = -1, 0
    while quiet < QUIET and time.perf_counter() - start < 3 * LONGEST:
        quiet = quiet + 1 if jit.count("compiles") == settled else 0
        settled, begun = jit.count("compiles"), time.perf_counter()
        for f in jit.made:
            f.wait()
        for _ in range(CYCLE):
            ours()
            if time.perf_counter() - begun > 1:
                break
    for f in jit.made:
        f.wait()
    compiled, refusal = by_numba(program) if peers else (None, "not asked for")
    ways = [call for call in (plain, ours, compiled) if call is not None]
    for _ in range(5):
        for call in ways:
            call()
    calls = [max(1, int(ROUND / max(timed(call), 1e-7))) for call in ways]
    evaluated, before = jit.count("evaluated_ops"), jit.count("calls")
    times: list[list[float]] = []
    for _ in range(rounds):
        times.append(
            [timed(lambda c=call, n=n: [c() for _ in range(n)]) / n for call, n in zip(ways, calls, strict=True)]
        )
    ratios = statistics.quantiles([t[0] / t[1] for t in times], n=4)
    done = max(jit.count("calls") - before, 1)
    return Row(
        program.name,
        "loops" if ".loops." in program.prepare.__module__ else "arrays",
        statistics.median(t[1] for t in times),
        statistics.median(t[0] for t in times),
        tuple(ratios),  # type: ignore[arg-type]
        statistics.median(t[2] / t[1] for t in times) if compiled is not None else None,
        refusal,
        jit.tier,
        top,
        (jit.count("evaluated_ops") - evaluated) / done,
        [str(reason) for f in jit.made for reason in f.state().reasons],
    )


def line(row: Row) -> str:
    low, middle, high = row.ratio
    mark = "<< " if middle < 0.9 else "<  " if middle < 1 else "   "
    peer = "cannot" if row.numba is None else f"{row.numba:.2f}"
    return (
        f"{row.name:32}{row.ours * 1e6:12.1f} us {middle:8.2f} {mark}({low:.2f} to {high:.2f})  "
        f"numba {peer:>7}  {row.tier:10} {row.top:6.2f} s  {row.python_ops:5.1f} ops by NumPy"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="programs whose names match")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--without-numba", action="store_true", help="leave numba out")
    parser.add_argument("--json", help="where to write the figures")
    parser.add_argument("--reasons", action="store_true", help="print what stands in the way")
    parser.add_argument("--budget", type=float, default=math.inf, metavar="SECONDS")
    parser.add_argument("--again", action="store_true", help="measure programs of the file anew")
    given = parser.parse_args()
    if given.rounds < 2:
        parser.error("--rounds has to be 2 at least, as quartiles are told")
    try:
        kept = rows_so_far(given.json, given.again)
    except ValueError as error:
        sys.exit(str(error))
    rows, left, end = [], 0, time.monotonic() + given.budget
    for program in PROGRAMS.values():
        if not re.search(given.only, program.name):
            continue
        if program.name in kept and not given.again:
            rows.append(Row.of_figures(kept[program.name]))
            continue
        if time.monotonic() > end:
            left += 1
            continue
        rows.append(measured(program, given.rounds, not given.without_numba))
        kept[program.name] = rows[-1].figures()
        print(line(rows[-1]), flush=True, file=sys.stderr)
        write_results(given.json, rows=kept)
    if not rows:
        sys.exit("no program was measured")
    rows.sort(key=lambda row: row.ratio[1])
    for row in rows:
        print(line(row))
        for reason in row.reasons if given.reasons else ():
            print(f"    {reason}")
        if given.reasons and row.numba_refusal:
            print(f"    numba: {row.numba_refusal}")
    mean = statistics.geometric_mean(row.ratio[1] for row in rows)
    slow = sum(row.ratio[1] < 0.9 for row in rows)
    top = sorted(row.top for row in rows)
    native = sum(row.is_native for row in rows)
    print(
        f"NumPy / ours {mean:.2f}, {slow} of {len(rows)} below 0.9; {native} native; "
        f"top tier after {statistics.median(top):.2f} s, {top[-1]:.2f} s at most"
    )
    beside = [row.numba for row in rows if row.numba is not None]
    if beside:
        mean = statistics.geometric_mean(beside)
        print(f"numba / ours {mean:.2f}, in the {len(beside)} programs that numba compiles")
    if left:
        print(
            f"{left} programs were not measured within {given.budget:.0f} s; the same command with --json FILE goes on"
        )


if __name__ == "__main__":
    main()
