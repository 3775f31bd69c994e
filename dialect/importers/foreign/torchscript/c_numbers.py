"""Arithmetic of numbers in TorchScript, which is C++'s: infinite or NaN where Python raises an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.dtypes import F64
from ...numpy.handlers import python_numbers  # fills `FUNCTIONS`
from ...numpy.tracing.operators import Recording, op
from ...numpy.world.substitutes import FUNCTIONS

_FILLED = python_numbers
_LOG_OF_MOST = math.log(np.finfo(np.float64).max)


def c_number(
    python: Callable[..., Any], of_arrays: Callable[..., Any], raises: Callable[..., Any], *numbers: Any
) -> Any:
    """What C++ gives for numbers.

    Args:
        python: the same function of Python's.
        of_arrays: the same function of NumPy's, which is C++'s.
        raises: true of numbers for which Python raises an error, or gives something else.
        numbers: plain ones, traced ones.

    A graph has Python's function of numbers that are known while tracing, under a guard that it raises no error.
    """
    if _is_complex(*numbers):
        return python(*numbers)
    if _is_open(*numbers):
        arrays = [op("to_tensor", x) if isinstance(x, Recording) else np.float64(x) for x in numbers]
        return op("item", of_arrays(*arrays), dtype=F64)
    if not raises(*numbers):
        return python(*numbers)
    plain = [np.float64(x.bake() if isinstance(x, Recording) else x) for x in numbers]
    with np.errstate(all="ignore"):
        return float(of_arrays(*plain))


def _is_open(*numbers: Any) -> bool:
    return any(isinstance(x, Recording) and x.is_open for x in numbers)


def _is_complex(*numbers: Any) -> bool:
    return any(type(x) is complex or getattr(x, "kind", None) is complex for x in numbers)


def _has_zero_divisor(a: Any, b: Any) -> Any:
    return b == 0


def quotient(a: Any, b: Any) -> Any:
    """``a / b`` as a float."""
    return c_number(lambda x, y: x / y, np.true_divide, _has_zero_divisor, a, b)


def floor_quotient(a: Any, b: Any) -> Any:
    """The quotient of floats, rounded down: Python rounds what the exact one is."""
    return c_number(_rounded_down, lambda x, y: np.floor(x / y), _has_zero_divisor, a, b)


def _rounded_down(a: Any, b: Any) -> Any:
    number = a / b
    if not isinstance(number, Recording):
        return float(np.floor(number))
    return FUNCTIONS[math.copysign](FUNCTIONS[math.floor](number) * 1.0, number)  # -0.0 stays such


def remainder(a: Any, b: Any) -> Any:
    """``a % b`` of floats."""
    return c_number(lambda x, y: x % y, np.remainder, _has_zero_divisor, a, b)


def float_power(a: Any, b: Any) -> Any:
    """``a ** b`` of a float exponent: of a negative number by a fraction it is NaN, and complex in Python."""
    if _is_open(a, b) or _is_complex(a, b) or (type(b) is float and b.is_integer()):
        return a**b
    return math.nan if a < 0 and b % 1 != 0 else a**b


_DOMAINS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sqrt": (np.sqrt, lambda x: x < 0),
    "log": (np.log, lambda x: x <= 0),
    "log2": (np.log2, lambda x: x <= 0),
    "log10": (np.log10, lambda x: x <= 0),
    "log1p": (np.log1p, lambda x: x <= -1),
    "exp": (np.exp, lambda x: x > _LOG_OF_MOST),
    "expm1": (np.expm1, lambda x: x > _LOG_OF_MOST),
    "sinh": (np.sinh, lambda x: abs(x) > _LOG_OF_MOST),
    "cosh": (np.cosh, lambda x: abs(x) > _LOG_OF_MOST),
    "asin": (np.arcsin, lambda x: abs(x) > 1),
    "acos": (np.arccos, lambda x: abs(x) > 1),
    "acosh": (np.arccosh, lambda x: x < 1),
    "atanh": (np.arctanh, lambda x: abs(x) >= 1),
    "sin": (np.sin, lambda x: abs(x) == math.inf),
    "cos": (np.cos, lambda x: abs(x) == math.inf),
    "tan": (np.tan, lambda x: abs(x) == math.inf),
    "fmod": (np.fmod, lambda a, b: b == 0 or abs(a) == math.inf),
}
"""Functions of `math`: NumPy's, and for which numbers `math` raises an error."""


def of_math(name: str) -> Callable[..., Any]:
    """A function of `math` as C++ has it, of plain numbers and traced ones."""
    original = getattr(math, name)

    def recorded(*numbers: Any) -> Any:
        if not any(isinstance(x, Recording) for x in numbers):
            return original(*numbers)
        if original not in FUNCTIONS:
            return original(*(x.bake() if isinstance(x, Recording) else x for x in numbers))
        return FUNCTIONS[original](*(x if isinstance(x, Recording) else float(x) for x in numbers))

    if name not in _DOMAINS:
        return recorded
    of_arrays, raises = _DOMAINS[name]
    return lambda *numbers: c_number(recorded, of_arrays, raises, *numbers)
