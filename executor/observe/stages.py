"""What a compile spent its time on, in the groups that people think in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..compile import CompileResult

T = TypeVar("T")

LOAD = "load"
_GROUPS = {
    "startup": "startup", "disk cache": "disk cache", "parse": "parse", "decode": "decode",
    "linalg": "lowering", "schedule": "lowering", "loops": "lowering", "llvm": "lowering",
    "optimise": "LLVM", "object": "LLVM", "check": "check", LOAD: LOAD,
}  # fmt: skip


def grouped(result: CompileResult) -> dict[str, float]:
    """Seconds for ``parse``, ``passes``, ``decode``, ``lowering``, ``LLVM``, ``check``, ``load``.

    The first compile of a process has ``startup`` in front: loading MLIR. One that the disk
    cache answered has ``disk cache`` and ``load`` alone. What is neither a stage of ours nor a pass
    that ran belongs to ``other``.
    """
    passes = set(result.trace)
    sums: dict[str, float] = {}
    for name, seconds in result.seconds.items():
        group = "passes" if name in passes else _GROUPS.get(name, "other")
        sums[group] = sums.get(group, 0.0) + seconds
    return sums


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


def timed_load(result: CompileResult, load: Callable[[], T]) -> T:
    """Run ``load`` and add its time to the compile it belongs to."""
    start = time.perf_counter()
    try:
        return load()
    finally:
        spent = time.perf_counter() - start
        result.seconds[LOAD] = result.seconds.get(LOAD, 0.0) + spent
