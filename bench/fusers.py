"""The general fuser against the fuser of device groups, both on the host, on blocks of neural networks.

Each block runs with arguments of six shapes of one rank, each shape three times. Told are, for each fuser: groups and
kernels of the first plan, compiles and guard misses over all calls, the bytes that the kernels of the
first shape read and write at least (operands, results, and twice what lies between nests), and the CPU
time of a call of the first shape on one thread, as the least of many that take turns. torch, where it is
installed, computes the same without a compiler and, with ``--inductor``, by torch.compile, which needs g++. With
``--chips``, the same groups are compiled for these GPUs: how many kernels there are, as the sizes of a call choose
among several of one step, and what ptxas says of the registers of the largest and of the bytes that all spill.

    python bench/fusers.py [--only REGEX] [--rounds 20] [--inductor] [--chips sm_80 sm_90] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PROFUSE_THREADS"):
    os.environ[_name] = "1"  # the libraries read it when they are loaded
os.environ["PROFUSE_CACHE"] = "off"

import profuse as pf  # noqa: E402
from common import timed_by_cpu, write_results  # noqa: E402
from fuser_blocks import BLOCKS, FUSERS, Block, arguments, bytes_moved  # noqa: E402
from profuse.dialect.ir.size_algebra import parse_dim  # noqa: E402
from profuse.dialect.ir.symbolic import evaluate  # noqa: E402


def measured(block: Block, fuser: str, chips: Sequence[str] = ()) -> tuple[dict[str, Any], Callable[[], Any]]:
    """The figures of a block through a fuser but for the time, and a call of the first shape."""
    with pf.knobs.override(device_fusion=FUSERS[fuser]):
        f = pf.jit(block.fn, background=False)
        for shapes in block.shapes:
            args = arguments(shapes)
            for _ in range(3):
                f(*args)
        executors = f._executors()
        counters, first = f.state().counters, executors[0].result
        figures = {
            "graphs": len(executors),
            "groups": len(first.kernels) + len(first.failures),
            "kernels": counters["kernels_compiled"],
            "compiles": counters["compiles"],
            "misses": counters["guard_misses"],
            "bytes": bytes_moved(first),
        } | {chip: on_chip(first, chip) for chip in chips}
    args = arguments(block.shapes[0])
    return figures, lambda: f(*args)


def torch_rows(block: Block, inductor: bool) -> dict[str, tuple[dict[str, Any], Callable[[], Any]]]:
    """By way of computing with torch: its figures but for the time, and a call of the first shape. {} without torch."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    rows: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {}
    sets = [[torch.from_numpy(a) for a in arguments(shapes)] for shapes in block.shapes]
    with torch.no_grad():
        rows["torch"] = {}, lambda: _without_gradients(block.torch, sets[0])
        if inductor:
            from torch._dynamo.utils import counters

            torch._dynamo.reset()
            counters.clear()
            compiled = torch.compile(block.torch)
            for args in sets:
                for _ in range(3):
                    compiled(*args)
            figures = {"compiles": counters["stats"]["unique_graphs"]}
            rows["torch.compile"] = figures, lambda: _without_gradients(compiled, sets[0])
    return rows


def _without_gradients(fn: Callable[..., Any], args: Sequence[Any]) -> Any:
    import torch

    with torch.no_grad():
        return fn(*args)


def on_chip(result: Any, chip: str) -> dict[str, int]:
    """What the groups of a compile take on a GPU, by ptxas; raises LoweringError without it."""
    from profuse.lowering.gpu.gpu_stages import compile_gpu

    kernels = [compile_gpu(result.module.functions[name], chip) for name in result.kernels]
    usage = [one for kernel in kernels for one in kernel.usage.values()]
    return {
        "kernels": len(usage),
        "library": sum(kernel.library_calls for kernel in kernels),
        "registers": max(one.registers for one in usage),
        "spilled": sum(one.spilled for one in usage),
        "workspace": sum(
            evaluate(parse_dim(kernel.plan.abi.workspace), result.sizes.get(kernel.name, {})) for kernel in kernels
        ),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", help="part of a block's name, as a regular expression")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--inductor", action="store_true", help="measure torch.compile as well")
    parser.add_argument("--chips", nargs="*", default=[], help="GPUs to compile the groups for, as sm_90")
    parser.add_argument("--json", help="file for the figures")
    given = parser.parse_args()
    rows: dict[str, Any] = {}
    for name, block in BLOCKS.items():
        if not re.search(given.only, name):
            continue
        rows[name], calls = {}, dict[str, Callable[[], Any]]()
        for fuser in FUSERS:
            rows[name][fuser], calls[fuser] = measured(block, fuser, given.chips)
        for way, (figures, call) in torch_rows(block, given.inductor).items():
            rows[name][way], calls[way] = figures, call
        times: dict[str, list[float]] = {way: [] for way in calls}
        for _ in range(given.rounds):
            for way, call in calls.items():
                times[way].append(timed_by_cpu(call))
        for way, seconds in times.items():
            rows[name].setdefault(way, {})["ms"] = round(min(seconds) * 1e3, 3)
        print(name)
        for way, figures in rows[name].items():
            print(f"  {way:14}", ", ".join(f"{what} {value}" for what, value in figures.items()), flush=True)
    write_results(given.json, rows=rows)


if __name__ == "__main__":
    main()
