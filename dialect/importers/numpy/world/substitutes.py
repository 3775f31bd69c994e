"""The objects that a traced function gets in place of some values, by whatever name it reads them.

NumPy's creation functions do not dispatch on traced arguments, and clocks and random numbers would
be those of the trace for ever. Nothing of NumPy or Python is patched for this: `scope` hands the
substitutes to the user's own Python code alone, and no other code ever meets them.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import io
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..python.caught import catches
from ..python.generators import is_generator, is_plain_generator
from ..python.pausing import apart
from ..python.purity import CODE, bound_to, is_pure_call, is_pure_module, name_of
from ..python.users_code import is_users_module
from ..tracing.current import current, trace_error, unknown_call
from ..tracing.operators import Recording
from ..tracing.types_seen import (
    traced_getattr,
    traced_hasattr,
    traced_isinstance,
    traced_len,
    traced_range,
    traced_type,
)

DRAW_OUTSIDE = "draw them outside and pass them as an argument"
_CLOCKS = frozenset(
    {
        "time",
        "time_ns",
        "perf_counter",
        "perf_counter_ns",
        "monotonic",
        "monotonic_ns",
        "process_time",
        "process_time_ns",
        "thread_time",
        "thread_time_ns",
        "clock_gettime",
        "clock_gettime_ns",
        "localtime",
        "gmtime",
        "ctime",
    }
)
_DATES = frozenset({"now", "utcnow", "today"})
_UNIQUE = frozenset({"uuid1", "uuid4"})
_READS_STATE = frozenset({"getstate", "get_state", "bit_generator", "state"})
# Modules of Python functions that act on what is outside of the program: C functions, which they
# call, are refused as such, and would be named in their place.
_OUTSIDE = frozenset({"logging", "warnings", "subprocess", "shutil", "socket", "urllib.request", "pdb", "code"})
# Functions of NumPy that change, or tell, how it treats floating-point errors in the whole thread.
_OF_ERRORS = frozenset({"geterr", "geterrcall", "seterr", "seterrcall"})
# Their functions pass on errors of arrays that they are given.
_CAREFUL = frozenset({"builtins", "numpy", "scipy"})
_METHODS = (types.BuiltinFunctionType, types.MethodType)

UNFOLLOWED = "sys.modules is read: what modules hold is not followed from there", "import the module by its name"

# By value: the function that the user names -> what a traced function calls in its place.
FUNCTIONS: dict[Any, Callable] = {}
# By name, of Python's builtins.  An entry acts like the builtin where no trace is in progress.
BUILTINS: dict[str, Any] = {}
CONVERSIONS: dict[type, Callable[..., Any]] = {}  # of Python's numbers, where they are called
CLASSES: dict[type, Callable[..., Any]] = {}
# Modules of which some attributes are substituted.
_MODULES = frozenset(
    {"numpy", "numpy.random", "math", "cmath", "time", "random", "secrets", "sys", "uuid", "contextlib"}
)


class SubstituteModule(types.ModuleType):
    """A module whose attributes are substituted as they are read."""

    def __init__(self, real: types.ModuleType) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__["__profuse_real__"] = real
        for name in ("__spec__", "__loader__", "__package__", "__path__", "__file__"):
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["__profuse_real__"], name)
        if value is sys.modules:
            raise trace_error(*UNFOLLOWED)
        return apart(substitute, value) if isinstance(value, CODE) else substitute(value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise trace_error(f"{self.__name__}.{name} is assigned while tracing", "assign it outside")

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["__profuse_real__"])


def substitute(value: Any) -> Any:
    """The substitute of a value in a traced function; mostly the value itself."""
    if isinstance(value, types.ModuleType):
        return _module(value) if _has_substitutes(value) else value
    if isinstance(value, type):
        return CLASSES.get(value, value)
    if not callable(value):
        return value
    try:
        stand_in = FUNCTIONS.get(value)
    except TypeError:  # unhashable
        stand_in = None
    if stand_in is None and getattr(value, "__module__", None) in ("math", "cmath"):
        load_numbers()
        stand_in = FUNCTIONS.get(value)
    if stand_in is not None:
        return stand_in
    if isinstance(value, types.MethodType) and is_plain_generator(value.__self__):
        from .draw_calls import draws_of  # few functions draw

        stand_in = draws_of(value)
        if stand_in is not None:
            return stand_in
    why = refusal(value) or unknown(value)
    if why is None:
        return _wary(value) if _is_of_an_extension(value) else value
    if isinstance(value, _METHODS) and bound_to(value) is not None:
        return _refuser.__wrapped__(value, *why)  # lest the object be kept
    return _refuser(value, *why)


def original_of(value: Any) -> Any:
    """The object that a substitute stands for; the value itself if it is none."""
    if type(value) is SubstituteModule:
        return value.__dict__["__profuse_real__"]
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and BUILTINS.get(name) is value:
        return getattr(builtins, name)
    wrapped = value
    while type(wrapped) is types.FunctionType:
        wrapped = getattr(wrapped, "__wrapped__", None)
        if wrapped is not None and substitute(wrapped) is value:
            return wrapped
    return value


def _has_substitutes(module: types.ModuleType) -> bool:
    """True for a module that may have functions which act on the outside of the program."""
    name = module.__name__
    return name in _MODULES or not (is_users_module(module) or is_pure_module(name))


def unknown(value: Any) -> tuple[str, str] | None:
    """The reason why a C function must not be called; None if it is pure, or belongs to an object.

    `watching` sees what Python code calls. What C code calls, as `functools.partial` and
    `itertools.starmap` do, nobody sees.
    """
    if type(value) is not types.BuiltinFunctionType:
        return None
    owner = value.__self__
    if not (owner is None or isinstance(owner, types.ModuleType)) or is_pure_call(value):
        return None
    return unknown_call(name_of(value))


def _is_of_an_extension(value: Any) -> bool:
    """True for a function of somebody's extension module, in C or the like."""
    if not isinstance(value, types.BuiltinFunctionType):
        return False
    owner = value.__self__
    root = owner.__name__.partition(".")[0] if isinstance(owner, types.ModuleType) else ""
    return bool(root) and root not in sys.stdlib_module_names and root not in _CAREFUL


@functools.lru_cache(maxsize=1024)  # identities hold
def _wary(original: Callable) -> Callable:
    """A function that gets no traced value: some crash where an array raises an error."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(_is_traced, (*args, *kwargs.values()))):
            raise trace_error(
                f"{original.__module__}.{original.__name__} is not written in Python: it needs the "
                "contents of arrays, which are not known while tracing",
                "call it outside of the function",
            )
        return original(*args, **kwargs)

    return call


def _is_traced(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_is_traced, value))
    return issubclass(type(value), Recording) and not value.rec.evaluates


@functools.cache
def load_numbers() -> None:
    """Load what records Python's numbers, which few functions ask for."""
    # By name: that module imports this one.
    importlib.import_module(f"{__package__.rpartition('.')[0]}.handlers.python_numbers")


def conversion(kind: type) -> Any:
    """The substitute of a class of numbers that is called; the class itself for any other."""
    load_numbers()
    return CONVERSIONS[kind]


@functools.lru_cache(maxsize=64)
def _module(real: types.ModuleType) -> SubstituteModule:
    return SubstituteModule(real)


def refusal(value: Any) -> tuple[str, str] | None:
    """The reason why a callable must not be called while tracing, and what to write; None if it may."""
    name = getattr(value, "__name__", "")
    if isinstance(value, _METHODS):
        owner = value.__self__
        if is_generator(owner):
            return None if name in _READS_STATE else _random(_of(owner, name))
        if isinstance(owner, type):
            if name in _DATES and any(cls.__module__ == "datetime" for cls in owner.__mro__):
                return _clock(f"{owner.__name__}.{name}")
        elif isinstance(owner, _speakers()):
            return _happens_once(f"{type(owner).__name__}.{name}")
        elif isinstance(owner, types.ModuleType):
            if owner.__name__ == "time" and name in _CLOCKS:
                return _clock(f"time.{name}")
            if name in ("urandom", "getrandom"):
                return _random(f"os.{name}")
        elif name == "fill" and isinstance(owner, np.ndarray) and owner.dtype.kind == "V":
            # `ml_dtypes` raises TypeError for a traced number, which the user's code may catch.
            return (
                f"an array of {owner.dtype} that the function has not made itself is filled",
                "make it with np.full, or fill it outside of the function",
            )
        elif name == "rvs" and type(owner).__module__.startswith("scipy.stats"):
            return _random(f"scipy.stats.{getattr(owner, 'name', type(owner).__name__)}.rvs")
    module = getattr(value, "__module__", None)
    if module in _OUTSIDE and isinstance(value, types.FunctionType):
        return _happens_once(f"{module}.{name}")
    if module == "numpy" and name in _OF_ERRORS:
        return _happens_once(f"np.{name}")
    if module == "uuid" and name in _UNIQUE:
        return _random(f"uuid.{name}")
    if isinstance(value, types.FunctionType) and module == "secrets":
        return _random(f"secrets.{name}")
    if name == "default_rng" and (module or "").startswith("numpy.random"):
        return _random("np.random.default_rng")
    return None


def _speakers() -> tuple[type, ...]:
    """Classes whose methods read or write what is outside of the program; loaded modules alone."""
    logging = sys.modules.get("logging")
    classes = (getattr(logging, name, None) for name in ("Logger", "LoggerAdapter"))
    return (io.IOBase, io.TextIOBase, *(cls for cls in classes if cls is not None))


def _happens_once(name: str) -> tuple[str, str]:
    return (
        f"{name} is called while tracing: that would happen once, and at no later call",
        "call it outside of the function",
    )


def _of(owner: Any, name: str) -> str:
    if owner is getattr(sys.modules.get("random"), "_inst", None):
        return f"random.{name}"
    if owner is getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None):
        return f"np.random.{name}"
    return f"{type(owner).__name__}.{name}"


def _random(name: str) -> tuple[str, str]:
    return f"{name} is called while tracing: every call would get the same numbers", DRAW_OUTSIDE


def _clock(name: str) -> tuple[str, str]:
    return (
        f"{name} is called while tracing: every call would get the same time",
        "call it outside and pass the time as an argument",
    )


@functools.lru_cache(maxsize=1024)
def _refuser(original: Callable, what: str, hint: str) -> Callable:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return original(*args, **kwargs)
        error = trace_error(what, hint)
        error.library = (getattr(original, "__module__", None) or "").partition(".")[0]
        raise error

    return call


class _Suppress(contextlib.suppress):
    """`contextlib.suppress` that tells the trace where it is in force (see `caught`)."""

    def __enter__(self) -> None:
        rec = current()
        self._rec = rec if catches(self._exceptions) else None  # type: ignore[attr-defined]
        if self._rec is not None:
            self._rec.suppressing += 1

    def __exit__(self, *raised: Any) -> Any:
        if self._rec is not None:
            self._rec.suppressing -= 1
        return super().__exit__(*raised)


CLASSES[contextlib.suppress] = _Suppress


def _builtin(name: str) -> Callable[[Callable], Callable]:
    """Register a substitute for a builtin."""

    def register(stand_in: Callable) -> Callable:
        BUILTINS[name] = functools.wraps(getattr(builtins, name))(stand_in)
        return stand_in

    return register


@_builtin("__import__")
def _import(*args: Any, **kwargs: Any) -> Any:
    rec = current()
    return builtins.__import__(*args, **kwargs) if rec is None else rec.scope.imports.find(*args, **kwargs)


@functools.wraps(importlib.import_module)
def _import_module(name: str, package: str | None = None) -> Any:
    rec = current()
    if rec is None:
        return importlib.import_module(name, package)
    level = len(name) - len(name.lstrip("."))
    return rec.scope.imports.find(name[level:], {"__package__": package}, None, ("__name__",), level)


FUNCTIONS[importlib.import_module] = _import_module


def _calls_first(name: str) -> None:
    """Substitute a builtin that calls its first argument, which may be the user's method."""
    original = getattr(builtins, name)

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        rec = current()
        return original(function if rec is None else rec.callee(function), *args, **kwargs)

    _builtin(name)(call)


for _name in ("map", "filter"):
    # The substitutes are no classes; but `isinstance(x, map)` is hardly ever written.
    _calls_first(_name)


for _name in ("print", "input", "open"):
    BUILTINS[_name] = _refuser(getattr(builtins, _name), *_happens_once(_name))
BUILTINS["breakpoint"] = _refuser(
    breakpoint, "breakpoint() stops where Python runs the call", "take it out for native code"
)
BUILTINS["type"] = traced_type
BUILTINS["range"] = traced_range
for _made in (traced_getattr, traced_hasattr, traced_isinstance, traced_len):
    _builtin(_made.__name__.removeprefix("traced_"))(_made)
