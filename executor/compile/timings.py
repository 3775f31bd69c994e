"""The time that a compile took, by groups of stages that people can interpret."""

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
_NOTICED = 1e-3
"""Seconds: an import that takes less found its modules loaded already."""
# Stage -> group, in the order of reports; "other" comes last.
_GROUPS = {
    REQUEST: "request",
    QUEUE: "queue",
    WORKER: "worker",
    DISK: "disk cache",
    TRANSFER: "transfer",
    STARTUP: "startup",
    "parse": "parse",
    PIPELINE: "passes",
    "decode": "decode",
    "linalg": "lowering",
    "schedule": "lowering",
    "loops": "lowering",
    "llvm": "lowering",
    GLUE: "lowering",
    "optimise": "LLVM",
    "object": "LLVM",
    CHECK: CHECK,
    LOAD: LOAD,
    LINK: LINK,
}
_ORDER = [*dict.fromkeys(_GROUPS.values()), "other"]


def grouped(result: CompileResult) -> dict[str, float]:
    """Seconds by group, in the order of reports; the sum is the time that making the plan took.

    Every compile has ``parse``, ``passes``, ``decode``, ``lowering``, ``LLVM``, ``check`` (of new
    kernels), ``load`` (of code) and ``link`` (generating the plan). A compile during a call has
    ``request`` (printing the graph). A compile in a worker has ``queue`` (waiting for a busy
    worker), ``worker`` (waiting for a worker's start) and ``transfer`` (sending request and
    result). The first compile of a process has ``startup`` (loading the compiler). A compile
    that the disk cache answered has ``disk cache``, ``load`` and ``link``, and the groups of
    waiting. Times under any other name belong to ``other``.
    """
    passes = set(result.trace)
    sums: dict[str, float] = {}
    for name, seconds in result.seconds.items():
        group = "passes" if name in passes else _GROUPS.get(name, "other")
        sums[group] = sums.get(group, 0.0) + seconds
    return dict(sorted(sums.items(), key=lambda item: _ORDER.index(item[0])))


def about(result: CompileResult) -> dict[str, Any]:
    """Fields of a compile's event that describe its result."""
    return {"kernels": len(result.kernels), "found_in": result.found_in, "stages": grouped(result)}


def pass_seconds(result: CompileResult) -> dict[str, float]:
    """Seconds per pass, summed over all its runs, slowest first."""
    passes = set(result.trace)
    seconds = {name: s for name, s in result.seconds.items() if name in passes}
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def sentence(result: CompileResult) -> str:
    """Text such as ``parse 0.4 ms, passes 21.0 ms (form-fusions 8.1), …``; "" without timings."""
    parts = []
    for group, seconds in grouped(result).items():
        text = f"{group} {seconds * 1e3:.1f} ms"
        if group == "passes":
            slowest, most = next(iter(pass_seconds(result).items()))
            text += f" ({slowest} {most * 1e3:.1f})"
        parts.append(text)
    return ", ".join(parts)


def add(result: CompileResult, stage: str, seconds: float) -> None:
    """Add time to a stage of a compile."""
    result.seconds[stage] = result.seconds.get(stage, 0.0) + seconds


@contextmanager
def rest_of(stage: str, seconds: dict[str, float]) -> Iterator[None]:
    """Add the time of the ``with`` block to a stage, less the time that others add meanwhile.

    Stages inside the block add their own time to ``seconds``; only the rest counts for this stage.
    """
    start, noted = time.perf_counter(), sum(seconds.values())
    yield
    spent = time.perf_counter() - start - (sum(seconds.values()) - noted)
    seconds[stage] = seconds.get(stage, 0.0) + spent


@contextmanager
def startup(seconds: dict[str, float]) -> Iterator[None]:
    """Add the time of the ``with`` block, which loads the compiler, to the stage "startup".

    Only the first compile of a process has the stage: modules that are loaded already take no time.
    """
    start = time.perf_counter()
    yield
    if (spent := time.perf_counter() - start) > _NOTICED:
        seconds[STARTUP] = seconds.get(STARTUP, 0.0) + spent


def timed_load(result: CompileResult, load: Callable[[], T]) -> T:
    """Run ``load`` and add its time to the stage "load" of the compile."""
    start = time.perf_counter()
    try:
        return load()
    finally:
        add(result, LOAD, time.perf_counter() - start)
