"""Measuring: cases in an order, systems in turn, rows in a file that a later run goes on with."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import environment, processor, rows_so_far
from suite.kernel import KERNELS, SIZES, Case, Size, leaves

from . import libraries, roofline, systems
from .worker import Worker, WorkerError

SLICE = 0.002  # seconds of calls that one system makes before it is the next one's turn
PAUSE = 0.02  # seconds before each turn of several threads: those of other systems spin until then
WARM_LIMIT = 0.01  # seconds of a call from which on it is not made once more to warm the caches


@dataclass
class Plan:
    """The plan of what is to be measured.

    Attributes:
        group: of the kernels.
        only: a regular expression that is looked for in ``kernel dtype``.
        sizes, systems, threads: see `options`.
        dtypes: "" = all that the kernels name, else these alone.
        rounds: of calls of each system.
        budget: seconds after which no further row is begun.
        again: rows of a file are measured anew.
        path: of the JSON file.
    """

    group: str
    only: str
    sizes: list[Size]
    systems: list[str]
    threads: list[int]
    dtypes: list[str]
    rounds: int
    budget: float
    again: bool
    path: Path | None
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def size_of(text: str) -> Size:
    """A size by its name, or ROWSxCOLUMNS."""
    if text in SIZES:
        return SIZES[text]
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if found is None:
        raise ValueError(f"{text} is no size: {', '.join(SIZES)} or ROWSxCOLUMNS")
    return Size(text, int(found[1]), int(found[2]))


def thread_count(text: str) -> int:
    """A number of threads; ``all`` = as many as there are CPUs for this process."""
    have = len(os.sched_getaffinity(0))
    count = have if text == "all" else int(text)
    if not 1 <= count <= have:
        raise ValueError(f"{text} threads: this process has {have} CPUs")
    return count


def cases(plan: Plan) -> Iterator[Case]:
    """By size, then kernel, then dtype: a run that is cut short has seen every kernel."""
    for size in plan.sizes:
        for kernel in KERNELS.values():
            for dtype in kernel.dtypes:
                wanted = not plan.dtypes or dtype in plan.dtypes
                if kernel.group == plan.group and wanted and re.search(plan.only, f"{kernel.name} {dtype}"):
                    yield Case(kernel, dtype, size)


def key_of(case: Case, threads: int) -> str:
    """The key of a row in the file."""
    return f"{case.kernel.name}|{case.dtype}|{case.size.name}|{threads}"


def load(plan: Plan) -> None:
    """Take the rows that a file has; raises ValueError if they are of something else."""
    plan.rows.update(rows_so_far(plan.path, plan.again))


def store(plan: Plan) -> None:
    """Write all rows, in one step."""
    if plan.path is None:
        return
    made = plan.path.with_suffix(".part")
    made.write_text(text_of(environment(), plan.missing, plan.rows), "utf-8")
    made.replace(plan.path)


def text_of(where: dict[str, str], missing: dict[str, str], rows: dict[str, dict]) -> str:
    """A file of results, a line for each row; five digits are more than times have."""
    lines = [f"{json.dumps(key)}: {json.dumps(_rounded(row))}" for key, row in rows.items()]
    head = f'"environment": {json.dumps(where, indent=1)},\n"missing": {json.dumps(missing)}'
    return f'{{{head},\n"rows": {{\n' + ",\n".join(lines) + "\n}}\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def measure(plan: Plan, tell: Callable[[dict[str, Any]], None]) -> int:
    """Measure what the file lacks; ``tell`` gets each row. Returns how many rows were left out."""
    have = sorted(os.sched_getaffinity(0))
    end, left = time.monotonic() + plan.budget, 0
    usable = [s for s in plan.systems if s not in plan.missing]
    try:
        for threads in plan.threads:
            cpus = have[:threads]
            machine = roofline.Machine(cpus)
            env = os.environ | systems.environment(cpus)
            workers = {s: Worker(s, env) for s in usable}
            try:
                for case in cases(plan):
                    key = key_of(case, threads)
                    known = plan.rows.get(key)
                    if known and not plan.again and not set(usable) - set(known["tried"]):
                        continue
                    if time.monotonic() > end:
                        left += 1
                        continue
                    plan.rows[key] = row = _row(case, workers, machine, plan.rounds)
                    store(plan)
                    tell(row)
            finally:
                for worker in workers.values():
                    worker.close()
    finally:
        os.sched_setaffinity(0, have)
    return left


def _row(case: Case, workers: dict[str, Worker], machine: roofline.Machine, rounds: int) -> dict[str, Any]:
    found, flops = roofline.counted(case.kernel.plain, libraries.numpy_library(), case.exact_args())
    exact = tuple(np.asarray(leaf) for leaf in leaves(found))
    del found
    row: dict[str, Any] = {
        "kernel": case.kernel.name,
        "dtype": case.dtype,
        "size": case.size.name,
        "shapes": [list(np.shape(a)) for a in case.args()],
        "threads": machine.threads,
        "tried": list(workers),
        "skipped": {},
        "compile_seconds": {},
        "steady": {},
    }
    ready: dict[str, tuple[Worker, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "exact.npz")
        np.savez(path, *exact)
        for name, worker in workers.items():
            try:
                answer = worker.ask(
                    "prepare", kernel=case.kernel.name, dtype=case.dtype, size=list(case.size), exact=str(path)
                )
            except WorkerError as error:
                row["skipped"][name] = str(error)
                continue
            ready[name] = worker, answer["usual"]
            row["compile_seconds"][name] = answer["compile_seconds"]
            row["steady"] |= {name: answer["steady"]} if answer["steady"] else {}
    pause = PAUSE if machine.threads > 1 else 0.0
    times = _in_turn(ready, rounds, pause, row["skipped"])
    for name in times:
        ready[name][0].ask("drop")
    row["seconds"] = {name: quartiles(values) for name, values in times.items()}
    if "ours" in times:
        mine = np.array(times["ours"])
        row["ratios"] = {name: quartiles(np.array(values) / mine) for name, values in times.items() if name != "ours"}
    # Results in the dtype of the case take the bytes that are moved.
    narrow = leaves(_narrowed(case, exact))
    row["roof"] = machine.roof(case.moved(narrow), flops, case.dtype)
    return row


def _narrowed(case: Case, exact: tuple) -> tuple:
    """Arrays of the sizes that the results have: exact floats are wider than the case's."""
    kept = [a.dtype for a in case.args() if a.dtype.kind not in "biu"]
    narrow = kept[0] if kept else np.dtype(np.float32)
    return tuple(np.empty(a.shape, a.dtype if a.dtype.kind in "biu" else narrow) for a in exact)


def _in_turn(
    ready: dict[str, tuple[Worker, float]], rounds: int, pause: float, skipped: dict[str, str]
) -> dict[str, list[float]]:
    """Seconds per call of each system in each round; who begins changes from round to round."""
    times: dict[str, list[float]] = {name: [] for name in ready}
    for number in range(rounds):
        order = list(times)
        first = number % max(len(order), 1)
        for name in order[first:] + order[:first]:
            worker, usual = ready[name]
            calls = max(1, min(1000, int(SLICE / max(usual, 1e-7))))
            warm = calls if pause else int(usual < WARM_LIMIT)
            time.sleep(pause)
            try:
                answer = worker.ask("time", calls=calls, warm=warm)
            except WorkerError as error:
                skipped[name] = str(error)
                del times[name]
                continue
            times[name].append(answer["seconds"])
    return times


def quartiles(values: Sequence[float] | np.ndarray) -> list[float]:
    """First quartile, median, third quartile."""
    return np.percentile(values, [25, 50, 75]).tolist()


def headline(plan: Plan) -> str:
    """A line on the measured functions and the machine."""
    sizes = ", ".join(f"{s.name} {s.rows}x{s.columns}" for s in plan.sizes)
    threads = ", ".join(map(str, plan.threads))
    return f"{processor()}; sizes {sizes}; threads {threads}; {plan.rounds} rounds"
