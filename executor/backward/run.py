"""Running: a backward run by what was captured for it, or captured now (R4.7, R4.11, R4.41)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from ...dialect.ir import gradient_mode
from ..settings.events import log
from ..settings.fork_lock import ForkLock
from ..tape.engine import Captures
from ..tape.node import TAPE
from .backward import Backward
from .capture import Capture, Captured
from .finish import finish
from .key import Cache, Made
from .record import Unrecorded
from .state import STATE, check_not_capturing
from .walk import LIFTS, UNRECORDED, Roots, Walk

_lock = ForkLock()
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
    walk = Walk(roots, captures)
    pattern = _pattern(walk.arrays)
    cache = _cache()
    made = cache.find(walk, pattern)
    if made is None:
        with _lock:
            made = cache.find(walk, pattern)  # another thread may have captured the like meanwhile
            if made is None:
                walk, made = _captured(cache, roots, captures)
                hits = 0
            else:
                hits = 1
    else:
        hits = 1
    PROCESS.counts.hits += hits
    return _run(made, walk, retain_graph)


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
    while True:
        try:
            return _captured_once(cache, roots, captures)
        except Unrecorded as error:
            node = error.node
            log("backward-opaque", node.name, str(error.__cause__))
            key = LIFTS[type(node)](node, Walk((), None))
            if key in UNRECORDED:
                raise InternalError(f"{node.name} is recorded, and cannot be") from error
            UNRECORDED.add(key)


def _captured_once(cache: Cache, roots: Roots, captures: Captures | None) -> tuple[Walk, Made]:
    walk = Walk(roots, captures, marked=True)
    pattern = _pattern(walk.arrays)
    entry, misses = cache.missed(walk, pattern)
    number = next(PROCESS.number)
    PROCESS.counts.captures += 1
    name = f"CompiledAutograd{number}"
    start = time.time()
    log("backward-start", name, "", graph=number, start=start)
    STATE.capturing = True
    try:
        captured = Capture(number, walk, pattern, entry.dynamic).run()
        made = Backward(name, captured, [miss.text for miss in misses], _signature(walk, captured))
        finish(made)
    finally:
        STATE.capturing = False
        log("backward-end", name, "", time.time() - start, graph=number)
    assert STATE.compiler is not None
    entry.made = captured, STATE.compiler(made)
    PROCESS.captured.append(made)
    return walk, entry.made


def _signature(walk: Walk, captured: Captured) -> str:
    """Dtypes and ranks of the inputs, by which stored code is told apart."""
    arrays = [walk.arrays[k] for k in captured.arrays]
    return " ".join(f"{x.dtype.name}[{x.ndim}]" for x in arrays)


@contextmanager
def _region() -> Iterator[None]:
    """A captured run is under way: what runs backwards in it is eager (R4.41)."""
    before, TAPE.captured = TAPE.captured, None
    mode = gradient_mode.set_gradient_mode(False)
    STATE.running += 1
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        STATE.running -= 1
        gradient_mode.set_gradient_mode(mode)
        TAPE.captured = before


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
