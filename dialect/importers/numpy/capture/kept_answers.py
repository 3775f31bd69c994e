"""Calls of functions that keep their results, ``functools.lru_cache``, in a trace.

Later calls ask the cache again, and compare its answers. What is wrapped runs where the cache has no answer, and no
later call runs it, whoever makes that call. So a trace that finds an effect of what is wrapped takes the answer out of
the cache, as the journal undoes the effect: Python, which runs the call then, has it at its time. Nor may anybody
compare such answers later, as that would have effects at other times.
"""

from __future__ import annotations

import functools
import gc
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..python.generators import same_state, state_of_generator
from ..python.objects import FACETS
from ..python.pausing import apart
from ..tracing.current import trace_error, world_error
from ..tracing.traced import TracedArray
from ..tracing.traced_scalar import TracedScalar
from ..world.contents import Contents
from ..world.journal import KEPT_BYTES, Journal, Watch
from ..world.places import ANSWER, Place, StateRead
from ..world.restoring import same_items

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_with_effects: WeakSet[Any] = WeakSet()  # wrappers of what has had an effect


def answering(
    rec: Recorder, cached: Any, answers: list[StateRead], given: Callable[[Any, str], Any]
) -> Callable[..., Any]:
    """The function in place of a wrapper of ``lru_cache``; it bakes traced numbers, lest they stay as keys.

    Args:
        rec: the trace.
        cached: the wrapper.
        answers: gets what calls compare.
        given: what the user's code gets for an answer.
    """
    original = rec.shadows.original if rec.shadows is not None else lambda x: x

    def plain(x: Any) -> Any:
        if type(x) is tuple:
            return tuple(map(plain, x))
        if type(x) is TracedArray:
            raise trace_error(
                f"{cached.__name__}, which keeps its results, is called with a traced array",
                "call what it wraps: f.__wrapped__(x)",
            )
        return x.bake() if type(x) is TracedScalar else original(x)

    @functools.wraps(cached)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(plain, args)), {k: plain(v) for k, v in kwargs.items()}
        name = f"what {cached.__name__} keeps"
        result = _answer(rec.journal, cached, args, kwargs)
        answers.append(StateRead(Place(ANSWER, functools.partial(cached, *args, **kwargs), None, name), result))
        return given(result, name)

    for name in ("cache_info", "cache_clear", "cache_parameters"):
        setattr(call, name, getattr(cached, name))
    return call


def _answer(journal: Journal, cached: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The answer of a wrapper; raises TraceError if what it wraps has effects, and takes the answer back."""
    if cached in _with_effects:
        raise _refused(cached)
    misses, before = cached.cache_info().misses, [(watch, apart(_held_now, watch)) for watch in journal.watches]
    table = _table(cached)
    last = next(reversed(table), None)
    result = cached(*args, **kwargs)
    if cached.cache_info().misses != misses and _has_changed(journal, before):
        _with_effects.add(cached)
        for key in list(reversed(table)):
            if key is last:
                break
            del table[key]
        raise _refused(cached)
    return result


def _refused(cached: Any) -> Exception:
    return world_error(
        f"{cached.__name__}, which keeps its results, changes something that outlives the call that computes one",
        f"call what it wraps: {cached.__name__}.__wrapped__",
    )


def _table(cached: Any) -> dict[Any, Any]:
    """The answers that a wrapper keeps, the latest one last; C code has no name for the table."""
    own = vars(cached)
    return next((x for x in gc.get_referents(cached) if type(x) is dict and x is not own), {})


def _has_changed(journal: Journal, before: Sequence[tuple[Watch, Any]]) -> bool:
    """True if an object that is watched holds something else than before, or than when it was met since."""
    met = ((watch, watch.held) for watch in journal.watches[len(before) :])
    return not all(_is_same(watch, held, apart(_held_now, watch)) for watch, held in (*before, *met))


def _held_now(watch: Watch) -> Any:
    """What an object holds now, as a watch notes it."""
    target, held = watch.target, watch.held
    if watch.kind == "generator":
        return state_of_generator(target)
    if watch.kind == "library":
        return dict(vars(target)), held[1]
    if watch.kind == "contents":
        return held if held.fits(target) else Contents(target, KEPT_BYTES)
    return FACETS[watch.kind].copy(target)


def _is_same(watch: Watch, held: Any, other: Any) -> bool:
    """True if an object holds the same by two notes of it."""
    if watch.kind == "generator":
        return same_state(held, other)
    if watch.kind == "contents":
        return held is other
    if watch.kind == "library":
        held, other = held[0], other[0]
    if isinstance(held, dict):
        return same_items(other, held)
    if isinstance(held, set | bytearray):
        return held == other
    return len(held) == len(other) and all(map(operator.is_, held, other))
