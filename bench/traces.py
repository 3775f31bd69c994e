"""The processor's time of first calls, in which a function is traced and its graph is run op by op.

Functions are those of `bench/suite`, and the programs of `bench/programs` at the small sizes at which
they are tested. A process calls each of them once, after one of another kind that has loaded the
modules. Told is the least time over processes; with another checkout, which the folder has as
``profuse``, processes take turns, and the worst ratios come first. The benchmarks are this checkout's
both times.

    python bench/traces.py [--only REGEX] [--every 1] [--rounds 7] [--against FOLDER] [--json out.json]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import one_core  # noqa: F401  (first: before threads are made)

import numpy as np  # isort: skip
from common import processor, write_results  # isort: skip
from harness import libraries  # isort: skip
from programs import PROGRAMS  # isort: skip
from suite import KERNELS, TINY, Case  # isort: skip

FIRST = "rmsnorm"  # what loads the modules


def of_suite(name: str) -> Callable[[], object]:
    """A first call of a function of the suite."""
    import profuse as pf

    kernel = KERNELS[name]
    function, lib = kernel.fn, libraries.profuse_library()
    arguments = Case(kernel, kernel.dtypes[0], TINY).args()
    traced = pf.jit(lambda *args: function(lib, *args))
    return lambda: traced(*arguments)


def of_programs(name: str) -> Callable[[], object]:
    """A first call of a program."""
    import profuse as pf

    program = PROGRAMS[name]
    return program.prepare(pf.jit, program.small, np.random.default_rng(0))[0]


def chosen(pattern: str, every: int) -> dict[str, Callable[[], object]]:
    """First calls by name; one of so many."""
    kernels = [name for name, kernel in KERNELS.items() if kernel.group == "kernels" and name != FIRST]
    calls: dict[str, tuple[Callable[[str], Callable[[], object]], str]] = {
        **{f"suite: {name}": (of_suite, name) for name in kernels},
        **{f"programs: {name}": (of_programs, name) for name in PROGRAMS},
    }
    names = [name for name in calls if re.search(pattern, name)]
    return {name: calls[name][0](calls[name][1]) for name in names[::every]}


def child(pattern: str, every: int) -> None:
    """Print the milliseconds of each first call in this process."""
    warnings.simplefilter("ignore")
    of_suite(FIRST)()
    gc.disable()  # it would stop some calls for what others have made
    times = {}
    with np.errstate(all="ignore"):
        for name, call in chosen(pattern, every).items():
            begin = time.thread_time()
            call()
            times[name] = 1e3 * (time.thread_time() - begin)
    print(json.dumps(times))


def run(options: argparse.Namespace, folder: str | None) -> dict[str, float]:
    """Milliseconds by name, of a process of its own."""
    environment = dict(os.environ) | {"PROFUSE_CACHE": "off"}
    if folder is not None:
        environment["PYTHONPATH"] = folder
    command = [sys.executable, __file__, "--child", "--only", options.only, "--every", str(options.every)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--every", type=int, default=1, help="one of so many functions")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--against", help="folder that holds another checkout as `profuse`")
    parser.add_argument("--json")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.only, options.every)
        return
    folders = [None] if options.against is None else [None, options.against]
    rounds = [[run(options, folder) for folder in folders] for _ in range(options.rounds)]
    rows: list[dict[str, Any]] = []
    for name in rounds[0][0]:
        ours, *before = (min(times[name] for times in column) for column in zip(*rounds, strict=True))
        rows.append({"function": name, "ms": ours} | ({"ms before": before[0]} if before else {}))
    print(f"{processor()}, milliseconds of the processor, least of {options.rounds} processes")
    if options.against is None:
        for row in sorted(rows, key=lambda row: -row["ms"]):
            print(f"{row['function']:40} {row['ms']:8.2f}")
    else:
        for row in rows:
            row["ratio"] = row["ms"] / row["ms before"]
        for row in sorted(rows, key=lambda row: -row["ratio"]):
            print(f"{row['function']:40} {row['ms']:8.2f}  before {row['ms before']:8.2f}  {row['ratio']:5.2f}")
        print(f"ratio: {statistics.median(row['ratio'] for row in rows):.2f} in the median of {len(rows)}")
    print(f"median: {statistics.median(row['ms'] for row in rows):.2f} ms of {len(rows)}")
    write_results(options.json, rows=rows)


if __name__ == "__main__":
    main()
