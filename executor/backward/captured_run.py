"""Running: a backward run by what was captured for it, or captured now (R4.7, R4.11, R4.41).

With background compiles, a run that has to be captured runs on the eager tape, and is captured
beside the program, from a snapshot of what it has had, or from its outline. So do those that are
like it, until their graph is ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ...dialect.ir import gradient_mode
from ..settings.events import log
from ..settings.knobs import knobs
from ..settings.strict import is_strict
from ..tape.engine import ERRORS, IGNORED, Captures, run
from ..tape.node import TAPE
from .beside import BESIDE
from .capture_state import STATE
from .compile import Compiled, compiled
from .key import Awaited, Cache, CaptureResult
from .making import LOCK, PROCESS, CaptureTotals, capture, captured_here
from .node_recording import Unrecorded
from .snapshot import Roots, RunSnapshot, check_hooks, reached, taken
from .walk import Walk, pattern_of
from .walk_outline import Outline, outlined
from .watch import Saved, SavedWatch, saved_of

_MOST = 64  # graphs of one cache: an exponent that changes in each step would make one each
_AWAITED = 8  # captures of one cache that are under way, or have failed


def backward(roots: Roots, captures: Captures | None, retain_graph: bool) -> list[Any]:
    """Run backwards what ``roots`` depend on; arguments and result are those of `engine.run`."""
    process = PROCESS.now
    cache = process.cache((STATE.key, STATE.dynamic))
    if captures is None:
        for entry in cache.expected():
            ready = entry.made.is_ready()
            arguments = entry.gather(roots, retain_graph or not ready)
            if arguments is None:
                continue
            cache.met(entry)
            if not ready:
                del arguments
                return _waiting(process, roots, captures, retain_graph)
            process.hits += 1
            roots = ()
            inputs, sizes, hooks, numbers, saved = arguments
            del arguments
            _called(entry.made, inputs, sizes, numbers, hooks, [], saved)
            return []
    places = reached(roots)
    beside = STATE.compiler is compiled and knobs.background and not is_strict()
    if beside and cache.is_new(len(places)) and cache.captures < _MOST:
        if len(cache.awaited) >= _AWAITED:
            for node in places:
                check_hooks(node)
            return _waiting(process, roots, captures, retain_graph)
        snapshot = taken(roots, captures, places)
        if snapshot is not None:
            pulled = _waiting(process, roots, captures, retain_graph)
            # Not earlier, as it would take this run's time.
            _ask(process, cache, snapshot, len(places))
            return pulled
    walk = Walk(roots, captures, places)
    pattern = pattern_of(walk.arrays)
    variant = cache.find(walk, pattern)
    hit = variant is not None
    if variant is None:
        if beside:
            outline = None
            if cache.captures >= _MOST:
                _tell_limit(cache)
            elif len(cache.awaited) < _AWAITED and not cache.awaits(walk, pattern):
                outline = Outline(walk, pattern)
            del walk
            pulled = _waiting(process, roots, captures, retain_graph)
            if outline is not None:
                _ask(process, cache, outline, len(places))
            return pulled
        with LOCK:
            variant = cache.find(walk, pattern)  # another thread may have captured the like meanwhile
            hit = variant is not None
            if variant is None and cache.captures >= _MOST:
                _tell_limit(cache)
                return _eager(roots, captures, retain_graph)
            if variant is None:
                assert STATE.compiler is not None
                before = process.captures
                walk, variant = captured_here(process, cache, STATE.compiler, walk, pattern)
                hit = process.captures == before
    elif not variant.is_ready():
        del walk
        return _waiting(process, roots, captures, retain_graph)
    process.hits += hit
    return _run(variant, walk, retain_graph)


def _ask(process: CaptureTotals, cache: Cache, what: RunSnapshot | Outline, nodes: int) -> None:
    """Have a run of so many nodes be captured beside the program."""
    awaited = Awaited(nodes, what if isinstance(what, Outline) else None)
    cache.awaited.append(awaited)
    holder = [what]  # until the job begins

    def job() -> None:
        run = holder.pop()
        if process is not PROCESS.now:
            return
        awaited.outline = outline = outlined(run) if isinstance(run, RunSnapshot) else run
        with LOCK, suppress(Unrecorded):  # a run like this one has another key from now on
            if cache.find(outline, outline.pattern) is None and cache.captures < _MOST:
                capture(process, cache, compiled, outline)
        cache.awaited.remove(awaited)  # but after another error, which would come again

    BESIDE.ask(job)


def _tell_limit(cache: Cache) -> None:
    """Say, once, that nobody captures any more, as each run so far has been another one."""
    if not cache.is_told:
        cache.is_told = True
        log("backward-limit", "compiled_autograd", f"{_MOST} graphs are captured; others run eagerly")


def _waiting(process: CaptureTotals, roots: Roots, captures: Captures | None, retain_graph: bool) -> list[Any]:
    """Run by the engine what is captured or compiled beside the program."""
    process.waiting += 1
    return _eager(roots, captures, retain_graph)


def _eager(roots: Roots, captures: Captures | None, retain_graph: bool) -> list[Any]:
    before, TAPE.captured = TAPE.captured, None
    STATE.running += 1
    try:
        return run(roots, captures, retain_graph=retain_graph)
    finally:
        STATE.running -= 1
        TAPE.captured = before


def _called(
    variant: CaptureResult, inputs: list, sizes: list, scalars: list, hooks: list, packed: list, saved: Saved
) -> Sequence[Any]:
    """The results of a captured graph; its hooks may not write to what is needed behind them.

    What runs backwards meanwhile is eager (R4.41).
    """
    before, TAPE.captured = TAPE.captured, None
    mode = gradient_mode.set_gradient_mode(False)
    running = STATE.running
    STATE.running = running + 1
    token = ERRORS.set(IGNORED)
    try:
        run = variant.run
        if not hooks:
            return run(inputs, sizes, scalars, hooks, packed)
        with SavedWatch(saved, variant.captured.starts) as watch:
            if type(run) is Compiled:
                return run(inputs, sizes, scalars, hooks, packed, watch)
            return run(inputs, sizes, scalars, list(map(watch.wrapped, hooks, range(len(hooks)))), packed)
    finally:
        ERRORS.reset(token)
        STATE.running = running
        gradient_mode.set_gradient_mode(mode)
        TAPE.captured = before


def _run(variant: CaptureResult, walk: Walk, retain_graph: bool) -> list[Any]:
    captured = variant.captured
    arrays, shapes = walk.arrays, walk.shapes
    inputs = [arrays[k] for k in captured.arrays]
    inputs += walk.leaves
    sizes = [shapes[k][axis] for k, axis in captured.sizes]
    scalars, hooks, packed = walk.scalars, walk.hooks, walk.packed
    scalars += [walk.numbers[k] for k in captured.numbers]
    opaque = walk.opaque
    saved = [saved_of(walk.nodes[k]) for k in captured.order] if hooks else []
    if not retain_graph:  # R4.11
        kept = set(opaque) if opaque else ()
        for node in walk.nodes:
            if node not in kept and (walk.needed is None or node in walk.needed):
                node.release()
    walk.arrays = arrays = []
    gradients = iter(_called(variant, inputs, sizes, scalars, hooks, packed, saved))
    if not retain_graph:
        for node in opaque:
            node.release()
    return [next(gradients) if there else None for there in captured.defined]
