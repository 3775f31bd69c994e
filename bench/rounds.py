"""The time that a round of a loop takes, against a call of the same body: a loop should not cost a program.

Each function of `bench/suite` becomes a step, whose result is its first argument with a little of
what the function computes of it. The step is jitted by itself, and called from Python as often as a
jitted loop over it (``for _ in range(n)``, with n an argument) has rounds. Both take turns, on one
core, in CPU time, so that other programs count little. Told are microseconds of a round both ways,
the ratio loop / calls (its median and quartiles), and whether one kernel runs all rounds or kernels
run each. At the end stand the rows that miss what is aimed at, a ratio of at most 1.3.

    python bench/rounds.py [--only REGEX] [--sizes 64x256 512x1024] [--rounds 15] [--all-dtypes]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import one_core  # noqa: F401  (first: before threads are made)

from common import timed_by_cpu, write_results  # isort: skip
from harness import libraries  # isort: skip
from harness.session import size_of  # isort: skip
from suite import KERNELS, Case, leaves  # isort: skip
import numpy as np  # isort: skip
import profuse as pf  # isort: skip

SIZES = ("64x256", "512x1024")
MOST = 1.3  # of the time of calls that a loop is to take
_SECONDS = 0.01  # that all rounds of a loop are to take together
_LITTLE = 2.0**-10  # that a step adds at most, so that no round goes far from the first one
_WARM = 8  # calls of one size, in some of which Python takes its turn, to be compared


def step_of(case: Case) -> Callable[..., Any]:
    """A function (x, start, *rest) -> x of the next round."""
    lib, function = libraries.profuse_library(), case.kernel.fn
    found = leaves(function(libraries.numpy_library(), *case.args()))
    shares = [_LITTLE / max(1.0, float(np.abs(r).max(initial=0))) for r in found]

    def step(x: Any, start: Any, *rest: Any) -> Any:
        for result, share in zip(leaves(function(lib, x, *rest)), shares, strict=True):
            start = linked(start, result, share)
        return start

    return step


def linked(start: Any, result: Any, share: float) -> Any:
    """``start`` with a share of a result, all of which is needed for that; of ints, with a bit."""
    if result.dtype == np.bool_:
        result = result.astype(start.dtype)
    if not _spreads(result.shape, start.shape):
        result = np.mean(result)
    if start.dtype.kind not in "iu":
        return start + (result * share).astype(start.dtype)
    if result.dtype.kind == "f":
        result = result * 0.125
    return start + (result.astype(start.dtype) & 1)


def _spreads(shape: tuple[int, ...], over: tuple[int, ...]) -> bool:
    """True if NumPy broadcasts a shape to another one."""
    try:
        return np.broadcast_shapes(shape, over) == over
    except ValueError:
        return False


def both_ways(step: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
    """The jitted loop over a step, and the loop over calls of the jitted step: of (n, *args)."""
    called = pf.jit(step, background=False)

    def loop(n: int, first: Any, *rest: Any) -> Any:
        x = first
        for _ in range(n):
            x = step(x, first, *rest)
        return x

    def calls(n: int, first: Any, *rest: Any) -> Any:
        x = first
        for _ in range(n):
            x = called(x, first, *rest)
        return x

    looped = pf.jit(loop, background=False)
    for n in (1, 2, 3, 24, 24):  # more than one, so that no plan holds the number
        calls(n, *args)
        looped(n, *args)
    return looped, calls


def measured(case: Case, rounds: int) -> dict[str, Any]:
    """A row of the table."""
    args = case.args()
    loop, calls = both_ways(step_of(case), args)
    once = min(timed_by_cpu(lambda: calls(8, *args)) for _ in range(3)) / 8
    n = max(8, min(1000, int(_SECONDS / once)))
    for _ in range(_WARM):
        found = loop(n, *args)
    error = case.error(leaves(found), leaves(calls(n, *args)))
    before, pairs = dict(loop.state().counters), []
    for k in range(rounds):
        order = (loop, calls) if k % 2 else (calls, loop)
        taken = {f: timed_by_cpu(lambda f=f: f(n, *args)) for f in order}
        pairs.append((taken[loop] / n, taken[calls] / n))
    after = loop.state().counters
    gained = {name: after[name] - before[name] for name in ("kernel_launches", "python_calls")}
    return {
        "kernel": case.kernel.name,
        "dtype": case.dtype,
        "size": case.size.name,
        "n": n,
        "loop": statistics.median(a for a, _ in pairs),
        "calls": statistics.median(b for _, b in pairs),
        "ratio": statistics.quantiles((a / b for a, b in pairs), n=4),
        "error": error,
        "launches": gained["kernel_launches"] / rounds,
        "python": gained["python_calls"] / rounds,
        "reasons": sorted(set(loop.state().reasons)),
    }


def way(row: dict[str, Any]) -> str:
    """The function that runs the rounds of a loop."""
    if row["python"]:
        return f"Python in {row['python']:.0%} of the calls"
    if row["launches"] <= 1:
        return "one kernel"
    return f"{row['launches']:.0f} launches for {row['n']} rounds"


def line(row: dict[str, Any]) -> str:
    """A row, marked where it misses what is aimed at, and where its values differ."""
    low, middle, high = row["ratio"]
    mark = "!" if row["error"] > 1 else "<" if middle > MOST else " "
    return (
        f"{mark} {row['kernel']:25} {row['dtype']:5} {row['size']:9} "
        f"calls {1e6 * row['calls']:8.2f}  loop {1e6 * row['loop']:8.2f} us  "
        f"{middle:5.2f} [{low:.2f}-{high:.2f}]  {way(row)}"
    )


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The summary of all rows; the worst come first."""
    if not rows:
        yield "No function has this name."
        return
    missed = sorted((r for r in rows if r["ratio"][1] > MOST), key=lambda r: -r["ratio"][1])
    mean = statistics.geometric_mean(row["ratio"][1] for row in rows)
    yield f"loop / calls: {mean:.2f} in geomean, above {MOST} in {len(missed)} of {len(rows)}"
    for row in missed:
        yield line(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--all-dtypes", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    for size in map(size_of, options.sizes):
        for name, kernel in KERNELS.items():
            if kernel.group != "kernels" or not re.search(options.only, name):
                continue
            for dtype in kernel.dtypes if options.all_dtypes else kernel.dtypes[:1]:
                with np.errstate(all="ignore"):
                    rows.append(measured(Case(kernel, dtype, size), options.rounds))
                print(line(rows[-1]), flush=True)
    print(*summary(rows), sep="\n")
    write_results(options.json, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
