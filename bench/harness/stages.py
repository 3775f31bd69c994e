"""The time that compiling a kernel takes, by stage: the graphs of `suite.SELECTION`, one after another.

Times are of the processor, not of the clock, so that what else the machine does matters little. A
process compiles every graph once before it is measured. With another checkout of the package two
such processes take turns, a round each, and the ratio of each pair of rounds is told. Kernels run
only where their checks are measured, too, and nothing is found on disk.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["PROFUSE_CACHE"] = os.environ["PROFUSE_BACKGROUND"] = "off"

import numpy as np
from common import write_results
from suite import selection

SIZE = 64  # of the arguments: compile times do not depend on it
STRATEGIES = {"static": [("static", 1)], "dynamic": [("dynamic", 1)]}
TOTAL = "total"


def requests(*, checked: bool) -> dict[str, Any]:
    """By name, what each graph asks of the compiler; its kernels run only if they are checked."""
    import profuse as pf
    from profuse.executor.compile import compiler

    found: dict[str, Any] = {}
    met: list[Any] = []
    compile_graph = compiler.compile_graph

    def noted(request: Any, *args: Any) -> Any:
        met.append(request)
        return compile_graph(request, *args)

    compiler.compile_graph = noted
    for name, (fn, args) in selection(SIZE).items():
        for behavior, strategy in STRATEGIES.items():
            f = pf.jit(partial(fn, np), strategy=strategy)
            met.clear()
            for _ in range(2):
                f(*args)
            # Another checkout may know nothing of measuring kernels.
            off: dict[str, Any] = {"check": "off"}
            if hasattr(met[-1], "measure"):
                off["measure"] = False
            found[f"{name}, {behavior}"] = met[-1] if checked else replace(met[-1], **off)
    compiler.compile_graph = compile_graph
    return found


def serve() -> None:
    """For each line that is read: compile all graphs, write milliseconds per graph by stage."""
    # Stages are timed by this name; the compiler runs in this thread alone.
    time.perf_counter = time.process_time
    from profuse.executor.compile.compiler import compile_graph
    from profuse.executor.compile.timings import grouped

    asked = requests(checked=bool(os.environ.get("BENCH_CHECKED")))
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

    def __init__(self, folder: str | None, *, checked: bool) -> None:
        environment = dict(os.environ) | {"BENCH_CHECKED": "yes" if checked else ""}
        if folder is not None:
            environment["PYTHONPATH"] = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.stages"],
            env=environment,
            text=True,
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def measure(self) -> dict[str, float]:
        """Milliseconds per graph, by stage and in total, of one more round."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("a process that compiles has ended; its message is above")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def spread(values: list[float]) -> dict[str, Any]:
    """Median and quartiles."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": round(median, 3), "quartiles": [round(low, 3), round(high, 3)]}


def compare(count: int, against: str | None, path: str | None, *, checked: bool) -> None:
    """Print the stages' medians over some rounds, beside those of another checkout."""
    folders = [None] if against is None else [None, against]
    compilers = [Compiler(folder, checked=checked) for folder in folders]
    for compiler in compilers:
        compiler.measure()
    rounds = [[c.measure() for c in compilers] for _ in range(count)]
    for compiler in compilers:
        compiler.close()
    found: dict[str, dict[str, Any]] = {}
    for stage in rounds[0][0]:
        row: dict[str, Any] = {"ms": spread([ours[stage] for ours, *_ in rounds])}
        text = f"{stage:10} {row['ms']['median']:8.2f} ms"
        if against is not None:
            row["ms before"] = spread([theirs[stage] for _, theirs in rounds])
            row["ratio"] = spread([ours[stage] / theirs[stage] for ours, theirs in rounds])
            text += f"   before {row['ms before']['median']:8.2f} ms   ratio {row['ratio']}"
        found[stage] = row
        print(text)
    write_results(path, unit="ms of the processor per graph", stages=found)


if __name__ == "__main__":
    serve()
