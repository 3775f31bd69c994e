"""What compiling a kernel takes, by stage: the graphs of `cases.py`, one kernel after another.

Each run is a process of its own, which compiles every graph once before it measures; the figure of
a stage is the least of its rounds, averaged over the graphs. With another checkout of the package
the runs of both take turns, and the ratio of each pair is told, so that a machine that is busy at
times is so for both. Nothing is checked and nothing is found on disk.

    python bench/compile_time.py [--runs 5] [--rounds 5] [--against FOLDER] [--json out.json]

FOLDER holds the other checkout under the name ``profuse``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["PROFUSE_CACHE"] = os.environ["PROFUSE_BACKGROUND"] = "off"

import numpy as np
from cases import cases
from common import timed, write_results

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


def measure(rounds: int) -> dict[str, float]:
    """Milliseconds per graph, by stage and in total."""
    from profuse.executor.compile.request import compile_graph
    from profuse.executor.compile.timings import grouped

    sums: Counter[str] = Counter()
    asked = requests()
    for request in asked.values():
        least: dict[str, float] = {}
        for _ in range(rounds):
            results: list[Any] = []
            seconds = timed(lambda to=results, what=request: to.append(compile_graph(what)))
            for stage, spent in {**grouped(results[0]), TOTAL: seconds}.items():
                least[stage] = min(spent, least.get(stage, spent))
        sums.update(least)
    return {stage: spent * 1e3 / len(asked) for stage, spent in sums.items()}


def in_process(rounds: int, folder: str | None) -> dict[str, float]:
    """`measure` in a new process; ``folder``: of the checkout to measure, None = this one."""
    environment = dict(os.environ)
    if folder is not None:
        environment["PYTHONPATH"] = folder
    command = [sys.executable, __file__, "--rounds", str(rounds), "--one"]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    found = {"median": statistics.median(values), "least": min(values), "most": max(values)}
    return {name: round(value, 3) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", help="folder that holds another checkout as `profuse`")
    parser.add_argument("--json")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.rounds)))
        return
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for _ in range(options.runs):
        if options.against is not None:
            theirs.append(in_process(options.rounds, options.against))
        ours.append(in_process(options.rounds, None))
    found: dict[str, dict[str, Any]] = {}
    for stage in ours[0]:
        row: dict[str, Any] = {"ms": spread([run[stage] for run in ours])}
        text = f"{stage:10} {row['ms']['median']:8.2f} ms"
        if theirs:
            pairs = zip(ours, theirs, strict=True)
            row["ms before"] = spread([run[stage] for run in theirs])
            row["ratio"] = spread([one[stage] / two[stage] for one, two in pairs])
            text += f"   before {row['ms before']['median']:8.2f} ms   ratio {row['ratio']}"
        found[stage] = row
        print(text)
    write_results(options.json, unit="ms per graph", stages=found)


if __name__ == "__main__":
    main()
