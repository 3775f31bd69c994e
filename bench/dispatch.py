"""What a call costs: two 4x4 float32 arrays, where the arithmetic is next to nothing.

Every system is called with its own kind of array, after warming up. Rounds of calls of each are
interleaved on one core; each call is timed by itself, and what timing nothing takes is subtracted.
The mean is that of loops without a clock in them. JAX returns before the result is there; the
second row of it waits. Peers that are not installed are left out.

    python bench/dispatch.py [--calls 2000] [--rounds 40] [--json out.json] [names …]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import time
from collections.abc import Callable

import kernels  # noqa: F401  (first: pins the process to one core)

from common import processor, write_results  # isort: skip

import numpy as np  # isort: skip
import profuse as pf  # isort: skip


def add(np, x, y):
    return x + y


def mixed(np, x, y):
    return np.tanh(x + y) * x


FUNCTIONS = {"x + y": add, "tanh(x + y) * x": mixed}


def ours(fn: Callable, x: np.ndarray, y: np.ndarray, *, native: bool) -> Callable[[], object]:
    f = pf.jit(lambda x, y: fn(np, x, y))
    f.warmup(x, y)
    f(x, y)  # asks for a dispatcher, which another thread emits
    f.wait()
    assert f.state().tier == "optimized"
    return (lambda: f(x, y)) if native else (lambda: f._call_python((x, y), {}))


def systems(fn: Callable, x: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    """Per installed system, a call."""
    out: dict[str, Callable[[], object]] = {
        "profuse": ours(fn, x, y, native=True),
        "profuse, Python dispatcher": ours(fn, x, y, native=False),
        "numpy": lambda: fn(np, x, y),
    }
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        pass
    else:
        jitted = jax.jit(lambda a, b: fn(jnp, a, b))
        u, v = jax.device_put(x), jax.device_put(y)
        out["jax.jit"] = lambda: jitted(u, v)
        out["jax.jit, waited for"] = lambda: jitted(u, v).block_until_ready()
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        s, t = torch.from_numpy(x), torch.from_numpy(y)
        compiled = torch.compile(lambda a, b: fn(torch, a, b))
        traced = torch.jit.trace(lambda a, b: fn(torch, a, b), (s, t))
        out["torch.compile"] = lambda: compiled(s, t)
        out["torch.jit"] = lambda: traced(s, t)
        out["torch eager"] = lambda: fn(torch, s, t)
    return out


def each(call: Callable[[], object], count: int) -> np.ndarray:
    """Nanoseconds of single calls."""
    now = time.perf_counter_ns
    marks = [0] * (2 * count)
    for k in range(0, 2 * count, 2):
        marks[k] = now()
        call()
        marks[k + 1] = now()
    found = np.array(marks)
    return found[1::2] - found[::2]


def mean(call: Callable[[], object], count: int) -> float:
    """Nanoseconds per call of a loop."""
    start = time.perf_counter_ns()
    for _ in itertools.repeat(None, count):
        call()
    return (time.perf_counter_ns() - start) / count


def measure(fn: Callable, calls: int, rounds: int) -> dict[str, dict[str, float]]:
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    y = np.linspace(2, 3, 16, dtype=np.float32).reshape(4, 4)
    tried = {"": lambda: None, **systems(fn, x, y)}
    expected = fn(np, x, y)
    for name, call in tried.items():
        for _ in range(500):
            got = call()
        if name and not np.allclose(np.asarray(got), expected, atol=1e-6):
            raise SystemExit(f"{name} computes something else")
    singles: dict[str, list[np.ndarray]] = {name: [] for name in tried}
    means: dict[str, list[float]] = {name: [] for name in tried}
    gc.disable()
    for _ in range(rounds):
        for name, call in tried.items():
            singles[name].append(each(call, calls))
            means[name].append(mean(call, calls))
    gc.enable()
    nothing = float(np.median(np.concatenate(singles.pop(""))))
    idle = float(np.median(means.pop("")))
    out = {}
    for name, found in singles.items():
        every = np.concatenate(found) - nothing
        out[name] = {
            "median_ns": float(np.median(every)),
            "p99_ns": float(np.percentile(every, 99)),
            "loop_ns": float(np.median(means[name])) - idle,
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json")
    args = parser.parse_args()
    print(f"{processor()}, one core of {os.cpu_count()}, two 4x4 float32 arrays, ns per call")
    tables = {}
    for name, fn in FUNCTIONS.items():
        if args.names and name not in args.names:
            continue
        tables[name] = measure(fn, args.calls, args.rounds)
        print(f"{name:<28}{'median':>10}{'p99':>10}{'loop':>10}")
        for system, row in tables[name].items():
            print(f"  {system:<26}" + "".join(f"{row[k]:>10.0f}" for k in row), flush=True)
    write_results(args.json, calls=tables)


if __name__ == "__main__":
    main()
