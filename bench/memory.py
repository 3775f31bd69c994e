"""The memory of calls: a chain of groups, results in new and in given arrays, donation.

Per size: microseconds per call, and what NumPy has had of memory at once, in arrays of that size.

    python bench/memory.py [--calls 200] [--rounds 20] [--json out.json]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import one_core  # noqa: F401  (first: before threads are made)

from common import write_results  # isort: skip
from harness.kept import taken  # isort: skip
import numpy as np  # isort: skip
import profuse as pf  # isort: skip
from profuse.executor.settings.knobs import knobs  # isort: skip

SIZES = (16, 128, 1024)


def chain(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    for _ in range(6):
        x = np.sqrt(x * x + y)
    return x


def step(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x * 0.5 + y


def calls(n: int) -> dict[str, Callable[[], object]]:
    """The calls that are measured."""
    x, y, out = (np.ones((n, n), np.float32) for _ in range(3))
    new, given = pf.jit(step, background=False), pf.jit(step, donate="x", background=False)
    made = {}
    for native in (True, False):
        with knobs.override(max_fusion_ops=2, native_dispatch=native):
            f = pf.jit(chain, background=False)
            for _ in range(4):
                f(x, y)
        name = "chain of 9 kernels, " + ("emitted" if native else "Python")
        made[name] = (lambda f=f: f(x, y)) if native else (lambda f=f: f._call_python((x, y), {}))
    for _ in range(4):
        new(x, y), new.into(out, x, y), given(x.copy(), y)
    state = x.copy()
    made["x * 0.5 + y, new array"] = lambda: new(x, y)
    made["x * 0.5 + y, into"] = lambda: new.into(out, x, y)
    made["x * 0.5 + y, donated"] = lambda: given(state, y)
    return made


def microseconds(call: Callable[[], object], count: int, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    for n in SIZES:
        for name, call in calls(n).items():
            spent = microseconds(call, max(1, args.calls * 16 // n), args.rounds)
            used = taken(call) / (4 * n * n)
            rows.append({"size": n, "what": name, "microseconds": spent, "arrays": used})
            print(f"{n:5} {name:32} {spent:10.2f} us {used:8.2f} arrays", flush=True)
    write_results(args.json, rows=rows)


if __name__ == "__main__":
    main()
