"""The cost of checking new kernels: milliseconds per kernel, and its share of compiling.

Each function of the benchmark cases is compiled with the default budget, static and dynamic, in
this process, with the compiler loaded. The start of a process with and without checks is
`bench/start.py` under PROFUSE_CHECK=sampled and off.

    python bench/check.py [--rounds 3] [--json out.json]
"""

from __future__ import annotations

import argparse
import os
from statistics import median

os.environ |= {"PROFUSE_CACHE": "off", "PROFUSE_BACKGROUND": "off"}
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import profuse as pf
from common import processor, write_results
from suite import selection

BEHAVIORS = ("static", "dynamic")


def measure(fn, args: tuple, behavior: str) -> list[dict]:
    """Per specialisation: milliseconds of the check and of all else, and the verdict."""

    def plain(*args):
        return fn(np, *args)

    plain.__name__ = fn.__name__
    f = pf.jit(plain, strategy=[(behavior, 1)])
    f(*args), f(*args)
    rows = []
    for made in f.state().specializations:
        check = made.stages.get("check", 0.0)
        rest = sum(made.stages.values()) - check
        rows.append(
            {
                "function": fn.__name__,
                "behavior": behavior,
                "check_ms": check * 1e3,
                "rest_ms": rest * 1e3,
                "checked": made.checked,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--json")
    args = parser.parse_args()
    measure(lambda np, x: np.tanh(x) + 1, (np.ones(4),), "static")  # loads the compiler
    rows = []
    for number in range(args.rounds + 1):
        for fn, given in selection(args.size).values():
            for behavior in BEHAVIORS:
                found = measure(fn, given, behavior)
                rows += found if number else []  # the first round loads libraries
    print(f"{processor()}, check={pf.knobs.check} check_ms={pf.knobs.check_ms}")
    for behavior in BEHAVIORS:
        of = [row for row in rows if row["behavior"] == behavior]
        checks = sorted(row["check_ms"] for row in of)
        share = median(row["check_ms"] / (row["check_ms"] + row["rest_ms"]) for row in of)
        print(
            f"{behavior:<8} {len(of)} kernels: median {median(checks):.1f} ms, most "
            f"{checks[-1]:.1f} ms, {share:.0%} of a compile"
        )
    if args.json:
        write_results(args.json, size=args.size, rows=rows)


if __name__ == "__main__":
    main()
