"""Gradients of random functions in all ways to them, at several calls: they must be the same.

    python differential.py [--programs 1000] [--seed 0] [--first 0] [--show NUMBER]

A function of `random_functions` returns several results here. It is differentiated by a joint graph
that runs op by op, by the tape, and in one more way, by its number: by a compiled joint graph
(`pf.grad`), by two halves (`pf.vjp`), or jitted on the tape, in either executor. Each way is asked
at several calls, with other values, and other sizes where the function takes them; every other
number under stress mode, small budgets, or with loops in segments. The joint graph is held to
central differences, too. Where ways differ, arguments are moved in their last digits: what that
changes is what rounding explains. Exit status 1 = something differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import profuse as pf
from random_functions import Function, Plain, function

STEPS = (1e-6, 1e-5, 1e-7)
CALLS = 4
Arrays = tuple[np.ndarray, ...]

# What is set while a program runs, drawn for each.
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"activation_budget": 0.25},
    {"activation_budget": 0.0, "loop_bytes": 0},
    {"loop_bytes": 0},
    {"stress": "guards:k=2,seed=7"},
    {"stress": "guards:k=3,seed=5", "activation_budget": 0.25},
)


@dataclass(frozen=True)
class Finding:
    """A way whose gradients are others than those of the joint graph."""

    number: int
    way: str
    call: int
    what: str


class OnTape:
    """NumPy whose new arrays are on the tape, so that results can be written into them."""

    @staticmethod
    def full(shape: Any, value: Any) -> Any:
        return pf.array(np.zeros(shape)) + value

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def zeros(*args: Any, **kwargs: Any) -> Any:
        return pf.array(np.zeros(*args, **kwargs))

    @staticmethod
    def ones(*args: Any, **kwargs: Any) -> Any:
        return pf.array(np.ones(*args, **kwargs))


def program(seed: int, number: int) -> Function:
    """The function of a number, with three results; most have branches, loops and writes."""
    own = random.Random(f"{seed}/{number}")
    return function(own.randrange(1 << 31), flow=own.random() < 0.7, results=3)


def calls_of(made: Function, seed: int) -> list[Arrays]:
    """Arguments of several calls: new values, and twice other sizes where NumPy takes them."""
    rng = np.random.default_rng([seed, 77])
    sizes = {d for x in made.args for d in x.shape if d > 1}
    larger = {d: d + int(rng.integers(1, 4)) for d in sorted(sizes)} | {1: 1}
    f = made.compiled()

    def drawn(renamed: dict[int, int]) -> Arrays:
        shapes = [tuple(renamed.get(d, d) for d in x.shape) for x in made.args]
        return tuple(rng.standard_normal(s) for s in shapes)

    found = [made.args]
    for k in range(1, CALLS):
        args = drawn(larger if k in (2, 3) else {})
        try:
            values = [np.asarray(y) for y in f(np, Plain, *(a.copy() for a in args))]
        except (ValueError, IndexError, TypeError):
            args = drawn({})
            values = [np.asarray(y) for y in f(np, Plain, *(a.copy() for a in args))]
        if not all(np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e6 for y in values):
            args = made.args
        found.append(args)
    return found


def weights(made: Function, args: Arrays) -> list[np.ndarray]:
    """A gradient of each result of a call."""
    results = made.compiled()(np, Plain, *(a.copy() for a in args))
    shapes = [np.shape(y) for y in results]
    return [np.cos(np.arange(np.prod(s, dtype=int)) + k).reshape(s) for k, s in enumerate(shapes)]


def ways(made: Function) -> dict[str, Callable[[Arrays, Sequence[np.ndarray]], list[np.ndarray]]]:
    """How the gradients of the arguments are found, from those of the results."""
    f = made.compiled()
    every = tuple(range(len(made.args)))

    def traced(*args: Any) -> Any:
        return f(np, pf, *args)

    def loss(*given: Any) -> Any:
        args, gs = given[: len(every)], given[len(every) :]
        return sum(np.sum(y * g) for y, g in zip(traced(*args), gs, strict=True))

    joint, compiled = (pf.grad(loss, wrt=every, profiled_runs=n) for n in (1_000_000, 1))
    jitted = {False: pf.jit(traced), True: pf.jit(traced)}

    def taped(fn: Callable, args: Arrays, gs: Sequence[np.ndarray]) -> list[np.ndarray]:
        leaves = [pf.array(a, requires_grad=True) for a in args]
        ys = fn(*leaves)
        pairs = [(y, g) for y, g in zip(ys, gs, strict=True) if y.requires_grad]
        found = (
            pf.gradients([y for y, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True)
            if pairs
            else [None] * len(leaves)
        )
        return [np.zeros_like(a) if g is None else np.asarray(g) for a, g in zip(args, found, strict=True)]

    def keyed(args: Arrays, gs: Sequence[np.ndarray]) -> list[np.ndarray]:
        with pf.knobs.override(profiling_mode=False):
            return taped(jitted[False], args, gs)

    def op_by_op(*leaves: Any) -> Any:
        # An argument that is returned, or a view of it, is the leaf itself.
        return [y if isinstance(y, pf.Array) else pf.array(y) for y in f(OnTape(), Plain, *leaves)]

    return {
        "joint": lambda args, gs: list(joint(*args, *gs)),
        "tape": lambda args, gs: taped(op_by_op, args, gs),
        "compiled": lambda args, gs: list(compiled(*args, *gs)),
        "split": lambda args, gs: list(pf.vjp(traced, *args)[1](tuple(gs))),
        "jitted on the tape": lambda args, gs: taped(jitted[True], args, gs),
        "jitted on the tape, keyed": keyed,
    }


def check(seed: int, number: int, counts: Counter[str]) -> list[Finding]:
    """Differentiate one function in all ways; what differs."""
    settings = SETTINGS[number % len(SETTINGS)]
    made = program(seed, number)
    found: list[Finding] = []
    with pf.knobs.override(cache=False, background=False, check="off", **settings):
        every = ways(made)
        turn = list(every)[2 + number // len(SETTINGS) % (len(every) - 2)]
        every = {way: every[way] for way in ("joint", "tape", turn)}
        # Enough calls to be compiled; a way that has failed once is not asked again.
        for call, args in enumerate(calls_of(made, number)):
            gs = weights(made, args)
            try:
                want = every["joint"](args, gs)
            except pf.TraceError:  # of what NumPy does at these sizes, some cannot be traced
                counts["refused calls"] += 1
                continue
            except Exception as error:
                found.append(Finding(number, "joint", call, _told(error)))
                break
            if call in (0, 3):
                found += _by_differences(made, number, call, args, gs, want, counts)
            for way in list(every):
                if way == "joint":
                    continue
                counts["comparisons"] += 1
                try:
                    got = every[way](args, gs)
                except Exception as error:
                    found.append(Finding(number, way, call, _told(error)))
                    del every[way]
                    continue
                off = _worst(got, want)
                if off > 1 and off > _explained(every["joint"], args, gs, want):
                    found.append(Finding(number, way, call, f"gradients differ by {off:.1e} times"))
                    del every[way]
    counts["programs"] += 1
    return found


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"


def _worst(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> float:
    """The largest difference over what is usual for float64."""
    worst = 0.0
    for g, w in zip(got, want, strict=True):
        if np.shape(g) != np.shape(w):
            return np.inf
        scale = 1e-9 * (1 + np.abs(w).max(initial=0.0)) + 1e-8 * np.abs(w)
        off = np.where(np.isnan(g) & np.isnan(w) | (g == w), 0.0, np.abs(g - w) / scale)
        worst = max(worst, float(np.nan_to_num(off, nan=np.inf).max(initial=0.0)))
    return worst


def _explained(joint: Callable, args: Arrays, gs: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> float:
    """How far arguments that are off in the last digits move the gradients."""
    rng = np.random.default_rng(0)
    moved = 0.0
    for _ in range(3):
        near = tuple(a * (1 + 1e-14 * rng.standard_normal(a.shape)) for a in args)
        moved = max(moved, _worst(joint(near, gs), want))
    return 30 * moved


def _by_differences(
    made: Function,
    number: int,
    call: int,
    args: Arrays,
    gs: Sequence[np.ndarray],
    want: Sequence[np.ndarray],
    counts: Counter[str],
) -> Iterator[Finding]:
    """Compare with central differences along one direction, unless a kink is near."""
    f = made.compiled()
    directions = [np.cos(np.arange(a.size) * 1.7 + 0.3).reshape(a.shape) for a in args]

    def loss(step: float) -> float:
        moved = (a + step * d for a, d in zip(args, directions, strict=True))
        return sum(np.sum(y * g) for y, g in zip(f(np, Plain, *moved), gs, strict=True))

    slopes = [(loss(s) - loss(-s)) / (2 * s) for s in STEPS]
    if not all(np.isclose(s, slopes[0], rtol=1e-4, atol=1e-5) for s in slopes):
        counts["near a kink"] += 1
        return
    counts["central differences"] += 1
    total = sum((g * d).sum() for g, d in zip(want, directions, strict=True))
    scale = max(abs(slopes[0]), *(np.abs(w).max(initial=0.0) for w in want))
    if not np.isclose(total, slopes[0], rtol=1e-4, atol=1e-4 + 1e-6 * scale):
        yield Finding(number, "central differences", call, f"{total} for {slopes[0]}")


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print a program, no more")
    given = parser.parse_args()
    start, counts, failed = time.perf_counter(), Counter[str](), 0
    if given.show is not None:
        print(program(given.seed, given.show).text)
        return 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(given.first, given.first + given.programs):
            for finding in check(given.seed, number, counts):
                failed += 1
                print(f"{given.seed}/{finding.number}, call {finding.call}: {finding.way}: {finding.what}", flush=True)
            if counts["programs"] % 100 == 0:
                print(f"{counts['programs']} programs", flush=True)
    minutes = (time.perf_counter() - start) / 60
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"{told}; {counts['programs'] / minutes:.0f} programs per minute; {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
