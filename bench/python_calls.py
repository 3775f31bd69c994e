"""The time that `jit` adds to calls that stay Python's, by what they are given and why they stay.

A call of each function alone and of the jitted one are timed in turn, a round of calls of each; the
difference is what the jitted one adds. Functions do next to nothing, so that it can be seen.
Printed are the median over the rounds, and the quartiles; then which part of the calls was
Python's, how many of them were looked at, and how many traced.

    python bench/python_calls.py [--calls 300] [--rounds 30] [--json out.json] [names …]
"""

from __future__ import annotations

import argparse
import datetime
import fractions
import gc
import itertools
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import one_core  # noqa: F401  (first: before threads are made)

from common import processor, write_results  # isort: skip

import numpy as np  # isort: skip
import profuse as pf  # isort: skip

X = np.linspace(-1, 1, 16)


class Point:
    """An object of a user's class."""

    def __init__(self, x: float) -> None:
        self.x = x


class Valued(Point):
    """One that is equal to others, and has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x


def first(x: Any, *others: Any) -> Any:
    return x


def timing(x: Any, *others: Any) -> Any:
    """Python's, whatever it is given."""
    time.perf_counter_ns()
    return x


def formatting(x: Any) -> str:
    return f"{x[0]}"


def naming(x: Any, n: int) -> Any:
    return {f"{n}": x}


def same(*args: Any, **kwargs: Any) -> Iterator[tuple[tuple, dict[str, Any]]]:
    return itertools.repeat((args, kwargs))


def new(make: Callable[[int], tuple]) -> Iterator[tuple[tuple, dict[str, Any]]]:
    return ((make(k), {}) for k in itertools.count())


PAIRS = np.zeros(4, [("a", "f8"), ("b", "i4")])
CASES: dict[str, tuple[Callable, Callable[[], Iterator]]] = {
    "an effect": (timing, lambda: same(X)),
    "an effect, keywords": (timing, lambda: same(x=X)),
    "formats an element": (formatting, lambda: same(X)),
    "formats a number": (naming, lambda: same(X, 3)),
    "formats a number of a dict": (lambda x: {f"{x['n']}": x["x"]}, lambda: same({"x": X, "n": 3})),
    "formats sizes": (lambda x: f"{x.shape}", lambda: same(X)),
    "formats a sum": (lambda x: f"{x.sum():.3f}", lambda: same(X)),
    "formats all": (lambda x: f"{x}", lambda: same(X[:2])),
    "formats new numbers": (naming, lambda: new(lambda k: (X, k))),
    "structured": (first, lambda: same(PAIRS)),
    "strings": (first, lambda: same(np.array(["a", "bc"]))),
    "bytes": (first, lambda: same(np.array([b"a", b"bc"]))),
    "datetime64": (first, lambda: same(np.array(["2020-01-01"], "M8[D]"))),
    "objects": (first, lambda: same(np.array([1, "a"], object))),
    "longdouble": (first, lambda: same(np.ones(4, np.longdouble))),
    "big-endian": (timing, lambda: same(X.astype(">f8"))),
    "a structured and a float array": (first, lambda: same(X, PAIRS)),
    "structured, by keyword": (first, lambda: same(x=PAIRS)),
    "a list with a structured array": (first, lambda: same([X, PAIRS])),
    "new lists with a structured array": (first, lambda: new(lambda k: ([X, PAIRS],))),
    "a recarray": (first, lambda: same(PAIRS.view(np.recarray))),
    "a record": (first, lambda: same(PAIRS[0])),
    "a masked array": (first, lambda: same(np.ma.masked_less(X, 0))),
    "a matrix": (first, lambda: same(np.asmatrix(X))),
    "a datetime64 scalar": (first, lambda: same(np.datetime64("2020-01-01"))),
    "a text": (timing, lambda: same(X, "sum")),
    "new texts": (timing, lambda: new(lambda k: (X, f"text {k}"))),
    "new texts, formatted": (formatting, lambda: new(lambda k: (f"text {k}",))),
    "new dicts of texts": (timing, lambda: new(lambda k: (X, {"name": f"text {k}"}))),
    "new floats": (timing, lambda: new(lambda k: (X, k / 7))),
    "new ints": (timing, lambda: new(lambda k: (X, k))),
    "NumPy scalars": (timing, lambda: new(lambda k: (X, np.float64(k)))),
    "None": (timing, lambda: same(X, None)),
    "a function": (timing, lambda: same(X, len)),
    "an object": (timing, lambda: same(Point(1.0))),
    "new objects": (timing, lambda: new(lambda k: (Point(k),))),
    "new objects without a hash": (timing, lambda: new(lambda k: (Valued(k),))),
    "new lists of objects": (timing, lambda: new(lambda k: ([Point(k)],))),
    "a list of arrays": (timing, lambda: same([X, X])),
    "lists of other lengths": (timing, lambda: new(lambda k: ([1.0] * (k % 50),))),
    "a list of 1000 numbers": (first, lambda: same([0.5] * 1000)),
    "a set": (timing, lambda: same({1, 2})),
    "new dates": (timing, lambda: new(lambda k: (datetime.date.fromordinal(k % 999 + 1),))),
    "new paths": (timing, lambda: new(lambda k: (pathlib.PurePath(f"f{k}"),))),
    "fractions": (timing, lambda: new(lambda k: (fractions.Fraction(k, 7),))),
    "a generator of numbers": (timing, lambda: new(lambda k: (iter([1.0]),))),
    "random generators": (timing, lambda: same(np.random.default_rng(0))),
}


def timed(call: Callable, given: list[tuple[tuple, dict]]) -> float:
    """Nanoseconds per call."""
    start = time.perf_counter_ns()
    for args, kwargs in given:
        call(*args, **kwargs)
    return (time.perf_counter_ns() - start) / len(given)


def measure(name: str, calls: int, rounds: int) -> dict[str, float]:
    fn, make = CASES[name]
    f, given = pf.jit(fn, unsupported="python"), make()
    for args, kwargs in itertools.islice(given, 1000):
        f(*args, **kwargs)
    f.wait()
    before = f.state().counters
    added, alone = [], []
    for _ in range(rounds):
        some = list(itertools.islice(given, calls))
        alone.append(timed(fn, some))
        added.append(timed(f, some) - alone[-1])
    quartiles = np.percentile(added, [25, 50, 75])
    gained = {name: count - before[name] for name, count in f.state().counters.items()}
    return {
        "alone_ns": float(np.median(alone)),
        "low_ns": float(quartiles[0]),
        "added_ns": float(quartiles[1]),
        "high_ns": float(quartiles[2]),
        "python": gained["python_calls"] / (calls * rounds),
        "looks": gained["python_looks"],
        "traced": gained["traces"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json")
    args = parser.parse_args()
    print(f"{processor()}, one core of {os.cpu_count()}, ns per call")
    print(f"{'':<36}{'alone':>9}{'added':>9}{'from':>9}{'to':>9}{'Python':>8}{'looks':>8}{'traced':>8}")
    gc.disable()
    rows = {}
    for name in CASES:
        if args.names and name not in args.names:
            continue
        row = rows[name] = measure(name, args.calls, args.rounds)
        told = (f"{row[k]:>9.0f}" for k in ("alone_ns", "added_ns", "low_ns", "high_ns"))
        print(
            f"{name:<36}" + "".join(told) + f"{row['python']:>8.0%}",
            f"{row['looks']:>7.0f}{row['traced']:>8.0f}",
            flush=True,
        )
        gc.collect()
    write_results(args.json, calls=rows)


if __name__ == "__main__":
    main()
