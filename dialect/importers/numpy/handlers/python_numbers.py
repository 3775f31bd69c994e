"""Python's own numbers of traced values: `int`, `complex`, the functions of `math` and `cmath`, ….

What these give is recorded. Only an int of a number that is known while tracing is Python's, under
a guard, since sizes follow from it.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.dtypes import BOOL, C128, F64, I64, DType
from ....ir.op import Op
from ....ir.types import ScalarType, TensorType
from ....ops.elementwise import python_math
from ..tracing.operators import Recording, op
from ..tracing.traced import TracedArray
from ..world.substitutes import CONVERSIONS, FUNCTIONS

_TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
_ROUNDED = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def is_open(value: Any) -> bool:
    """True for a traced number, or array of one element, that is known only at run time."""
    return isinstance(value, Recording) and value.is_open and not _has_axes(value)


def _has_axes(value: Any) -> bool:
    return type(value) is TracedArray and bool(value.ndim)


def _is_differentiated(value: Any) -> bool:
    """True for a known number whose gradient needs an op for what is computed with it."""
    return isinstance(value, Recording) and value.rec.numbers.varies(value.value)


def _dtype_of(value: Recording) -> DType | None:
    hint = value.rec.hints[value.value]
    return hint.dtype if isinstance(hint, (TensorType, ScalarType)) else None


def _conversion(kind: type, dtype: DType) -> None:
    """Substitute a class of numbers where it is called."""

    @functools.wraps(kind, updated=())
    def convert(*args: Any, **kwargs: Any) -> Any:
        parts = kind is complex and len(args) == 2 and not kwargs
        if parts and any(isinstance(x, Recording) for x in args) and all(map(_is_part, args)):
            return op("to_complex", *map(_as_number, args))
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


def _is_part(value: Any) -> bool:
    """True for real numbers, and arrays of one."""
    if not isinstance(value, Recording):
        return type(value) in (int, float, bool)
    dtype = _dtype_of(value)
    return dtype is not None and not dtype.is_complex and not _has_axes(value)


def _as_number(value: Any) -> Any:
    return op("item", value, dtype=F64) if type(value) is TracedArray else value


def _substitute(original: Callable[..., Any]) -> Callable[[Callable[..., Any]], None]:
    """Substitute a function of `math` or `cmath` for calls with traced numbers."""
    dtype = C128 if original.__module__ == "cmath" else F64

    def register(record: Callable[..., Any]) -> None:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if original is math.trunc and not all(hasattr(x.__class__, "__trunc__") for x in args):
                return original(*args)  # of NumPy's integers
            traced = [x for x in args if isinstance(x, Recording)]
            if kwargs or not traced or any(_is_foreign(x, dtype) for x in args):
                return original(*args, **kwargs)
            return record(*(op("item", x, dtype=dtype) if type(x) is TracedArray else x for x in args))

        FUNCTIONS[original] = call

    return register


def _is_foreign(value: Any, wanted: DType) -> bool:
    """True for what functions of `math` or `cmath` refuse, or are not known to take."""
    if not isinstance(value, Recording):
        return type(value) not in (int, float, bool, *((complex,) if wanted.is_complex else ()))
    dtype = _dtype_of(value)
    return dtype is None or _has_axes(value) or (dtype.is_complex and not wanted.is_complex)


def _plain(original: Callable[..., Any], op_class: type[Op]) -> None:
    count = len(op_class.operands)

    @_substitute(original)
    def record(*args: Any) -> Any:
        if len(args) != count:
            return original(*args)
        return op(op_class.name, *args)


def _test(name: str, function: Callable[..., Any]) -> None:
    @_substitute(getattr(math, name))
    def record(x: Any) -> Any:
        return op("truth", function(x)) if is_open(x) else getattr(math, name)(x.bake())


def _rounded(name: str, function: Callable[..., Any]) -> None:
    @_substitute(getattr(math, name))
    def record(x: Any) -> Any:
        if not is_open(x):
            return getattr(math, name)(x.bake())  # a size may follow from it
        return op("item", function(op("item", x, dtype=F64)), dtype=I64)


for _original, _made in python_math.FUNCTIONS.items():
    _plain(_original, _made)
for _name in _TESTS:
    _test(_name, _TESTS[_name])
for _name in _ROUNDED:
    _rounded(_name, _ROUNDED[_name])


@_substitute(math.log)
def _log(x: Any, base: Any = None) -> Any:
    log = op("math_log", x)
    return log if base is None else log / (FUNCTIONS[math.log](base))


@_substitute(math.fabs)
def _fabs(x: Any) -> Any:
    return abs(x * 1.0)


@_substitute(math.degrees)
def _degrees(x: Any) -> Any:
    return x * (180.0 / math.pi)


@_substitute(math.radians)
def _radians(x: Any) -> Any:
    return x * (math.pi / 180.0)


@_substitute(cmath.phase)
def _phase(z: Any) -> Any:
    return op("math_atan2", z.imag, z.real)


@_substitute(cmath.polar)
def _polar(z: Any) -> Any:
    return abs(z), FUNCTIONS[cmath.phase](z)
