"""Frames in the thread of a trace: whose code they run, and which function that is of."""

from __future__ import annotations

import functools
import gc
import os
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..python.objects import functions_in
from ..python.users_code import is_own_file, is_users_file

OWN, UNIT, LIBRARY, USERS = range(4)  # whose code a file holds
_NUMPY = os.path.dirname(np.__file__) + "/"
_FAR = 100  # frames between a C call and the user's code that are looked at
# Files of what the user's code calls in the place of builtins.
_BETWEEN = tuple(
    f"numpy/{name}.py"
    for name in (
        "handlers/python_numbers",
        "python/pausing",
        "source/source",
        "tracing/types_seen",
        "world/substitutes",
    )
)


def called(fn: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a traced function: what it does is the user's, also where it is a package's."""
    return fn(*args, **kwargs)


@functools.lru_cache(maxsize=4096)
def owner_of(file: str) -> int:
    """The owner of the code of a file."""
    if is_own_file(file):
        return OWN
    if file.startswith((_NUMPY, "<frozen importlib", "<__array_function__ internals>")):
        return UNIT
    return USERS if is_users_file(file) else LIBRARY


def owners_above(frame: types.FrameType | None) -> Iterator[int]:
    """The owner of the code that a frame runs, and those of the frames that have called it.

    What the user's code calls in place of builtins is left out: it calls what these would.
    The last one is the first, from here, that is no code of a package or of NumPy.
    """
    for _ in range(_FAR):
        if frame is None:
            break
        file = frame.f_code.co_filename
        owner = owner_of(file)
        if owner is OWN and file.endswith(_BETWEEN):
            frame = frame.f_back
            continue
        yield USERS if frame.f_code is called.__code__ else owner
        if owner in (OWN, USERS) or file.startswith("<frozen importlib"):
            return
        frame = frame.f_back
    yield USERS


def is_of_the_collector(frame: types.FrameType | None) -> bool:
    """True for what the garbage collector calls, at any moment of any program."""
    codes = [getattr(call, "__code__", None) for call in gc.callbacks]
    for _ in range(_FAR if codes else 0):
        if frame is None:
            break
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def function_of(frame: types.FrameType, code: types.CodeType) -> types.FunctionType | None:
    """The function whose code a frame runs: a method of its first argument, or in a variable."""
    candidates: Iterator[Any] = iter(())
    if code.co_argcount:
        first = frame.f_locals.get(code.co_varnames[0])
        kinds = (*getattr(first, "__mro__", ()), *type(first).__mro__)
        candidates = (value for kind in kinds for value in vars(kind).values())
    for value in candidates:
        if (function := wrapped(value, code)) is not None:
            return function
    caller = frame.f_back
    if caller is None:
        return None
    for value in tuple(caller.f_locals.values()):
        for part in (value, *getattr(value, "__dict__", {}).values()):
            if (function := wrapped(part, code)) is not None:
                return function
    return None


def wrapped(value: Any, code: types.CodeType) -> types.FunctionType | None:
    """A function with this code in a descriptor, a decorated function or a partial."""
    for candidate in (value, *functions_in(value), getattr(value, "__wrapped__", None)):
        if type(candidate) is types.FunctionType:
            while candidate is not None:
                if candidate.__code__ is code:
                    return candidate
                candidate = getattr(candidate, "__wrapped__", None)
    return None
