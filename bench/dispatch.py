"""The time of a call: 4x4 float32 arrays, two or dicts of them, for next to no arithmetic.

A training step is a loss and its gradients: by a jitted function and ``backward``, by the tape
without a jitted function, by `pf.value_and_grad`, and by the peers.

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

import one_core  # noqa: F401  (first: before threads are made)

from common import processor, write_results  # isort: skip

import numpy as np  # isort: skip
import profuse as pf  # isort: skip


def add(np, x, y):
    return x + y


def mixed(np, x, y):
    return np.tanh(x + y) * x


def step(np, parameters, gradients):
    return {name: parameters[name] - 0.1 * gradients[name] for name in parameters}


def loss(np, x, y):
    return (np.tanh(x + y) * x).sum()


X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
Y = np.linspace(2, 3, 16, dtype=np.float32).reshape(4, 4)
MANY = {f"w{k}": X + k for k in range(10)}
TRAINING = "a training step"
CASES: dict[str, tuple[Callable, tuple]] = {
    "x + y": (add, (X, Y)),
    "tanh(x + y) * x": (mixed, (X, Y)),
    "a step of 10 in a dict": (step, (MANY, dict.fromkeys(MANY, Y))),
    TRAINING: (loss, (X, Y)),
}


def mapped(convert: Callable[[np.ndarray], object], tree: object) -> object:
    if isinstance(tree, dict):
        return {key: mapped(convert, item) for key, item in tree.items()}
    return convert(tree)


def ours(fn: Callable, args: tuple, *, native: bool) -> Callable[[], object]:
    f = pf.jit(lambda x, y: fn(np, x, y))
    f.warmup(*args)
    f(*args)  # asks for a dispatcher, which another thread emits
    f.wait()
    assert f.state().tier == "optimized"
    x, y = args
    return (lambda: f(x, y)) if native else (lambda: f._call_python((x, y), {}))


def systems(fn: Callable, args: tuple) -> dict[str, Callable[[], object]]:
    """Per installed system, a call."""
    x, y = args
    out: dict[str, Callable[[], object]] = {
        "profuse": ours(fn, args, native=True),
        "profuse, Python dispatcher": ours(fn, args, native=False),
        "numpy": lambda: fn(np, x, y),
    }
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        pass
    else:
        jitted = jax.jit(lambda a, b: fn(jnp, a, b))
        u, v = mapped(jax.device_put, x), mapped(jax.device_put, y)
        out["jax.jit"] = lambda: jitted(u, v)
        out["jax.jit, waited for"] = lambda: jax.block_until_ready(jitted(u, v))
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        s, t = mapped(torch.from_numpy, x), mapped(torch.from_numpy, y)
        compiled = torch.compile(lambda a, b: fn(torch, a, b))
        traced = torch.jit.trace(lambda a, b: fn(torch, a, b), (s, t), strict=False)
        out["torch.compile"] = lambda: compiled(s, t)
        out["torch.jit"] = lambda: traced(s, t)
        out["torch eager"] = lambda: fn(torch, s, t)
    return out


def training(args: tuple) -> dict[str, Callable[[], object]]:
    """Per installed system, a call that computes `loss` and its gradients."""
    x, y = (pf.array(a, requires_grad=True) for a in args)
    f, both = (pf.jit(lambda x, y: loss(np, x, y)), pf.value_and_grad(lambda x, y: loss(np, x, y), wrt=(0, 1)))
    both.warmup(*args)

    def taped(fn: Callable) -> tuple:
        value = fn(x, y)
        x.grad = y.grad = None
        value.backward()
        return value.data, (x.grad, y.grad)

    for _ in range(7):  # the function, then its halves, then emitted code
        taped(f)
        both(*args)
        f.wait()
        both.wait()
    assert f.state().emitted and both.state().emitted
    out: dict[str, Callable[[], object]] = {
        "profuse, jitted on the tape": lambda: taped(f),
        "profuse, the tape alone": lambda: taped(lambda x, y: loss(np, x, y)),
        "profuse, value_and_grad": lambda: both(*args),
    }
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        pass
    else:
        jitted = jax.jit(jax.value_and_grad(lambda a, b: loss(jnp, a, b), argnums=(0, 1)))
        u, v = map(jax.device_put, args)
        out["jax.jit, waited for"] = lambda: jax.block_until_ready(jitted(u, v))
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        s, t = (torch.from_numpy(a.copy()).requires_grad_() for a in args)
        compiled = torch.compile(lambda a, b: loss(torch, a, b))

        def eager(fn: Callable) -> tuple:
            value = fn(s, t)
            s.grad = t.grad = None
            value.backward()
            return value.detach(), (s.grad, t.grad)

        out["torch eager"] = lambda: eager(lambda a, b: loss(torch, a, b))
        out["torch.compile"] = lambda: eager(compiled)
    return out


def same(found: object, expected: object) -> bool:
    if isinstance(expected, tuple):
        return all(map(same, found, expected))  # type: ignore[call-overload]
    if isinstance(expected, dict):
        return all(same(found[key], item) for key, item in expected.items())  # type: ignore[index]
    return np.allclose(np.asarray(found), expected, atol=1e-6)  # type: ignore[arg-type]


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


def measure(name: str, calls: int, rounds: int) -> dict[str, dict[str, float]]:
    fn, args = CASES[name]
    if name == TRAINING:
        tried = {"": lambda: None, **training(args)}
        expected = tried["profuse, the tape alone"]()
    else:
        tried = {"": lambda: None, **systems(fn, args)}
        expected = fn(np, *args)
    for name, call in tried.items():
        for _ in range(500):
            got = call()
        if name and not same(got, expected):
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
    print(f"{processor()}, one core of {os.cpu_count()}, 4x4 float32 arrays, ns per call")
    tables = {}
    for name in CASES:
        if args.names and name not in args.names:
            continue
        tables[name] = measure(name, args.calls, args.rounds)
        print(f"{name:<28}{'median':>10}{'p99':>10}{'loop':>10}")
        for system, row in tables[name].items():
            print(f"  {system:<26}" + "".join(f"{row[k]:>10.0f}" for k in row), flush=True)
    write_results(args.json, calls=tables)


if __name__ == "__main__":
    main()
