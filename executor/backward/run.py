"""Running: a backward run by what was captured for it, or captured now (R4.7, R4.11, R4.41)."""

from __future__ import annotations

import threading
import time
from itertools import count
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from ...dialect.ir import gradient_mode
from ..settings.events import log
from ..settings.fork_lock import ForkLock
from ..tape.engine import Captures, run
from ..tape.node import TAPE
from .backward import Backward
from .capture import Capture, Captured
from .finish import finish
from .key import Cache, Entry, Made
from .record import Unrecorded
from .state import STATE, check_not_capturing
from .walk import LIFTS, UNRECORDED, Roots, Walk

_lock = ForkLock()
_MOST = 64  # graphs of one cache: a number that changes in each step would make one each
_caches: dict[tuple[Any, bool], Cache] = {}


@dataclass(slots=True)
class Counts:
    """How many backward runs of this process were captured, and how many served from there."""

    captures: int = 0
    hits: int = 0


class _Process:
    counts = Counts()
    number = count()
    captured: list[Backward] = []


PROCESS = _Process()
_local = threading.local()


def forget() -> None:
    """Drop all that was captured; numbers start at 0 (R4.5)."""
    with _lock:
        _caches.clear()
        PROCESS.captured.clear()
        PROCESS.counts = Counts()
        PROCESS.number = count()
        UNRECORDED.clear()


def captured_runs() -> tuple[Backward, ...]:
    """What was captured in this process, oldest first."""
    with _lock:
        return tuple(PROCESS.captured)


def counts() -> Counts:
    """The counts of this process."""
    return PROCESS.counts


def backward(roots: Roots, captures: Captures | None, retain_graph: bool) -> list[Any]:
    """Run backwards what ``roots`` depend on; arguments and result are those of `engine.run`."""
    check_not_capturing()
    cache = _cache()
    if captures is None:
        for gather, known in cache.gathers:
            given = gather(roots, retain_graph)
            if given is not None:
                PROCESS.counts.hits += 1
                roots = ()
                with _region():
                    known[1](given[0], given[1], [], given[2], [])
                return []
    walk = Walk(roots, captures)
    pattern = _pattern(walk.arrays)
    made = cache.find(walk, pattern)
    if made is None:
        with _lock:
            made = cache.find(walk, pattern)  # another thread may have captured the like meanwhile
            hit = made is not None
            if made is None and cache.captures >= _MOST:
                return _eager(cache, roots, captures, retain_graph)
            if made is None:
                walk, made = _captured(cache, roots, captures)
    else:
        hit = True
    if hit:
        PROCESS.counts.hits += 1
        cache.learn(walk, made)
    return _run(made, walk, retain_graph)


def _eager(cache: Cache, roots: Roots, captures: Captures | None, retain_graph: bool) -> list[Any]:
    """Run by the engine what nobody captures, as each run so far has been another one."""
    if not cache.is_told:
        cache.is_told = True
        log(
            "backward-limit",
            "compiled_autograd",
            f"{_MOST} graphs are captured; others run eagerly",
        )
    before, TAPE.captured = TAPE.captured, None
    try:
        return run(roots, captures, retain_graph=retain_graph)
    finally:
        TAPE.captured = before


def _pattern(arrays: list[Any]) -> list[int]:
    """For each array, which of the different ones it is."""
    seen: dict[int, int] = {}
    number = seen.setdefault
    return [number(id(x), len(seen)) for x in arrays]


def _cache() -> Cache:
    key = STATE.compiler, STATE.dynamic
    found = _caches.get(key)
    if found is None:
        with _lock:
            found = _caches.setdefault(key, Cache(STATE.dynamic))
    return found


def _captured(cache: Cache, roots: Roots, captures: Captures | None) -> tuple[Walk, Made]:
    """Capture a run, finish the graph and have it compiled; the lock is held (R4.12, R4.29).

    A node that cannot be recorded is called as it is, in this run and in those that are like it.
    """
    number = next(PROCESS.number)
    PROCESS.counts.captures += 1
    name = f"CompiledAutograd{number}"
    start = time.time()
    log("backward-start", name, "", graph=number, start=start)
    STATE.capturing = True
    try:
        while True:
            try:
                walk, entry, made = _recorded(cache, roots, captures, number)
                break
            except Unrecorded as error:
                _note_unrecorded(error)
        finish(made)
    finally:
        STATE.capturing = False
        log("backward-end", name, "", time.time() - start, graph=number)
    assert STATE.compiler is not None
    found = entry.made = made.captured, STATE.compiler(made)
    PROCESS.captured.append(made)
    cache.captures += 1
    return walk, found


def _recorded(
    cache: Cache, roots: Roots, captures: Captures | None, number: int
) -> tuple[Walk, Entry, Backward]:
    """Walk over a run once more, and record it; raises Unrecorded for a node that cannot be."""
    walk = Walk(roots, captures, marked=True)
    pattern = _pattern(walk.arrays)
    entry, misses = cache.missed(walk, pattern)
    captured = Capture(number, walk, pattern, entry.dynamic).run()
    reasons = [miss.text for miss in misses]
    name = captured.module.main.name
    return walk, entry, Backward(name, captured, reasons, _signature(walk, captured))


def _note_unrecorded(error: Unrecorded) -> None:
    node = error.node
    log("backward-opaque", node.name, str(error.__cause__ or error))
    key = LIFTS[type(node)](node, Walk((), None))
    if key in UNRECORDED:
        raise InternalError(f"{node.name} is recorded, and cannot be") from error
    UNRECORDED.add(key)


def _signature(walk: Walk, captured: Captured) -> str:
    """Dtypes and ranks of the inputs, by which stored code is told apart."""
    arrays = [walk.arrays[k] for k in captured.arrays]
    return " ".join(f"{x.dtype.name}[{x.ndim}]" for x in arrays)


class _region:
    """A captured run is under way: what runs backwards in it is eager (R4.41)."""

    def __enter__(self) -> None:
        self.before, TAPE.captured = TAPE.captured, None
        self.mode = gradient_mode.set_gradient_mode(False)
        STATE.running += 1
        self.errors = np.errstate(all="ignore")
        self.errors.__enter__()

    def __exit__(self, *_: Any) -> None:
        self.errors.__exit__(None, None, None)
        STATE.running -= 1
        gradient_mode.set_gradient_mode(self.mode)
        TAPE.captured = self.before


def _run(made: Made, walk: Walk, retain_graph: bool) -> list[Any]:
    captured, compiled = made
    arrays, shapes = walk.arrays, walk.shapes
    inputs = [arrays[k] for k in captured.arrays]
    inputs += walk.leaves
    sizes = [shapes[k][axis] for k, axis in captured.sizes]
    scalars, hooks, packed = walk.scalars, walk.hooks, walk.packed
    opaque = walk.opaque
    if not retain_graph:  # R4.11
        kept = set(opaque) if opaque else ()
        for node in walk.nodes:
            if node not in kept and (walk.needed is None or node in walk.needed):
                node.release()
    walk.arrays = arrays = []
    with _region():
        found = iter(compiled(inputs, sizes, scalars, hooks, packed))
    if not retain_graph:
        for node in opaque:
            node.release()
    return [next(found) if there else None for there in captured.defined]


__all__ = ["Counts", "backward", "captured_runs", "counts", "forget"]
