"""A backward run of small arrays: the eager tape, the tape captured, and torch's two likewise.

A chain of elementwise operations, of a number of nodes, on arrays of 4x4 elements: what is measured
is nearly all work per node. Forward runs are not timed. The median of runs in turn is told, in
microseconds of this thread's CPU time, with the ratio of captured to eager; the first run is told
apart, which ours captures in the background, and of which another graph has imported all modules
before; so is the CPU time that the first three take beside the program, for captures and compiles
that nothing on disk spares: that of other threads of the process, and that of workers (Linux).
torch's compiled autograd runs its graph uncompiled, or compiled with ``--inductor``, which takes
long. ``--alone`` leaves torch out, whose runs in between evict what ours have in caches.

Then programs of which the work per node is not all, ours alone: networks of three layers of some
widths, the same with a tensor hook and a post-accumulate hook on each parameter, a chain with both
on each of its leaves, and several graphs in turn.

    python bench/compiled_autograd.py [--nodes 20 200] [--rounds 100] [--alone | --inductor]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
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


def network(width: int, *, hooked: bool) -> Callable[[], Any]:
    """The function that computes the loss of a network of three layers, of leaves without gradients."""
    import profuse as pf

    rng = np.random.default_rng(0)
    shapes = [(width, width)] * 3 + [(width,)] * 3
    leaves = [pf.array(rng.standard_normal(s) * 0.3, requires_grad=True) for s in shapes]
    x = rng.standard_normal((64, width))
    if hooked:
        hook(leaves)

    def forward() -> Any:
        h = x
        for p in leaves:
            p.grad = None
        for w, b in zip(leaves[:3], leaves[3:], strict=True):
            h = np.tanh(h @ w + b)
        return (h * h).mean()

    return forward


def hook(leaves: list[Any]) -> None:
    for x in leaves:
        x.register_hook(lambda g: None)
        x.register_post_accumulate_grad_hook(lambda x: None)


def hooked_chain(count: int) -> Callable[[], Any]:
    """The function that computes a chain that has a leaf, with two hooks, in each of its steps."""
    import profuse as pf

    leaves = [pf.array(np.full((4, 4), 0.5), requires_grad=True) for _ in range(count)]
    hook(leaves)

    def forward() -> Any:
        y = leaves[0]
        for x in leaves:
            x.grad = None
            y = np.tanh(y) * x
        return y.sum()

    return forward


def in_turn(graphs: int) -> list[Callable[[], Any]]:
    """The functions that compute chains of so many lengths."""
    return [ours(17 + 2 * k)["tape"][0] for k in range(graphs)]


def programs() -> dict[str, list[Callable[[], Any]]]:
    """The programs that are run in turn, by name."""
    widths = {f"width {n}": [network(n, hooked=False)] for n in (16, 64, 256)}
    hooked = {f"width {n}, hooks": [network(n, hooked=True)] for n in (16, 64)}
    chains = {f"{n} leaves, hooks": [hooked_chain(n)] for n in (10, 50)}
    return widths | hooked | chains | {f"{n} graphs in turn": in_turn(n) for n in (1, 8, 16)}


def measure_program(forwards: list[Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Microseconds of a run on the tape, and captured, and their ratio."""
    import profuse as pf

    def timed(forward: Callable[[], Any], *, captured: bool) -> float:
        loss = forward()
        scope = pf.compiled_autograd() if captured else contextlib.nullcontext()

        def run() -> None:
            with scope:
                loss.backward()

        return timed_by_cpu(run) * 1e6

    pf.compiled_autograd.reset()
    for _ in range(WARM):
        for forward in forwards:
            timed(forward, captured=True)
            pf.compiled_autograd.wait()
    pairs = [
        (timed(forward, captured=False), timed(forward, captured=True)) for _ in range(rounds) for forward in forwards
    ]
    tape, captured = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    return {"tape": tape, "captured": captured, "captured / tape": ratio}


def worker_seconds() -> float:
    """CPU time of the processes that this one has started, and that have not ended."""
    ticks = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure_beside(run: Run) -> dict[str, float]:
    """Seconds of CPU time that three runs have taken beside the thread of the program."""
    import profuse as pf

    forward, backward = run
    found = {"threads": 0.0, "workers": 0.0}
    for _ in range(3):
        loss = forward()
        process, thread, workers = time.process_time(), time.thread_time(), worker_seconds()
        backward(loss)
        pf.compiled_autograd.wait()
        own = time.thread_time() - thread
        found["threads"] += time.process_time() - process - own
        found["workers"] += worker_seconds() - workers
    return found


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

    return {"torch": (forward, lambda loss: loss.backward()), "torch captured": (forward, captured)}


def measure(nodes: int, rounds: int, *, alone: bool, inductor: bool) -> dict[str, Any]:
    """Microseconds of each system, and of its first run."""
    import profuse as pf

    runs, settle = ours(nodes), pf.compiled_autograd.wait
    pf.compiled_autograd.reset()
    with pf.knobs.override(cache=False):
        beside = measure_beside(runs["captured"])
    pf.compiled_autograd.reset()
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
            taken[name].append(timed_by_cpu(lambda loss=loss, backward=backward: backward(loss)) * 1e6)
    pairs = zip(taken["tape"], taken["captured"], strict=True)
    return {
        "nodes": nodes,
        "microseconds": {name: statistics.median(found) for name, found in taken.items()},
        "first": first,
        "beside": beside,
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
        beside = ", ".join(f"{name} {seconds:.2f}" for name, seconds in row["beside"].items())
        print(f"  beside the program: {beside} s of CPU time")
    for name, forwards in programs().items():
        found = measure_program(forwards, options.rounds)
        rows.append({"program": name, **found})
        print(f"{name}: " + ", ".join(f"{key} {value:.3g}" for key, value in found.items()))
    write_results(options.json, rows=rows, processor=processor())


if __name__ == "__main__":
    main()
