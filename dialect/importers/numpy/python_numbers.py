"""Python's own numbers of traced values: `int`, `float`, `bool`, and the functions of `math`.

They ask a traced value for its number. Where contents of arrays decide it, the number is recorded
as one that is known at run time; where it is known, Python computes with it, under a guard.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.dtypes import BOOL, C128, F64, I64, DType
from ...ir.types import ListType
from ..python.substitutes import CONVERSIONS, FUNCTIONS
from ..tracing.operators import Recording, op
from ..tracing.traced import TracedArray, TracedScalar

# Functions of one number or two -> NumPy's, which compute the same.
_PLAIN = {
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "fabs": np.abs,
    "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "fmod": np.fmod,
    "degrees": np.degrees, "radians": np.radians, "pow": np.power,
}  # fmt: skip
_TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
_ROUNDED = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
# Where their results are infinite, Python speaks of the argument, and else of the result.
_POLES = frozenset({"log", "log2", "log10", "log1p", "atanh"})
_DOMAIN, _RANGE = "math domain error", "math range error"


def is_open(value: Any) -> bool:
    """True for a traced number, or array of one element, that is known only at run time."""
    has_axes = type(value) is TracedArray and bool(value.ndim)
    return isinstance(value, Recording) and value.is_open and not has_axes


def _is_differentiated(value: Any) -> bool:
    """True for a known number whose gradient needs an op for what is computed with it."""
    return isinstance(value, Recording) and value.rec.varies(value.value)


def _dtype_of(value: Recording) -> DType | None:
    hint = value.rec.hints[value.value]
    return None if isinstance(hint, ListType) else hint.dtype


def _conversion(kind: type, dtype: DType) -> None:
    """Substitute a class of numbers where it is called."""

    @functools.wraps(kind, updated=())
    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return kind(*args, **kwargs)
        if not is_open(args[0]) and not (dtype in (F64, C128) and _is_differentiated(args[0])):
            return kind(*args, **kwargs)
        (value,) = args
        if _dtype_of(value) is None:
            return kind(value)
        return op("truth", value) if dtype is BOOL else op("item", value, dtype=dtype)

    CONVERSIONS[kind] = convert


for _kind, _dtype in ((int, I64), (float, F64), (bool, BOOL), (complex, C128)):
    _conversion(_kind, _dtype)


def _substitute(name: str, has_gradient: bool = True) -> Callable[[Callable[..., Any]], None]:
    """Substitute a function of `math` for calls with a number that is known only at run time."""
    original = getattr(math, name)

    def needs_op(value: Any) -> bool:
        return is_open(value) or (has_gradient and _is_differentiated(value))

    def register(record: Callable[..., Any]) -> None:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs or not any(map(needs_op, args)) or any(map(_is_foreign, args)):
                if not has_gradient:
                    args = tuple(x.bake() if isinstance(x, TracedScalar) else x for x in args)
                return original(*args, **kwargs)
            return record(*[op("item", x, dtype=F64) if needs_op(x) else float(x) for x in args])

        FUNCTIONS[original] = call

    return register


def _is_foreign(value: Any) -> bool:
    """True for what `math` refuses, or is not known to take."""
    if isinstance(value, Recording):
        dtype = _dtype_of(value)
        return (
            dtype is None or dtype.is_complex or (type(value) is TracedArray and bool(value.ndim))
        )
    return type(value) not in (int, float, bool)


def _number(result: Any, name: str, args: tuple[Any, ...]) -> Any:
    """A result as Python's float, with the errors that Python raises for infinities and NaNs."""
    nan, inf = np.isnan(args[0]), np.isinf(args[0])
    for arg in args[1:]:
        nan, inf = nan | np.isnan(arg), inf | np.isinf(arg)
    result = op("require", result, ~np.isnan(result) | nan, message=_DOMAIN)
    pole = name in _POLES
    fits = ~np.isinf(result) | inf
    message = _DOMAIN if pole else _RANGE
    return op("item", op("require", result, fits, message=message, overflow=not pole), dtype=F64)


def _plain(name: str, function: Callable[..., Any]) -> None:
    @_substitute(name)
    def record(*args: Any) -> Any:
        return _number(function(*args), name, args)


def _test(name: str, function: Callable[..., Any]) -> None:
    @_substitute(name, has_gradient=False)
    def record(x: Any) -> Any:
        return op("truth", function(x))


def _rounded(name: str, function: Callable[..., Any]) -> None:
    @_substitute(name, has_gradient=False)
    def record(x: Any) -> Any:
        return op("item", function(x), dtype=I64)


for _name, _function in _PLAIN.items():
    _plain(_name, _function)
for _name, _function in _TESTS.items():
    _test(_name, _function)
for _name, _function in _ROUNDED.items():
    _rounded(_name, _function)


@_substitute("log")
def _log(x: Any, base: Any = None) -> Any:
    found = _number(np.log(x), "log", (x,))
    return found if base is None else found / _number(np.log(base), "log", (base,))


__all__ = ["is_open"]
