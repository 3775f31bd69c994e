"""What a round of a loop takes, against a call of the same body: a loop should not cost a program.

Each function of `bench/suite` becomes a step, whose result is its first argument with a little of
what the function computes of it. The step is jitted by itself, and called from Python as often as a
jitted loop over it (``for _ in range(n)``, with n an argument) has rounds. Both take turns, on one
core, in CPU time, so that other programs count little. Told are microseconds of a round both ways,
the ratio loop / calls, its median and quartiles, and whether the loop is kernels or runs round by
round in the plan. A ratio above 1.3 misses what is aimed at.

    python bench/rounds.py [--only REGEX] [--sizes 64x256 512x1024] [--rounds 15] [--all-dtypes]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
from collections.abc import Callable, Sequence
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
_LITTLE = 2.0**-10  # of a result, so that values stay as they are in however many rounds


def step_of(case: Case) -> Callable[..., Any]:
    """A function (x, start, *rest) -> x of the next round."""
    lib, function = libraries.profuse_library(), case.kernel.fn

    def step(x: Any, start: Any, *rest: Any) -> Any:
        for result in leaves(function(lib, x, *rest)):
            start = linked(start, result)
        return start

    return step


def linked(start: Any, result: Any) -> Any:
    """``start`` with a little of a result, all of which is needed for that."""
    if result.dtype == np.bool_:
        result = result.astype(start.dtype)
    if _spread(result.shape, start.shape) != start.shape:
        result = np.mean(result)
    if start.dtype.kind in "iu":
        if result.dtype.kind == "f":
            result = result * 0.125
        return start + (result.astype(start.dtype) & 1)
    return start + (result * _LITTLE).astype(start.dtype)


def _spread(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def both_ways(step: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The loop over a step, the calls of it, and the jitted loop: the first two take (n, *args)."""
    first, *rest = args

    def loop(n: int, first: Any, *rest: Any) -> Any:
        x = first
        for _ in range(n):
            x = step(x, first, *rest)
        return x

    called, looped = pf.jit(step, background=False), pf.jit(loop, background=False)

    def calls(n: int, first: Any, *rest: Any) -> Any:
        x = first
        for _ in range(n):
            x = called(x, first, *rest)
        return x

    for n in (1, 2, 3, 24, 24):  # more than one, so that plans do not hold the number
        calls(n, first, *rest)
        looped(n, first, *rest)
    return looped, calls, looped


def measured(case: Case, rounds: int) -> dict[str, Any]:
    """A row of the table."""
    args = case.args()
    loop, calls, jitted = both_ways(step_of(case), args)
    once = min(timed_by_cpu(lambda: calls(8, *args)) for _ in range(3)) / 8
    n = max(8, min(1000, int(_SECONDS / once)))
    for _ in range(8):  # in some of them Python takes its turn, to be compared
        loop(n, *args)
    found = np.asarray(loop(n, *args))
    wanted = np.asarray(calls(n, *args))
    off = case.error((found,), (wanted,))
    before = dict(jitted.state().counters)
    pairs = []
    for k in range(rounds):
        order = (loop, calls) if k % 2 else (calls, loop)
        taken = {f: timed_by_cpu(lambda f=f: f(n, *args)) for f in order}
        pairs.append((taken[loop] / n, taken[calls] / n))
    after = jitted.state().counters
    launches = (after["kernel_launches"] - before["kernel_launches"]) / rounds
    ratios = [a / b for a, b in pairs]
    return {
        "kernel": case.kernel.name, "dtype": case.dtype, "size": case.size.name,
        "loop": statistics.median(a for a, _ in pairs), "calls": statistics.median(b for _, b in pairs),
        "ratio": statistics.quantiles(ratios, n=4), "launches": launches, "error": off,
        "reasons": sorted({str(r) for r in jitted.state().reasons}),
        "python": after["python_calls"] - before["python_calls"], "n": n,
    }  # fmt: skip


def line(row: dict[str, Any]) -> str:
    low, middle, high = row["ratio"]
    mark = "<" if middle > MOST else " "
    return (
        f"{mark} {row['kernel']:24} {row['dtype']:5} {row['size']:9} calls {1e6 * row['calls']:9.2f}"
        f"  loop {1e6 * row['loop']:9.2f} us  {middle:5.2f} [{low:.2f}-{high:.2f}]"
        f" launches {row['launches']:.1f} err {row['error']:.2g} py {row['python']} n {row['n']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
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
                try:
                    row = measured(Case(kernel, dtype, size), options.rounds)
                except Exception as e:
                    print("!!", name, dtype, size, type(e), str(e)[:200], flush=True)
                    continue
                rows.append(row)
                print(line(row), flush=True)
    write_results(options.json, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
