"""NumPy programs as they are against the same under `profuse.jit`, interleaved, on one core.

Each program runs at its real size in both ways, some milliseconds of calls each, round after round.
The table has the time of a call of ours, the median of the per-round ratios NumPy / ours with their
quartiles, the tier, the seconds from the first call to the top tier while calls go on, and how many
ops of a call NumPy computes one by one. The slowest come first, the geometric mean last.

    cd bench; python -m programs [--only REGEX] [--rounds 15] [--reasons] [--json out.json]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for name in ("OPENBLAS", "OMP", "MKL", "PROFUSE"):
    os.environ.setdefault(f"{name}{'' if name == 'PROFUSE' else '_NUM'}_THREADS", "1")
os.environ.setdefault("PROFUSE_CACHE", "off")

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import timed, write_results  # noqa: E402

from . import PROGRAMS, Program  # noqa: E402

ROUND = 0.02  # seconds of calls of each side in a round
CYCLE = 150  # calls after which a program has been through all its sizes
QUIET = 3  # cycles without a new kernel: what a call requests, a later one takes
LONGEST = 20.0  # seconds until a program is taken for one that stays where it is


@dataclass
class Row:
    """What was measured of one program."""

    name: str
    ours: float
    numpy: float
    ratio: tuple[float, float, float]
    tier: str
    top: float
    python_ops: float
    reasons: list[str]


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


def measured(program: Program, rounds: int) -> Row:
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
    for _ in range(5):
        ours(), plain()
    calls = [max(1, int(ROUND / max(timed(call), 1e-7))) for call in (plain, ours)]
    evaluated, before = jit.count("evaluated_ops"), jit.count("calls")
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        times.append(tuple(  # type: ignore[arg-type]
            timed(lambda c=call, n=n: [c() for _ in range(n)]) / n
            for call, n in zip((plain, ours), calls, strict=True)
        ))  # fmt: skip
    ratios = statistics.quantiles([a / b for a, b in times], n=4)
    done = max(jit.count("calls") - before, 1)
    return Row(
        program.name, statistics.median(b for _, b in times),
        statistics.median(a for a, _ in times), tuple(ratios),  # type: ignore[arg-type]
        jit.tier, top, (jit.count("evaluated_ops") - evaluated) / done,
        [str(reason) for f in jit.made for reason in f.state().reasons],
    )  # fmt: skip


def line(row: Row) -> str:
    low, middle, high = row.ratio
    mark = "<< " if middle < 0.9 else "<  " if middle < 1 else "   "
    return (
        f"{row.name:26}{row.ours * 1e6:12.1f} us {middle:7.2f} {mark}({low:.2f} to {high:.2f})  "
        f"{row.tier:10} {row.top:6.2f} s  {row.python_ops:5.1f} ops by NumPy"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="programs whose names match")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="where to write the figures")
    parser.add_argument("--reasons", action="store_true", help="print what stands in the way")
    given = parser.parse_args()
    rows = []
    for program in PROGRAMS.values():
        if re.search(given.only, program.name):
            rows.append(measured(program, given.rounds))
            print(".", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    rows.sort(key=lambda row: row.ratio[1])
    for row in rows:
        print(line(row))
        for reason in row.reasons if given.reasons else ():
            print(f"    {reason}")
    mean = statistics.geometric_mean(row.ratio[1] for row in rows)
    slow = sum(row.ratio[1] < 0.9 for row in rows)
    top = statistics.median(row.top for row in rows)
    print(f"geometric mean {mean:.2f}; {slow} of {len(rows)} below 0.9; top tier after {top:.2f} s")
    write_results(given.json, programs=[vars(row) for row in rows])


if __name__ == "__main__":
    main()
