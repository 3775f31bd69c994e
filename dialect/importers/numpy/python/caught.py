"""Errors that the user's code catches: the trace decides once what happens then.

Whether ``x[10]`` raises depends on a size. So a graph recorded where an ``except`` of the user's
would catch such an error holds for exactly the sizes it was traced with. Where contents decide
whether an op raises, the trace fails; so it does where the code may look at an error, whose class
and text are NumPy's.
"""

from __future__ import annotations

import dis
import inspect
import sys
import types
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

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


def catching(end: types.CodeType, *, to_look: bool = False) -> bool:
    """True if an error that is raised now would be caught by the user's code.

    Args:
        end: code of the frame at which the traced function begins.
        to_look: only code counts that may look at the error: ``except ValueError as error``.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not end:
        code = frame.f_code
        if code.co_exceptiontable:
            at = frame.f_lasti
            for start, stop, target in _ranges(code):
                if start <= at < stop and _catches(code, target, frame, to_look):
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


def _catches(code: types.CodeType, target: int, frame: types.FrameType, to_look: bool) -> bool:
    if not is_users_name(frame.f_globals.get("__name__")):
        return False
    handler = _handlers(code)[target]
    names = handler.names
    if handler.kind == "except":
        if to_look and not handler.looks:
            return False
        return names is None or any(catches(_value(frame, name)) for name in names)
    swallows = _may_look if to_look else _may_swallow
    return handler.kind == "with" and any(swallows(_value(frame, name)) for name in names or ())


def catches(errors: Any) -> bool:
    """True if an ``except`` with this class, or tuple of classes, catches what operations raise."""
    if isinstance(errors, tuple):
        return any(map(catches, errors))
    return not isinstance(errors, type) or any(issubclass(raised, errors) for raised in _RAISED)


def _value(frame: types.FrameType, name: str) -> Any:
    """The value of a name in a frame; the name itself if the value is not known."""
    elsewhere = frame.f_globals.get(name, frame.f_builtins.get(name, name))
    return frame.f_locals.get(name, elsewhere)


class _Handler(NamedTuple):
    """One handler of a code.

    Attributes:
        kind: ``except``, ``with`` or ``finally``.
        names: what it catches; None for an ``except`` that catches anything.
        looks: it gives the error a name.
    """

    kind: str
    names: tuple[str, ...] | None
    looks: bool = False


@lru_cache(maxsize=256)
def _handlers(code: types.CodeType) -> dict[int, _Handler]:
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "NOT_TAKEN")]
    out = {}
    for k, first in enumerate(instructions):
        if first.opname == "PUSH_EXC_INFO":
            out[first.offset] = _read_handler(instructions, k)
    return out


def _read_handler(instructions: list[dis.Instruction], k: int) -> _Handler:
    if instructions[k + 1].opname == "WITH_EXCEPT_START":
        return _Handler("with", _context_names(instructions, k))
    names: list[str] | None = []
    catches = looks = False
    for at in range(k + 1, len(instructions)):
        name = instructions[at].opname
        if name == "COPY" and instructions[at + 1].opname == "POP_EXCEPT":
            break  # from here on Python cleans up after the handler
        if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            catches = True
            loaded = _loaded(instructions, at - 1)
            names = None if names is None or loaded is None else names + loaded
            # Behind the jump to the next clause the error is stored, or dropped; `except*` makes a group of it.
            looks = looks or name == "CHECK_EG_MATCH" or instructions[at + 2].opname.startswith("STORE")
        elif name == "POP_EXCEPT" and not catches:
            catches, names = True, None  # a bare except, or a `finally` that is left
    if not catches:
        return _Handler("finally", ())
    return _Handler("except", None if names is None else tuple(names), looks)


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
    generator, leaving = _manager(value)
    if generator is not None:
        return any(handler.kind == "except" for handler in _handlers(generator).values())
    return leaving is not None and any(
        (i.opname == "RETURN_VALUE" and (before.opname != "LOAD_CONST" or before.argval))
        or (i.opname == "RETURN_CONST" and i.argval)
        for before, i in pairwise(dis.get_instructions(leaving))
    )


def _may_look(value: Any) -> bool:
    """True for one that may suppress an error and looks at more than whether there is one."""
    generator, leaving = _manager(value)
    if generator is not None:
        return any(handler.looks for handler in _handlers(generator).values())
    if leaving is None or not _may_swallow(value):
        return False
    parameters = set(leaving.co_varnames[1 : _parameters(leaving)])
    instructions = [i for i in dis.get_instructions(leaving) if i.opname != "CACHE"]
    return bool(parameters.intersection((*leaving.co_cellvars, *leaving.co_freevars))) or any(
        parameters.intersection(i.argval if isinstance(i.argval, tuple) else (i.argval,))
        and not (i.opname == "LOAD_FAST" and _asks_for_none(instructions[k + 1 : k + 3]))
        for k, i in enumerate(instructions)
        if "_FAST" in i.opname
    )


def _asks_for_none(behind: list[dis.Instruction]) -> bool:
    """True for ``is None`` and ``is not None``, also where they are one instruction with a jump."""
    if behind[0].opname.endswith(("IF_NONE", "IF_NOT_NONE")):
        return True
    return behind[0].opname == "LOAD_CONST" and behind[0].argval is None and behind[1].opname == "IS_OP"


def _parameters(code: types.CodeType) -> int:
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + stars


def _manager(value: Any) -> tuple[types.CodeType | None, types.CodeType | None]:
    """The code of a user's ``@contextmanager``, or of a user's ``__exit__``: one of the two, or neither."""
    generator = getattr(value, "__wrapped__", value)  # of a @contextmanager, its generator
    code = getattr(generator, "__code__", None)
    if isinstance(code, types.CodeType):
        return (code if generator is not value and is_users_file(code.co_filename) else None), None
    leaving = getattr(value if isinstance(value, type) else type(value), "__exit__", None)
    code = getattr(leaving, "__code__", None)
    return None, (code if isinstance(code, types.CodeType) and is_users_file(code.co_filename) else None)
