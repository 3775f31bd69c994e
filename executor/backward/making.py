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
from .backward import AutogradState, Backward
from .beside import BESIDE
from .capture import Capture
from .compile import Compiled
from .finish import finish
from .gather import gather_of
from .key import Cache, Made
from .outline import Outline
from .record import Unrecorded
from .state import STATE, Compiler
from .walk import UNRECORDED, Walk, pattern_of

LOCK = ForkLock()
_COMPILERS = 16  # with captures


class Process:
    """What was captured since the process began, or since a reset.

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
        found = self.caches.get(key)
        if found is not None:
            return found
        found = self.caches.setdefault(key, Cache(key[1]))
        if len(self.caches) > _COMPILERS:
            with LOCK:
                dropped = self.caches.pop(next(iter(self.caches)))
                self.captured = tuple(m for m in self.captured if m not in dropped.runs)
                log("backward-limit", "compiled_autograd",
                    f"captures of one of more than {_COMPILERS} compilers are dropped; "
                    "pass the same function in each step")  # fmt: skip
        return found

    def state(self) -> AutogradState:
        """A snapshot."""
        captured = self.captured
        return AutogradState(self.captures, self.hits, self.waiting, captured)


class _Now:
    now = Process()


PROCESS = _Now()


def forget() -> None:
    """Drop all that was captured; numbers start at 0 (R4.5). What is under way is lost."""
    PROCESS.now = Process()
    UNRECORDED.clear()


def wait(timeout: float | None) -> bool:
    """Wait for captures and compiles beside the program; returns whether all have ended."""
    deadline = None if timeout is None else time.monotonic() + timeout

    def left() -> float | None:
        return None if deadline is None else max(deadline - time.monotonic(), 0.0)

    if not BESIDE.wait(left()):
        return False
    runs = [made.runner for made in PROCESS.now.captured]
    return all(run is None or run.function.wait(left()) for run in runs)


@contextmanager
def _capturing(process: Process) -> Iterator[int]:
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
    """What runs backwards here, in rules and in compilers of users, is eager."""
    before, TAPE.captured = TAPE.captured, None
    STATE.capturing = True
    try:
        yield
    finally:
        STATE.capturing = False
        TAPE.captured = before


def captured_here(
    process: Process, cache: Cache, compiler: Compiler, walk: Walk, pattern: list[int]
) -> tuple[Walk, Made]:
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
            if (found := cache.find(walk, pattern)) is not None:
                return walk, found


def capture(process: Process, cache: Cache, compiler: Compiler, outline: Outline) -> Made:
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
        made = Backward(captured, [miss.text for miss in misses], arrays)
        finish(made)
    with _apart():
        run = compiler(made)
    is_ready = run.is_ready if isinstance(run, Compiled) else _always
    found = Made(captured, run, is_ready, entry)
    gather = gather_of(outline, captured, entry.dynamic, entry.changing)
    if isinstance(run, Compiled):
        run.prepare()
    process.next = number + 1
    process.captured = (*process.captured, made)
    process.captures += 1
    cache.runs.append(made)
    cache.keep(entry, found, gather)
    return found


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


__all__ = ["LOCK", "PROCESS", "Process", "capture", "captured_here", "forget", "wait"]
