"""Making: what happens to a run that nothing serves: capture, finishing, compile (R4.12, R4.29)."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from ...dialect.errors import InternalError
from ..settings.events import log
from ..settings.fork_lock import ForkLock
from ..tape.node import TAPE
from ..tape.plans import told_by_value
from .beside import BESIDE
from .capture import Capture
from .capture_state import STATE, Compiler
from .captured_backward import AutogradState, Backward
from .compile import Compiled
from .finish import finish
from .gather import gather_of
from .key import Cache, CaptureResult
from .node_recording import Unrecorded
from .walk import UNRECORDED, Walk, pattern_of
from .walk_outline import Outline

LOCK = ForkLock()
_COMPILERS = 16  # with captures


class CaptureTotals:
    """The counts of captures since the process began, or since a reset.

    Attributes:
        caches: by compiler and setting of ``dynamic``, the one that was made last at the end.
        next: the number of the next capture (R4.12).
        captured: what was captured, oldest first, but for what caches have that were dropped.
        captures: how many runs were captured.
        hits: runs that an earlier capture has served.
        waiting: runs on the eager tape, as their graph was made beside them.
    """

    def __init__(self) -> None:
        self.caches: dict[tuple[Hashable, bool], Cache] = {}
        self.captured: tuple[Backward, ...] = ()
        self.next = self.captures = self.hits = self.waiting = 0

    def cache(self, key: tuple[Hashable, bool]) -> Cache:
        """The cache of a compiler; of too many, that which was made first is dropped."""
        cache = self.caches.get(key)
        if cache is not None:
            return cache
        cache = self.caches.setdefault(key, Cache(key[1]))
        if len(self.caches) > _COMPILERS:
            with LOCK:
                dropped = self.caches.pop(next(iter(self.caches)))
                self.captured = tuple(m for m in self.captured if m not in dropped.runs)
                log(
                    "backward-limit",
                    "compiled_autograd",
                    f"captures of one of more than {_COMPILERS} compilers are dropped; "
                    "pass the same function in each step",
                )
        return cache

    def state(self) -> AutogradState:
        """A snapshot."""
        captured = self.captured
        return AutogradState(self.captures, self.hits, self.waiting, captured)


class _Now:
    now = CaptureTotals()


PROCESS = _Now()


def forget() -> None:
    """Drop all that was captured; numbers start at 0 (R4.5). What is under way is lost."""
    PROCESS.now = CaptureTotals()
    UNRECORDED.clear()


def wait(timeout: float | None) -> bool:
    """Wait for captures and compiles beside the program; returns whether all have ended."""
    deadline = None if timeout is None else time.monotonic() + timeout

    def left() -> float | None:
        return None if deadline is None else max(deadline - time.monotonic(), 0.0)

    if not BESIDE.wait(left()):
        return False
    runs = [graph.runner for graph in PROCESS.now.captured]
    return all(run is None or run.function.wait(left()) for run in runs)


@contextmanager
def _capturing(process: CaptureTotals) -> Iterator[int]:
    """A capture is under way: its number, and one event for its start and its end (R4.12)."""
    number = process.next
    name, start = f"CompiledAutograd{number}", time.time()
    log("backward-start", name, "", graph=number, start=start)
    try:
        with _apart():
            yield number
    finally:
        log("backward-end", name, "", time.time() - start, graph=number)


@contextmanager
def _apart() -> Iterator[None]:
    """Backward runs of rules and of users' compilers are eager within this context."""
    before, TAPE.captured = TAPE.captured, None
    STATE.capturing = True
    try:
        yield
    finally:
        STATE.capturing = False
        TAPE.captured = before


def captured_here(
    process: CaptureTotals, cache: Cache, compiler: Compiler, walk: Walk, pattern: list[int]
) -> tuple[Walk, CaptureResult]:
    """Capture a run that waits for it; the caller holds the lock.

    A node that cannot be recorded is called as it is, in this run and in those that are like it, or
    its numbers stay constants: then the walk is another one.
    """
    while True:
        try:
            return walk, capture(process, cache, compiler, Outline(walk, pattern))
        except Unrecorded:
            walk = Walk(walk.roots, walk.captures)
            pattern = pattern_of(walk.arrays)
            # Nodes that are called as they are share a key: another one may have been first.
            if (variant := cache.find(walk, pattern)) is not None:
                return walk, variant


def capture(process: CaptureTotals, cache: Cache, compiler: Compiler, outline: Outline) -> CaptureResult:
    """Capture a run, finish the graph and have it compiled; the caller holds the lock.

    Raises Unrecorded for a node that cannot be recorded: it is called as it is from now on, or, if
    numbers among its operands were inputs, these are constants.
    """
    with _capturing(process) as number:
        entry, misses = cache.missed(outline)
        try:
            captured = Capture(number, outline, entry.dynamic, entry.changing).run()
        except Unrecorded as error:
            _note_unrecorded(error, outline)
            raise
        arrays = " ".join(f"{dtype.name}[{ndim}]" for dtype, ndim in outline.arrays)
        graph = Backward(captured, [miss.text for miss in misses], arrays)
        finish(graph)
    with _apart():
        run = compiler(graph)
    is_ready = run.is_ready if isinstance(run, Compiled) else _always
    variant = CaptureResult(captured, run, is_ready, entry)
    gather = gather_of(outline, captured, entry.dynamic, entry.changing)
    if isinstance(run, Compiled):
        run.prepare()
    process.next = number + 1
    process.captured = (*process.captured, graph)
    process.captures += 1
    cache.runs.append(graph)
    cache.keep(entry, variant, gather)
    return variant


def _always() -> bool:
    return True


def _note_unrecorded(error: Unrecorded, outline: Outline) -> None:
    node = error.node
    if error.has_numbers and told_by_value(node.plan.op):  # type: ignore[attr-defined]
        node.plan.unstamp()  # type: ignore[attr-defined]
        log("backward-number", node.name, f"numbers stay constants: {error.__cause__ or error}")
        return
    log("backward-opaque", node.name, str(error.__cause__ or error))
    step: Any = outline.steps[1 + outline.places[node]]
    if step[0] in UNRECORDED:
        raise InternalError(f"{node.name} is recorded, and cannot be") from error
    UNRECORDED.add(step[0])
