"""The time that a caller is stalled while a system compiles: 30 calls, new sizes at every third.

For each call: its time, divided by what the same system takes for these sizes without compiling
(Profuse: op by op; the others: eagerly). The figure of a run is the slowest call's ratio; each run
is a process of its own, in which the system has compiled another function before, so that what a
process loads once is not counted. No system finds compiled code on disk. Systems that are not
installed are left out.

    python bench/stall.py [--runs 10] [--json out.json] [systems …]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["PROFUSE_CACHE"] = "off"
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
# In the processes of the runs memory stays with the process: page faults would be taken for stalls.
os.environ |= {f"MALLOC_{name}_": str(1 << 30) for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD")}

import numpy as np
from common import block, processor, timed, write_results

WIDTH = 4096
ROWS = (640, 512, 800, 320, 960, 448, 720, 384, 864, 576)  # no power of two after another
CALLS_PER_SIZE = 3
EAGER_ROUNDS = 3
PAUSE = 0.1  # seconds between calls, as of a program that does other things, too

System = tuple[Callable[..., Any], Callable[..., Any], Callable[[np.ndarray], Any]]


def small(lib, x, b):
    """The kernel that every process compiles first."""
    return lib.sqrt(x * x + b)


def ours(fn) -> System:
    import profuse as pf

    def plain(x, b):
        return fn(np, x, b)

    op_by_op = pf.jit(plain)

    def eager(x, b):
        with pf.knobs.override(optimize=False):
            return op_by_op(x, b)

    return pf.jit(plain), eager, lambda a: a


def jax(fn) -> System:
    import jax
    import jax.numpy as jnp

    def plain(x, b):
        return fn(jnp, x, b)

    jitted = jax.jit(plain)
    return (
        lambda x, b: jax.block_until_ready(jitted(x, b)),
        lambda x, b: jax.block_until_ready(plain(x, b)),
        jax.device_put,
    )


def torch_compile(fn) -> System:
    import torch

    torch.set_num_threads(1)

    def plain(x, b):
        return fn(torch, x, b)

    return torch.compile(plain), plain, torch.from_numpy


def torch_jit(fn) -> System:
    import torch

    torch.set_num_threads(1)

    def plain(x, b):
        return fn(torch, x, b)

    made = []

    def call(x, b):
        if not made:
            made.append(torch.jit.trace(plain, (x, b), check_trace=False))
        return made[0](x, b)

    return call, plain, torch.from_numpy


SYSTEMS = {"ours": ours, "jax": jax, "torch.jit": torch_jit, "torch.compile": torch_compile}


def arguments(put: Callable[[np.ndarray], Any]) -> Iterator[tuple]:
    rng = np.random.default_rng(0)
    row = put(rng.standard_normal(WIDTH, dtype=np.float32))
    for rows in ROWS:
        x = put(rng.standard_normal((rows, WIDTH), dtype=np.float32))
        for _ in range(CALLS_PER_SIZE):
            yield x, row


def one_run(name: str) -> dict:
    """Seconds of each call and of the same call without compiling, in this process."""
    jitted, _, put = SYSTEMS[name](small)
    for _ in range(3):
        jitted(put(np.ones((8, 8), np.float32)), put(np.ones(8, np.float32)))
        if name == "ours":
            jitted.wait()
    jitted, eager, put = SYSTEMS[name](block)
    found: dict[str, list] = {"seconds": [], "eager": [], "during": []}
    calls = list(arguments(put))
    for args in calls[::CALLS_PER_SIZE]:
        eager(*args)
        rounds = [timed(partial(eager, *args)) for _ in range(EAGER_ROUNDS)]
        found["eager"] += [float(np.median(rounds))] * CALLS_PER_SIZE
    for args in calls:
        time.sleep(PAUSE)
        seen = _events(name)
        found["seconds"].append(timed(partial(jitted, *args)))
        found["during"].append(_events(name)[len(seen) :])
    return found


def _events(name: str) -> list[str]:
    if name != "ours":
        return []
    import profuse as pf

    return [event.kind for event in pf.events()]


def runs_of(name: str, count: int) -> list[dict]:
    """So many runs, each in a process of its own; none if the system is not installed."""
    done = []
    for _ in range(count):
        command = [sys.executable, __file__, "--one-run", name]
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        if child.returncode:
            print(f"{name} is left out: {child.stderr.strip().splitlines()[-1]}")
            return []
        done.append(json.loads(child.stdout.splitlines()[-1]))
        # One run takes seconds of the processor, and minutes where other programs have it.
        ratio = summary(name, done[-1:])["ratio"]
        print(f"{name}, run {len(done)} of {count}: {ratio:.2f}x", file=sys.stderr, flush=True)
    return done


def summary(name: str, runs: list[dict]) -> dict:
    """The ratio of each run's slowest call, and which call that was."""
    ratios = [np.array(r["seconds"]) / np.array(r["eager"]) for r in runs]
    slowest = [
        {
            "ratio": float(r.max()),
            "call": int(r.argmax()) + 1,
            "ms": run["seconds"][int(r.argmax())] * 1e3,
            "during": run["during"][int(r.argmax())],
        }
        for r, run in zip(ratios, runs, strict=True)
    ]
    return {
        "system": name,
        "ratio": float(np.median([s["ratio"] for s in slowest])),
        "quartiles": np.percentile([s["ratio"] for s in slowest], [25, 75]).tolist(),
        "eager_ms": float(np.median([r["eager"] for r in runs]) * 1e3),
        "total_ms": float(np.median([sum(r["seconds"]) for r in runs]) * 1e3),
        "slowest": slowest,
        "median_ratio_by_call": np.median(ratios, axis=0).round(3).tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", default=list(SYSTEMS))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json")
    parser.add_argument("--one-run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one_run:
        print(json.dumps(one_run(args.one_run)))
        return
    rows = []
    print(f"{processor()}: slowest of {len(ROWS) * CALLS_PER_SIZE} calls / without compiling")
    for name in args.systems:
        runs = runs_of(name, args.runs)
        if not runs:
            continue
        row = summary(name, runs)
        rows.append(row)
        calls = sorted(s["call"] for s in row["slowest"])
        print(
            f"{name:<14} {row['ratio']:8.2f}x  [{row['quartiles'][0]:.2f}-"
            f"{row['quartiles'][1]:.2f}]  without {row['eager_ms']:.1f} ms  "
            f"all calls {row['total_ms']:.0f} ms  slowest were calls {calls}",
            flush=True,
        )
        write_results(args.json, runs=args.runs, rows=rows)  # what there is so far


if __name__ == "__main__":
    main()
