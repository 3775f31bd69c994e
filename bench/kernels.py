"""Fused kernels against NumPy, JAX and torch.compile, on one core, calls interleaved.

Results are checked against float64 first; then every round times one call of each system, and the
table shows the median of the per-round ratios peer / ours with the quartiles (above 1 = we are
faster). Peers that are not installed are left out.

    python bench/kernels.py [--size 1024] [--rounds 60] [--json out.json] [names …]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable

ONE_CORE = {min(os.sched_getaffinity(0))}
os.sched_setaffinity(0, ONE_CORE)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["PROFUSE_CACHE"] = "off"  # the second call is to be measured with its compile

import numpy as np  # noqa: E402
import profuse as pf  # noqa: E402
from common import environment, processor, timed  # noqa: E402


def gelu_bias(np, x, b):
    y = x + b
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def softmax(np, x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(np, x, g, b):
    m = x.mean(axis=-1, keepdims=True)
    v = ((x - m) * (x - m)).mean(axis=-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * g + b


def rmsnorm(np, x, g):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * g


def cross_entropy(np, x, labels):
    top = x.max(axis=-1, keepdims=True)
    lse = np.log(np.exp(x - top).sum(axis=-1)) + top[:, 0]
    return (lse - np.take_along_axis(x, labels[:, None], axis=-1)[:, 0]).mean()


def column_sum(np, x):
    return (x * x).sum(axis=0)


def swiglu(np, x, y):
    return x / (1.0 + np.exp(-x)) * y


def adam(np, p, g, m, v):
    m2 = 0.9 * m + 0.1 * g
    v2 = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m2 / 0.271) / (np.sqrt(v2 / 0.003) + 1e-8), m2, v2


def cases(n: int) -> dict[str, tuple[Callable, tuple]]:
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    x, row = normal(n, n), normal(n)
    return {
        "gelu_bias": (gelu_bias, (x, row)),
        "softmax": (softmax, (x,)),
        "layernorm": (layernorm, (x, row, normal(n))),
        "rmsnorm": (rmsnorm, (x, row)),
        "cross_entropy": (cross_entropy, (x, rng.integers(0, n, n))),
        "column_sum": (column_sum, (x,)),
        "swiglu": (swiglu, (x, normal(n, n))),
        "adam": (adam, (x, normal(n, n), normal(n, n), normal(n, n) ** 2)),
    }


def ours(fn: Callable) -> Callable:
    def plain(*args):
        return fn(np, *args)

    plain.__name__ = fn.__name__
    return pf.jit(plain, background=False)


def peers(fn: Callable, args: tuple) -> dict[str, Callable[[], object]]:
    """Per installed system, a call that returns only when the result is there."""
    out: dict[str, Callable[[], object]] = {"numpy": lambda: fn(np, *args)}
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        pass
    else:
        jitted = jax.jit(lambda *a: fn(jnp, *a))
        moved = [jax.device_put(a) for a in args]
        out["jax"] = lambda: jax.block_until_ready(jitted(*moved))
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        compiled = torch.compile(lambda *a: fn(np, *a))  # torch.compile reads NumPy code
        out["torch.compile"] = lambda: compiled(*args)
    return out


def measure(name: str, fn: Callable, args: tuple, rounds: int) -> dict:
    jitted = ours(fn)
    jitted(*args)
    compile_seconds = timed(lambda: jitted(*args))
    check(name, jitted(*args), fn, args)
    calls = {"ours": lambda: jitted(*args), **peers(fn, args)}
    for call in calls.values():
        call(), call(), call()
    times: dict[str, list[float]] = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            times[key].append(timed(call))
    mine = np.array(times["ours"])
    ratios = {k: np.array(v) / mine for k, v in times.items() if k != "ours"}
    return {
        "kernel": name,
        "microseconds": float(np.median(mine) * 1e6),
        "second_call_ms": compile_seconds * 1e3,
        "kernels": jitted.state().counters["kernels_compiled"],
        "ratios": {k: np.percentile(r, [25, 50, 75]).tolist() for k, r in ratios.items()},
    }


def check(name: str, found, fn: Callable, args: tuple) -> None:
    exact = fn(np, *[a.astype(np.float64) if a.dtype == np.float32 else a for a in args])
    for a, b in zip(_leaves(found), _leaves(exact), strict=True):
        scale = np.abs(b).max()
        error = np.abs(np.asarray(a, np.float64) - b).max() / scale
        if not error < 1e-5:
            sys.exit(f"{name}: relative error {error:.1e} against float64")


def _leaves(out):
    return out if isinstance(out, tuple) else (out,)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    print(f"{processor()}, one core, {args.size}x{args.size} f32")
    for name, (fn, inputs) in cases(args.size).items():
        if args.names and name not in args.names:
            continue
        row = measure(name, fn, inputs, args.rounds)
        rows.append(row)
        shown = "  ".join(
            f"{peer} {q[1]:.2f}x [{q[0]:.2f}-{q[2]:.2f}]" for peer, q in row["ratios"].items()
        )
        print(
            f"{name:<14} {row['microseconds']:9.1f} us  {row['kernels']} kernel"
            f"  2nd call {row['second_call_ms']:6.1f} ms  {shown}",
            flush=True,
        )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(
                {"environment": environment(), "size": args.size, "rows": rows}, file, indent=1
            )
            file.write("\n")


if __name__ == "__main__":
    main()
