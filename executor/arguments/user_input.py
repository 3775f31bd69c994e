"""Checks of what a user hands to `jit` and to the functions it makes, before anything starts."""

from __future__ import annotations

import functools
import inspect
import os
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, KnobError
from ...dialect.guards.checks import described
from ...dialect.ir.dtypes import NUMBERS
from ...dialect.ir.program import Program
from ...dialect.ir.types import BOOLS, ListedType, ScalarType, listed_type
from ..settings.event_log import STDERR, say
from ..settings.events import log
from ..settings.knobs import KNOBS, PREFIX, check_variables, checked, knobs, unknown_variables
from ..settings.strategy import parse_strategy

_DEVICE = re.compile(r"cpu|cuda(:\d+)?")
_INTS = (bool, int, np.bool, np.integer)
_FLOATS = (*_INTS, float, np.floating)
# Kind of a declared number -> the types that an argument may have; isinstance holds for traced
# values, too.
_NUMBERS = {"b": (bool, np.bool), "i": _INTS, "u": _INTS, "f": _FLOATS, "c": (*_FLOATS, complex, np.complexfloating)}


def numbers_of(main: Program) -> list[tuple[int, ScalarType]]:
    """Index and type of each input of a graph that is declared as a Python number."""
    types = ((k, main.type_of(value)) for k, value in enumerate(main.inputs))
    return [(k, type_) for k, type_ in types if isinstance(type_, ScalarType)]


def check_numbers(name: str, wanted: Sequence[tuple[int, ScalarType]], inputs: Sequence) -> None:
    """Raise ArgumentError unless each declared number is given as a number of its kind.

    Args:
        name: name of the graph, for the message.
        wanted: result of `numbers_of`.
        inputs: all inputs of the call.
    """
    for k, type_ in wanted:
        if not isinstance(inputs[k], _NUMBERS[type_.dtype.kind]):
            raise ArgumentError(
                f"@{name}: argument {k} must be a number ({type_}), not {type(inputs[k]).__name__} {inputs[k]!r:.40}"
            )


def listed_inputs(main: Program) -> dict[int, ListedType]:
    """The type of each input of a graph that is a list of integers or bools, or a string, by its index."""
    types = ((k, main.type_of(value)) for k, value in enumerate(main.inputs))
    return {k: type_ for k, type_ in types if isinstance(type_, ListedType)}


def listed_argument(name: str, k: int, type_: ListedType, argument: Any) -> Any:
    """An argument as a value of its type, of which a list becomes a tuple.

    Raises ArgumentError for an argument of any other kind, and for a list that is too long.
    """
    value = tuple(argument) if type(argument) is list else argument
    fits = listed_type(value) == type_ or (type_ == BOOLS and type(value) is tuple and not value)
    if not fits or (type(value) is tuple and not all(-(2**63) <= item < 2**63 for item in value)):
        got = f"{type(argument).__name__} {argument!r:.40}"
        raise ArgumentError(f"@{name}: argument {k} must be {described(type_)} ({type_}), not {got}")
    if value is not None and len(value) > _MOST_ITEMS:
        raise ArgumentError(f"@{name}: argument {k} has {len(value)} items, more than {_MOST_ITEMS}")
    return value


def check_settings(
    fn: Any,
    device: str | None,
    background: bool | None,
    profiled_runs: int | None,
    name: str | None,
    unsupported: str | None,
) -> None:
    """Raise ArgumentError unless ``fn`` is callable, KnobError for a setting out of its domain."""
    if not callable(fn):
        raise ArgumentError(f"jit needs a function, not {type(fn).__name__}")
    check_device(device)
    if not isinstance(background, (bool, type(None))):
        raise KnobError(f"background={background!r}: expected True or False")
    if profiled_runs is not None:
        if type(profiled_runs) is not int:
            raise KnobError(f"profiled_runs={profiled_runs!r}: expected a whole number")
        checked("profiled_runs", profiled_runs)
    if not isinstance(name, (str, type(None))):
        raise KnobError(f"name={name!r}: expected a text")
    if unsupported is not None:
        checked("unsupported", unsupported)


def check_device(device: Any) -> None:
    """Raise KnobError unless ``device`` is None or has the form of a device name."""
    if device is not None and not (isinstance(device, str) and _DEVICE.fullmatch(device)):
        raise KnobError(f"device {device!r} is not known", hint='use "cpu", "cuda" or "cuda:1"')


@functools.cache
def check_environment() -> None:
    """Check every ``PROFUSE_`` environment variable, once per process, before any is needed.

    Raises KnobError for a bad value: later, the error might occur on a thread whose errors nobody
    sees. A variable that is no setting is reported with the setting that may have been meant.
    """
    check_variables()
    if knobs.fusion_strategy:
        parse_strategy(knobs.fusion_strategy)
    unknown = unknown_variables()
    if not unknown:
        return
    import difflib

    for name in unknown:
        meant = difflib.get_close_matches(name.removeprefix(PREFIX).lower(), KNOBS, 1)
        hint = f"did you mean {PREFIX}{meant[0].upper()}?" if meant else f"settings: {_settings()}"
        reason = f"{name} is set, but is no setting; {hint}"
        log("setting-unknown", "", reason)
        if knobs.log != STDERR:  # else `log` has already written the reason there
            say(f"profuse: {reason}")


def _settings() -> str:
    return ", ".join(f"{PREFIX}{name.upper()}" for name in KNOBS)


def check_path(what: str, path: Any) -> None:
    """Raise ArgumentError unless ``path`` is a str or an os.PathLike."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{what} needs the path of a file, not {type(path).__name__}")


_MOST_ITEMS = 256  # of a container of numbers: each would be an input of a graph
_MOST_ARRAYS = 4096
_SIZED = (list, tuple, dict)


def check_length(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise ArgumentError for a container of so many items that no graph of them pays off."""
    for arg in (*args, *kwargs.values()):
        if not isinstance(arg, _SIZED) or len(arg) <= _MOST_ITEMS:
            continue
        first = next(iter(arg.values() if isinstance(arg, dict) else arg))
        if isinstance(first, (*NUMBERS, *_SIZED, np.generic)) or len(arg) > _MOST_ARRAYS:
            raise ArgumentError(
                f"a {type(arg).__name__} has so many items, each of which would be an input",
                hint="pass one array: np.array(items)",
            )


def check_arity(fn: Callable, name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raise ArgumentError if ``fn`` does not accept these arguments, as far as its own signature tells.

    What a function wraps, or says of its signature, need not be what it takes.
    """
    if hasattr(getattr(fn, "func", fn), "__signature__") or _takes(fn, args, kwargs):
        return
    try:
        signature = inspect.signature(fn, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{name}{signature} was called wrongly: {error}") from None


def _takes(fn: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
    """True where the code of a function of Python's tells, at once, that it takes these arguments by their places."""
    if type(fn) is not types.FunctionType or kwargs or fn.__code__.co_kwonlyargcount:
        return False
    code = fn.__code__
    least = code.co_argcount - len(fn.__defaults__ or ())
    return least <= len(args) and (len(args) <= code.co_argcount or bool(code.co_flags & inspect.CO_VARARGS))
