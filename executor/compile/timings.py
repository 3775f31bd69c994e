"""What a compile spent its time on, in the groups that people think in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .request import CompileResult

T = TypeVar("T")

LOAD, LINK = "load", "link"
QUEUE, WORKER, TRANSFER, REQUEST = "queue", "worker", "transfer", "request"
DISK, STARTUP, GLUE, PIPELINE = "disk cache", "startup", "glue", "pipeline"
CHECK = "check"
# Group by stage, in the order in which they are told; "other" comes last.
_GROUPS = {
    REQUEST: "request", QUEUE: "queue", WORKER: "worker", DISK: "disk cache",
    TRANSFER: "transfer", STARTUP: "startup", "parse": "parse", PIPELINE: "passes",
    "decode": "decode", "linalg": "lowering", "schedule": "lowering", "loops": "lowering",
    "llvm": "lowering", GLUE: "lowering", "optimise": "LLVM", "object": "LLVM", CHECK: CHECK,
    LOAD: LOAD, LINK: LINK,
}  # fmt: skip
_ORDER = [*dict.fromkeys(_GROUPS.values()), "other"]


def grouped(result: CompileResult) -> dict[str, float]:
    """Seconds by group, in order; together they are what making the plan took.

    Every compile has ``parse``, ``passes``, ``decode``, ``lowering``, ``LLVM``, ``check`` (of new
    kernels), ``load`` (of code) and ``link`` (making the plan); on a call also ``request`` (writing
    the graph down), in a worker ``queue`` (waiting for one that is at work), ``worker`` (waiting
    until it has started) and ``transfer`` (to it and back). The first compile of a process has
    ``startup``: loading the compiler. One that the disk cache answered has ``disk cache``, ``load``
    and ``link`` alone, but for waiting. What is neither a stage of ours nor a pass that ran belongs
    to ``other``.
    """
    passes = set(result.trace)
    sums: dict[str, float] = {}
    for name, seconds in result.seconds.items():
        group = "passes" if name in passes else _GROUPS.get(name, "other")
        sums[group] = sums.get(group, 0.0) + seconds
    return dict(sorted(sums.items(), key=lambda item: _ORDER.index(item[0])))


def about(result: CompileResult) -> dict[str, Any]:
    """What the event of a compile says of its result."""
    return {
        "kernels": len(result.kernels),
        "found_in": result.found_in,
        "stages": grouped(result),
    }


def pass_seconds(result: CompileResult) -> dict[str, float]:
    """Seconds by pass, all its runs together, the slowest first."""
    passes = set(result.trace)
    found = {name: s for name, s in result.seconds.items() if name in passes}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def sentence(result: CompileResult) -> str:
    """``parse 0.4 ms, passes 21.0 ms (form-fusions 8.1), …``; "" where nothing was timed."""
    parts = []
    for group, seconds in grouped(result).items():
        text = f"{group} {seconds * 1e3:.1f} ms"
        if group == "passes":
            slowest, most = next(iter(pass_seconds(result).items()))
            text += f" ({slowest} {most * 1e3:.1f})"
        parts.append(text)
    return ", ".join(parts)


def add(result: CompileResult, stage: str, seconds: float) -> None:
    """Note time that a compile spent on something."""
    result.seconds[stage] = result.seconds.get(stage, 0.0) + seconds


@contextmanager
def rest_of(stage: str, seconds: dict[str, float]) -> Iterator[None]:
    """Around stages that note their own time in ``seconds``: the rest of it is this stage's."""
    start, noted = time.perf_counter(), sum(seconds.values())
    yield
    spent = time.perf_counter() - start - (sum(seconds.values()) - noted)
    seconds[stage] = seconds.get(stage, 0.0) + spent


def timed_load(result: CompileResult, load: Callable[[], T]) -> T:
    """Run ``load`` and add its time to the compile it belongs to."""
    start = time.perf_counter()
    try:
        return load()
    finally:
        add(result, LOAD, time.perf_counter() - start)
