"""Fused kernels against NumPy, JAX and torch.compile, on one core, calls interleaved.

Results are checked against float64 first; then every round times one call of each system, and the
table shows the median of the per-round ratios peer / ours with the quartiles (above 1 = we are
faster). Peers that are not installed are left out.

    python bench/kernels.py [--size 1024] [--rounds 60] [--json out.json] [names …]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

ONE_CORE = {min(os.sched_getaffinity(0))}
os.sched_setaffinity(0, ONE_CORE)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["PROFUSE_CACHE"] = "off"  # the second call is to be measured with its compile

import numpy as np  # noqa: E402
import profuse as pf  # noqa: E402
from cases import cases, check  # noqa: E402
from common import processor, timed, write_results  # noqa: E402


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


def mask_ratio(size: int, rounds: int) -> float:
    """Time of one softmax kernel with a mask of -1e9 over its time with one of zeros."""
    fn, (x, mask) = cases(size)["masked_softmax"]
    jitted, nothing = ours(fn), np.zeros_like(mask)
    for _ in range(3):
        jitted(x, mask), jitted(x, nothing)
    return float(np.median([
        timed(lambda: jitted(x, mask)) / timed(lambda: jitted(x, nothing)) for _ in range(rounds)
    ]))  # fmt: skip


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
        if name == "masked_softmax":
            row["masked_over_unmasked"] = mask_ratio(args.size, args.rounds)
        rows.append(row)
        shown = "  ".join(
            f"{peer} {q[1]:.2f}x [{q[0]:.2f}-{q[2]:.2f}]" for peer, q in row["ratios"].items()
        )
        print(
            f"{name:<14} {row['microseconds']:9.1f} us  {row['kernels']} kernel"
            f"  2nd call {row['second_call_ms']:6.1f} ms  {shown}",
            flush=True,
        )
        if "masked_over_unmasked" in row:
            print(f"{'':<14} {row['masked_over_unmasked']:.2f} times as long as unmasked")
    write_results(args.json, size=args.size, rows=rows)


if __name__ == "__main__":
    main()
