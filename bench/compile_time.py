"""What compiling a kernel takes, by stage: the graphs of `cases.py`, one kernel after another.

Times are of the processor, not of the clock, so that what else the machine does matters little. A
process compiles every graph once before it is measured. With another checkout of the package two
such processes take turns, a round each, and the ratio of each pair of rounds is told. Nothing is
checked and nothing is found on disk.

    python bench/compile_time.py [--rounds 10] [--against FOLDER] [--json out.json]

FOLDER holds the other checkout under the name ``profuse``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["PROFUSE_CACHE"] = os.environ["PROFUSE_BACKGROUND"] = "off"

import numpy as np
from cases import cases
from common import write_results

SIZE = 64  # of the arguments: compile times do not depend on it
STRATEGIES = {"static": [("static", 1)], "dynamic": [("dynamic", 1)]}
TOTAL = "total"


def requests() -> dict[str, Any]:
    """By name, what each graph asks of the compiler."""
    import profuse as pf
    from profuse.executor.compile import request as requests_

    found: dict[str, Any] = {}
    met: list[Any] = []
    compile_graph = requests_.compile_graph

    def noted(request: Any, *args: Any) -> Any:
        met.append(request)
        return compile_graph(request, *args)

    requests_.compile_graph = noted
    for name, (fn, args) in cases(SIZE).items():
        for behavior, strategy in STRATEGIES.items():
            f = pf.jit(partial(fn, np), strategy=strategy)
            met.clear()
            for _ in range(2):
                f(*args)
            found[f"{name}, {behavior}"] = replace(met[-1], check="off")
    requests_.compile_graph = compile_graph
    return found


def serve() -> None:
    """For each line that is read: compile all graphs, write milliseconds per graph by stage."""
    # Stages are timed by this name; the compiler runs in this thread alone.
    time.perf_counter = time.process_time
    from profuse.executor.compile.request import compile_graph
    from profuse.executor.compile.timings import grouped

    asked = requests()
    for _ in sys.stdin:
        sums: Counter[str] = Counter()
        for request in asked.values():
            start = time.process_time()
            result = compile_graph(request)
            sums[TOTAL] += time.process_time() - start
            sums.update(grouped(result))
        found = {stage: seconds * 1e3 / len(asked) for stage, seconds in sums.items()}
        print(json.dumps(found), flush=True)


class Compiler:
    """A process that compiles; ``folder``: of the checkout to measure, None = this one."""

    def __init__(self, folder: str | None) -> None:
        environment = dict(os.environ)
        if folder is not None:
            environment["PYTHONPATH"] = folder
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def measure(self) -> dict[str, float]:
        """Milliseconds per graph, by stage and in total, of one more round."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def spread(values: list[float]) -> dict[str, Any]:
    """Median and quartiles."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": round(median, 3), "quartiles": [round(low, 3), round(high, 3)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--against", help="folder that holds another checkout as `profuse`")
    parser.add_argument("--json")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    folders = [None] if options.against is None else [None, options.against]
    compilers = [Compiler(folder) for folder in folders]
    for compiler in compilers:
        compiler.measure()
    rounds = [[c.measure() for c in compilers] for _ in range(options.rounds)]
    for compiler in compilers:
        compiler.close()
    found: dict[str, dict[str, Any]] = {}
    for stage in rounds[0][0]:
        row: dict[str, Any] = {"ms": spread([ours[stage] for ours, *_ in rounds])}
        text = f"{stage:10} {row['ms']['median']:8.2f} ms"
        if options.against is not None:
            row["ms before"] = spread([theirs[stage] for _, theirs in rounds])
            row["ratio"] = spread([ours[stage] / theirs[stage] for ours, theirs in rounds])
            text += f"   before {row['ms before']['median']:8.2f} ms   ratio {row['ratio']}"
        found[stage] = row
        print(text)
    write_results(options.json, unit="ms of the processor per graph", stages=found)


if __name__ == "__main__":
    main()
