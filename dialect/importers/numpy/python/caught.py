"""Errors that the user's code catches: the trace decides once what happens then.

Whether ``x[10]`` raises depends on a size. So a graph recorded where an ``except`` of the user's
would catch such an error holds for exactly the sizes it was traced with. Where contents decide
whether an op raises, the trace fails.
"""

from __future__ import annotations

import dis
import sys
import types
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ....errors import (
    AxisError,
    BoundsError,
    DivisionError,
    DTypeError,
    RangeError,
    ShapeError,
    SingularError,
    TraceError,
)
from .users_code import is_users_file, is_users_name

# Errors that array operations raise, and the error that refuses to trace them.
_RAISED = (ShapeError, BoundsError, AxisError, DTypeError, RangeError, DivisionError, SingularError, TraceError)
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF"})
_RANGES = 256  # code objects remembered
_made: dict[int, tuple[types.CodeType, list[tuple[int, int, int]]]] = {}


def catching(end: types.CodeType) -> bool:
    """True if an error that is raised now would be caught by the user's code.

    ``end``: code of the frame at which the traced function begins.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not end:
        code = frame.f_code
        if code.co_exceptiontable:
            at = frame.f_lasti
            for start, stop, target in _ranges(code):
                if start <= at < stop and _catches(code, target, frame):
                    return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _ranges(code: types.CodeType) -> list[tuple[int, int, int]]:
    """The ranges of a user's code whose errors go to a handler, as offsets: start, end, handler."""
    entry = _made.get(id(code))
    if entry is not None:
        return entry[1]
    ranges: list[tuple[int, int, int]] = []
    if is_users_file(code.co_filename):
        # Handlers of the source begin with PUSH_EXC_INFO; those that Python adds do not.
        begins = {i.offset for i in dis.get_instructions(code) if i.opname == "PUSH_EXC_INFO"}
        ranges = [(start, end, target) for start, end, target in _entries(code) if target in begins]
    if len(_made) >= _RANGES:
        _made.clear()
    _made[id(code)] = (code, ranges)
    return ranges


def _entries(code: types.CodeType) -> list[tuple[int, int, int]]:
    """Entries of the exception table (see CPython's Objects/exception_handling_notes.txt)."""
    data = iter(code.co_exceptiontable)
    out = []

    def number(first: int) -> int:
        value = first & 63
        byte = first
        while byte & 64:
            byte = next(data)
            value = value << 6 | byte & 63
        return value

    for first in data:
        start = number(first) * 2
        length = number(next(data)) * 2
        target = number(next(data)) * 2
        number(next(data))
        out.append((start, start + length, target))
    return out


def _catches(code: types.CodeType, target: int, frame: types.FrameType) -> bool:
    if not is_users_name(frame.f_globals.get("__name__")):
        return False
    kind, names = _handlers(code)[target]
    if kind == "except":
        return names is None or any(catches(_value(frame, name)) for name in names)
    return kind == "with" and any(_may_swallow(_value(frame, name)) for name in names or ())


def catches(errors: Any) -> bool:
    """True if an ``except`` with this class, or tuple of classes, catches what operations raise."""
    if isinstance(errors, tuple):
        return any(map(catches, errors))
    return not isinstance(errors, type) or any(issubclass(raised, errors) for raised in _RAISED)


def _value(frame: types.FrameType, name: str) -> Any:
    """The value of a name in a frame; the name itself if the value is not known."""
    elsewhere = frame.f_globals.get(name, frame.f_builtins.get(name, name))
    return frame.f_locals.get(name, elsewhere)


@lru_cache(maxsize=256)
def _handlers(code: types.CodeType) -> dict[int, tuple[str, tuple[str, ...] | None]]:
    instructions = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    out = {}
    for k, first in enumerate(instructions):
        if first.opname == "PUSH_EXC_INFO":
            out[first.offset] = _read_handler(instructions, k)
    return out


def _read_handler(instructions: list[dis.Instruction], k: int) -> tuple[str, tuple[str, ...] | None]:
    """The kind of a handler, ``except``, ``with`` or ``finally``, and the names that it catches.

    The names are None for an ``except`` that catches anything.
    """
    if instructions[k + 1].opname == "WITH_EXCEPT_START":
        return "with", _context_names(instructions, k)
    names: list[str] | None = []
    catches = False
    for at in range(k + 1, len(instructions)):
        name = instructions[at].opname
        if name == "COPY" and instructions[at + 1].opname == "POP_EXCEPT":
            break  # from here on Python cleans up after the handler
        if name == "CHECK_EXC_MATCH":
            catches = True
            loaded = _loaded(instructions, at - 1)
            names = None if names is None or loaded is None else names + loaded
        elif name == "POP_EXCEPT" and not catches:
            catches, names = True, None  # a bare except, or a `finally` that is left
    return ("except", None if names is None else tuple(names)) if catches else ("finally", ())


def _loaded(instructions: list[dis.Instruction], last: int) -> list[str] | None:
    """Names of the class or the tuple of classes after ``except``; None for other expressions."""
    first = last
    if instructions[last].opname == "BUILD_TUPLE":
        first, last = last - int(instructions[last].arg or 0), last - 1
    loads = instructions[first : last + 1]
    if not all(i.opname in _LOADS for i in loads):
        return None
    return [str(i.argval) for i in loads]


def _context_names(instructions: list[dis.Instruction], k: int) -> tuple[str, ...]:
    """Names in the line of the ``with`` that a handler belongs to; all names if that is unknown."""
    position = instructions[k].positions
    line = position.lineno if position else None
    return tuple(
        str(i.argval)
        for i in instructions
        if i.opname.startswith("LOAD_")
        and isinstance(i.argval, str)
        and (line is None or (i.positions is not None and i.positions.lineno == line))
    )


def _may_swallow(value: Any) -> bool:
    """True for a context manager of the user's that may suppress an error."""
    generator = getattr(value, "__wrapped__", value)  # of a @contextmanager, its generator
    code = getattr(generator, "__code__", None)
    if isinstance(code, types.CodeType):
        return (
            generator is not value
            and is_users_file(code.co_filename)
            and any(kind == "except" for kind, _ in _handlers(code).values())
        )
    leaving = getattr(value if isinstance(value, type) else type(value), "__exit__", None)
    code = getattr(leaving, "__code__", None)
    if not isinstance(code, types.CodeType) or not is_users_file(code.co_filename):
        return False
    return any(
        (i.opname == "RETURN_VALUE" and (before.opname != "LOAD_CONST" or before.argval))
        or (i.opname == "RETURN_CONST" and i.argval)
        for before, i in pairwise(dis.get_instructions(code))
    )
