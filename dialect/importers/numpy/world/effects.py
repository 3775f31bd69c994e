"""Undoes the effects of traced code, and refuses the trace with the line that has them."""

from __future__ import annotations

import ctypes
import dis
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ....dataclass import dataclass
from ....errors import Loc, TraceError
from ....trees.pytree import positional_names
from ..python.generators import put_state, same_state, state_of_generator
from ..tracing.recorder import Recorder
from .substitutes import DRAW_OUTSIDE

_RETURN_IT = "return the new value as a result, and assign it outside"
_LEGACY = "numpy.random.mtrand"  # which a program may not have loaded
_WORDS, _WORD = 624, 4  # of a Mersenne Twister: their number, and the bytes of each
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


@dataclass
class _Generator:
    """A generator of the process.

    Attributes:
        subject: its name in messages.
        target: the generator.
        state: what it was before the trace.
        bits, words: of NumPy's its bit generator, and the state as the memory of that holds it, where
            each draw changes it; reading it anew is twenty times as quick.
    """

    subject: str
    target: Any
    state: Any
    bits: Any = None
    words: bytes = b""

    def has_drawn(self) -> bool:
        if self.words and _bits_of_numpys() is self.bits:
            return _words_of(self.bits) != self.words
        return not same_state(state_of_generator(self.target), self.state)


def _process_generators() -> list[_Generator]:
    """Python's and NumPy's global generators with their states; none while other threads run.

    What other threads draw meanwhile must not be undone, and cannot be told from the function's.
    """
    if any(not t.daemon for t in threading.enumerate() if t is not threading.current_thread()):
        return []
    instance = getattr(sys.modules.get("random"), "_inst", None)
    generators = [_Generator("the generator of random", instance, instance.getstate())] if instance else []
    legacy = getattr(sys.modules.get(_LEGACY), "_rand", None)
    if legacy is not None:
        generators.append(_numpys(legacy))
    return generators


def _numpys(legacy: Any) -> _Generator:
    """The global generator of NumPy."""
    generator = _Generator("the generator of np.random", legacy, legacy.get_state(legacy=False))
    state, bits = generator.state, _bits_of_numpys()
    # Of two normal values that are drawn at once, the second one is kept, and costs no draw.
    if type(bits).__name__ == state["bit_generator"] == "MT19937" and not state["has_gauss"]:
        words = _words_of(bits)
        if words == state["state"]["key"].tobytes() + state["state"]["pos"].to_bytes(_WORD, sys.byteorder):
            generator.bits, generator.words = bits, words
    return generator


def _bits_of_numpys() -> Any:
    return sys.modules[_LEGACY].get_bit_generator()


def _words_of(bits: Any) -> bytes:
    """The key of a Mersenne Twister, and the position in it."""
    return ctypes.string_at(bits.ctypes.state_address, (_WORDS + 1) * _WORD)


def _undo_draws(before: list[_Generator]) -> str:
    subject = ""
    for generator in before:
        if generator.has_drawn():
            put_state(generator.target, generator.state)
            subject = generator.subject
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
