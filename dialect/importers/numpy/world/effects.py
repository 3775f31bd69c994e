"""Undoes the effects of traced code, and refuses the trace with the line that has them."""

from __future__ import annotations

import dis
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ....errors import Loc, TraceError
from ....trees.pytree import positional_names
from ..python.generators import same_state
from ..tracing.recorder import Recorder
from .substitutes import DRAW_OUTSIDE

_RETURN_IT = "return the new value as a result, and assign it outside"
_CHANGING = frozenset(
    {
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
        "appendleft",
        "popleft",
        "extendleft",
        "rotate",
        "fill",
        "put",
        "resize",
        "itemset",
        "partition",
        "move_to_end",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
    }
)


def labelled(args: tuple, kwargs: dict[str, Any], fn: Callable) -> Iterator[tuple[Any, str]]:
    """Pairs of an argument and its name in messages."""
    yield from zip(args, positional_names(fn, len(args)), strict=True)
    yield from ((value, name) for name, value in kwargs.items())


@contextmanager
def effects_refused(rec: Recorder) -> Iterator[None]:
    """Undo what the traced code does to objects that were there before it.

    Raises TraceError for such effects if the trace itself succeeds.
    """
    draws = _process_generators()
    try:
        yield
    except BaseException as error:
        rec.journal.undo(rec.is_untouched)
        _undo_draws(draws)
        if not rec.journal.is_undone and not isinstance(error, TraceError):
            lost = TraceError(
                f"the function changed an array of more than 64 MiB and then raised {error!r:.200}", hint=_RETURN_IT
            )
            lost.is_undone = False
            raise lost from error
        if isinstance(error, TraceError):
            error.is_undone &= rec.journal.is_undone
        raise
    changed = rec.journal.undo(rec.is_untouched)
    subject = _undo_draws(draws)
    for kind, name in rec.scope.assigned():
        raise _refused(
            rec,
            f"the {kind} variable {name} is assigned by the function: that would happen once, "
            "while it is traced, and at no later call",
            loc=_line(rec, _STORES[kind], name),
            hint=_RETURN_IT,
        )
    for what, name, attribute in changed:
        if what.startswith("the random generator"):
            subject = what
            continue
        loc = _line(rec, _ATTRIBUTES, attribute) if attribute else _line_of_change(rec, name)
        raise _refused(
            rec,
            f"{what} is changed by the function: that would happen once, while it is traced, and at no later call",
            loc=loc,
            hint=_RETURN_IT,
        )
    if subject:
        raise _refused(
            rec,
            f"{subject} is drawn from while tracing: every call would get the same numbers",
            loc=_first_line(rec),
            hint=DRAW_OUTSIDE,
        )


def _refused(rec: Recorder, what: str, *, loc: Loc | None, hint: str) -> TraceError:
    error = TraceError(what, loc=loc, hint=hint)
    error.is_undone = rec.journal.is_undone
    return error


# --- generators of the process ------------------------------------------------------------------


def _process_generators() -> list[tuple[str, Any, Any]]:
    """Python's and NumPy's global generators with their states; none while other threads run.

    What other threads draw meanwhile must not be undone, and cannot be told from the function's.
    """
    if any(not t.daemon for t in threading.enumerate() if t is not threading.current_thread()):
        return []
    instance = getattr(sys.modules.get("random"), "_inst", None)
    generators = [("the generator of random", instance, instance.getstate())] if instance else []
    legacy = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
    if legacy is not None:
        generators.append(("the generator of np.random", legacy, legacy.get_state(legacy=False)))
    return generators


def _undo_draws(before: list[tuple[str, Any, Any]]) -> str:
    subject = ""
    for name, generator, state in before:
        if hasattr(generator, "getstate"):
            if generator.getstate() != state:
                generator.setstate(state)
                subject = name
        elif not same_state(generator.get_state(legacy=False), state):
            generator.set_state(state)
            subject = name
    return subject


# --- lines --------------------------------------------------------------------------------------

_STORES = {
    "global": frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"}),
    "nonlocal": frozenset({"STORE_DEREF", "DELETE_DEREF"}),
}
_ATTRIBUTES = frozenset({"STORE_ATTR", "DELETE_ATTR"})


def _line(rec: Recorder, opnames: frozenset[str], name: str) -> Loc | None:
    """The line where the traced code stores to this name."""
    for code in _codes(rec):
        for instruction, line in _lines(code):
            if instruction.opname in opnames and instruction.argval == name:
                return Loc(code.co_filename, line)
    return _first_line(rec)


def _line_of_change(rec: Recorder, name: str) -> Loc | None:
    """The line where the traced code changes the object of this name, else one that reads it."""
    reading = None
    for code in _codes(rec):
        naming: dict[int, bool] = {}
        changing: list[int] = []
        for instruction, line in _lines(code):
            if instruction.argval == name:
                naming[line] = True
            if instruction.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE") or (
                instruction.argval in _CHANGING or instruction.argrepr.endswith("=")
            ):
                changing.append(line)
        for line in changing:
            if line in naming:
                return Loc(code.co_filename, line)
        reading = reading or next((Loc(code.co_filename, line) for line in naming), None)
    return reading or _first_line(rec)


def _codes(rec: Recorder) -> Iterator[types.CodeType]:
    todo = list(rec.scope.codes)
    while todo:
        code = todo.pop(0)
        yield code
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _lines(code: types.CodeType) -> Iterator[tuple[dis.Instruction, int]]:
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        line = (position.lineno if position else None) or line
        yield instruction, line


def _first_line(rec: Recorder) -> Loc | None:
    for code in rec.scope.codes:
        return Loc(code.co_filename, code.co_firstlineno)
    return None
