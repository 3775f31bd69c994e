"""A backward run of small arrays: the eager tape, the tape captured, and torch's two likewise.

A chain of elementwise operations, of a number of nodes, on arrays of 4x4 elements: what is measured
is nearly all work per node. Forward runs are not timed. The median of runs in turn is told, in
microseconds of this thread's CPU time, with the ratio of captured to eager; the first run is told
apart, which ours captures in the background, and of which another graph has imported all modules
before. torch's compiled autograd runs its graph uncompiled, or compiled with ``--inductor``, which
takes long. ``--alone`` leaves torch out, whose runs in between evict what ours have in caches.

    python bench/compiled_autograd.py [--nodes 20 200] [--rounds 100] [--alone | --inductor]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import processor, timed_by_cpu, write_results

WARM = 14  # runs before any is timed: captures, profiles, compiles, emitted code are there then
Run = tuple[Callable[[], Any], Callable[[Any], None]]  # forward, backward


def chain(lib: Any, x: Any, nodes: int) -> Any:
    """A loss of so many nodes."""
    y = x
    for _ in range((nodes - 1) // 2):
        y = lib.tanh(y) * x
    return y.sum()


def ours(nodes: int) -> dict[str, Run]:
    import profuse as pf

    x = pf.array(np.full((4, 4), 0.5), requires_grad=True)

    with pf.compiled_autograd():
        chain(np, x, 5).backward()
    pf.compiled_autograd.wait()

    def forward() -> Any:
        x.grad = None
        return chain(np, x, nodes)

    def captured(loss: Any) -> None:
        with pf.compiled_autograd():
            loss.backward()

    return {"tape": (forward, lambda loss: loss.backward()), "captured": (forward, captured)}


def torchs(nodes: int, inductor: bool) -> dict[str, Run]:
    import torch
    from torch._dynamo import compiled_autograd

    torch.set_num_threads(1)
    x = torch.full((4, 4), 0.5, dtype=torch.float64, requires_grad=True)

    def forward() -> Any:
        x.grad = None
        return chain(torch, x, nodes)

    def compiler(graph: Any) -> Any:
        return torch.compile(graph) if inductor else graph

    def captured(loss: Any) -> None:
        with compiled_autograd._enable(compiler, dynamic=False):
            loss.backward()

    return {
        "torch": (forward, lambda loss: loss.backward()),
        "torch captured": (forward, captured),
    }


def measure(nodes: int, rounds: int, *, alone: bool, inductor: bool) -> dict[str, Any]:
    """Microseconds of each system, and of its first run."""
    import profuse as pf

    runs, settle = ours(nodes), pf.compiled_autograd.wait
    if not alone and importlib.util.find_spec("torch") is not None:
        runs |= torchs(nodes, inductor)
    first = {}
    for name, (forward, backward) in runs.items():
        loss = forward()
        first[name] = timed_by_cpu(lambda loss=loss, backward=backward: backward(loss)) * 1e6
        for _ in range(WARM):
            settle()
            backward(forward())
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (forward, backward) in runs.items():
            loss = forward()
            taken[name].append(
                timed_by_cpu(lambda loss=loss, backward=backward: backward(loss)) * 1e6
            )
    pairs = zip(taken["tape"], taken["captured"], strict=True)
    return {
        "nodes": nodes,
        "microseconds": {name: statistics.median(found) for name, found in taken.items()},
        "first": first,
        "captured / tape": statistics.median(b / a for a, b in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[20, 50, 200, 500, 2000])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    for nodes in options.nodes:
        row = measure(nodes, options.rounds, alone=options.alone, inductor=options.inductor)
        rows.append(row)
        times = ", ".join(f"{name} {us:.0f}" for name, us in row["microseconds"].items())
        first = ", ".join(f"{name} {us / 1e3:.1f}" for name, us in row["first"].items())
        ratio = row["captured / tape"]
        print(f"{nodes} nodes: {times} µs; captured / tape {ratio:.2f}; first run {first} ms")
    write_results(options.json, rows=rows, processor=processor())


if __name__ == "__main__":
    main()
