"""Operators of two or three tensors or numbers, element by element, with torch's promotion."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...array_values import never_negative
from ..aten_table import aten, refuse
from ..demands import demanded
from ..promotion import (
    BOOL,
    COMPLEX128,
    FLOAT64,
    all_numbers,
    cast,
    category,
    float_dtype,
    is_float,
    is_integral,
    is_tensor,
    result_dtype,
    together,
)


def _is_one(number: Any) -> bool:
    return type(number) in (int, float) and number == 1


def _scaled(x: Any, alpha: Any) -> Any:
    return x if _is_one(alpha) else x * cast(alpha, x.dtype)


@aten("add")
def add(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    if all_numbers((self, other)):
        return self + (other if _is_one(alpha) else alpha * other)
    a, b = together(self, other)
    return a + _scaled(b, alpha)


@aten("sub", "subtract")
def sub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    if all_numbers((self, other)):
        return self - (other if _is_one(alpha) else alpha * other)
    a, b = together(self, other)
    return a - _scaled(b, alpha)


@aten("rsub", "__rsub__")
def rsub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    return sub(other, self, alpha=alpha)


@aten("mul", "multiply", "__rmul__")
def mul(self: Any, other: Any) -> Any:
    if all_numbers((self, other)):
        return self * other
    a, b = together(self, other)
    return a * b


@aten("div", "true_divide", "divide")
def div(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if all_numbers((self, other)):
        return (
            self / other
            if rounding_mode is None
            else (math.trunc if rounding_mode == "trunc" else math.floor)(self / other)
        )
    if rounding_mode is None:
        a, b = together(self, other, dtype=float_dtype(self, other))
        return a / b
    return floor_divide(self, other) if rounding_mode == "floor" else truncated_division(self, other)


@aten("floor_divide", "floordiv")
def floor_divide(self: Any, other: Any) -> Any:
    if all_numbers((self, other)):
        return self // other
    a, b = together(self, other)
    return np.floor_divide(a, _divisor(b, other))


def _divisor(divisor: Any, given: Any) -> Any:
    """The divisor of integers, which is not zero: torch raises an error there, and NumPy gives zero."""
    if not is_integral(divisor.dtype) or (type(given) in (int, bool) and given):
        return divisor
    return demanded(divisor, divisor != 0, "ZeroDivisionError: an integer is divided by zero")


def truncated_division(self: Any, other: Any) -> Any:
    """The quotient rounded to zero."""
    a, b = together(self, other)
    if not is_integral(a.dtype):
        return np.trunc(a / b)
    down = np.floor_divide(a, _divisor(b, other))
    if a.dtype.kind != "i" or (never_negative(a) and never_negative(b)):
        return down
    return down + cast(((a < 0) != (b < 0)) & (down * b != a), a.dtype)


@aten("remainder")
def remainder(self: Any, other: Any) -> Any:
    if all_numbers((self, other)):
        return self % other
    a, b = together(self, other)
    return np.remainder(a, _divisor(b, other))


@aten("fmod")
def fmod(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    return np.fmod(a, _divisor(b, other))


_SPECIAL: dict[Any, Callable[[Any], Any]] = {
    0.5: np.sqrt,
    1: np.copy,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    -1: np.reciprocal,
    -2: lambda x: np.reciprocal(x * x),
}


@aten("pow")
def power(self: Any, exponent: Any) -> Any:
    """``self ** exponent``; integers to negative powers are 0, but for 1 and -1."""
    if all_numbers((self, exponent)):
        return self**exponent
    a, b = together(self, exponent)
    if type(exponent) in (int, float) and not is_integral(a.dtype) and exponent in _SPECIAL:
        return _SPECIAL[exponent](a)
    if a.dtype.kind != "i":
        return np.power(a, b)
    if type(exponent) is int and exponent >= 0:
        return np.power(a, b)
    if type(exponent) is int:
        raise refuse("pow", "of integers to a negative number, which is an error of torch", "convert to floats first")
    one, zero = cast(1, a.dtype), cast(0, a.dtype)
    is_odd = (b & one) == one
    small = np.where(a == one, one, np.where(a == -one, np.where(is_odd, -one, one), zero))
    return np.where(b < zero, small, np.power(a, np.where(b < zero, zero, b)))


@aten("__rpow__")
def rpow(self: Any, other: Any) -> Any:
    return power(other, self)


@aten("float_power")
def float_power(self: Any, exponent: Any) -> Any:
    wide = COMPLEX128 if category(result_dtype(self, exponent)) == 3 else FLOAT64
    return np.power(*together(self, exponent, dtype=wide))


@aten("atan2", "arctan2")
def atan2(self: Any, other: Any) -> Any:
    a, b = together(self, other, dtype=float_dtype(self, other))
    return np.arctan2(a, b)


@aten("copysign")
def copysign(self: Any, other: Any) -> Any:
    a, b = together(self, other, dtype=float_dtype(self, other))
    return np.copysign(a, b)


@aten("hypot")
def hypot(self: Any, other: Any) -> Any:
    return np.hypot(*together(self, other))


@aten("logaddexp")
def logaddexp(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    if category(a.dtype) == 3:
        raise refuse("logaddexp", "on complex tensors")
    return np.logaddexp(a, b)


@aten("logaddexp2")
def logaddexp2(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    log2 = cast(math.log(2.0), a.dtype)
    return np.logaddexp(a * log2, b * log2) / log2


@aten("xlogy", "special_xlogy")
def xlogy(self: Any, other: Any) -> Any:
    a, b = together(self, other, dtype=float_dtype(self, other))
    zero = cast(0, a.dtype)
    return np.where(b != b, b, np.where(a == zero, zero, a * np.log(np.where(a == zero, cast(1, b.dtype), b))))


@aten("special_xlog1py")
def xlog1py(self: Any, other: Any) -> Any:
    a, b = together(self, other, dtype=float_dtype(self, other))
    zero = cast(0, a.dtype)
    return np.where(b != b, b, np.where(a == zero, zero, a * np.log1p(np.where(a == zero, zero, b))))


@aten("maximum")
def maximum(self: Any, other: Any) -> Any:
    return np.maximum(*together(self, other))


@aten("minimum")
def minimum(self: Any, other: Any) -> Any:
    return np.minimum(*together(self, other))


@aten("fmax")
def fmax(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    return np.where((a >= b) | (b != b), a, b)  # the first of equal ones has the gradient


@aten("fmin")
def fmin(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    return np.where((a <= b) | (b != b), a, b)


@aten("heaviside")
def heaviside(self: Any, values: Any) -> Any:
    a, b = together(self, values)
    zero, one = cast(0, a.dtype), cast(1, a.dtype)
    return np.where(a != a, a, np.where(a == zero, b, np.where(a < zero, zero, one)))


@aten("ldexp")
def ldexp(self: Any, other: Any) -> Any:
    return mul(self, power(2.0, other))


@aten("lerp")
def lerp(self: Any, end: Any, weight: Any) -> Any:
    dtype = self.dtype
    if end.dtype != dtype:
        raise refuse("lerp", f"from {dtype} to {end.dtype}", "convert one of them")
    if is_tensor(weight):  # of a dtype of its own, if it has no axes
        dtype = result_dtype(self, end, weight)
    a, b, w = together(self, end, weight, dtype=dtype)
    one = cast(1, dtype)
    if category(dtype) == 3:
        return a + w * (b - a)
    return np.where(np.abs(w) < cast(0.5, dtype), a + w * (b - a), b - (b - a) * (one - w))


@aten("addcmul")
def addcmul(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    x, a, b = together(self, tensor1, tensor2)
    return x + _scaled(a * b, value)


@aten("addcdiv")
def addcdiv(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    x, a, b = together(self, tensor1, tensor2)
    return x + (a / b if _is_one(value) else cast(value, x.dtype) * a / b)


def _comparison(
    name: str, function: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any], *aliases: str
) -> None:
    @aten(name, *aliases)
    def compare(self: Any, other: Any) -> Any:
        if all_numbers((self, other)):
            return plain(self, other)
        return function(*together(self, other))


_comparison("eq", np.equal, operator.eq)
_comparison("ne", np.not_equal, operator.ne, "not_equal")
_comparison("lt", np.less, operator.lt, "less")
_comparison("le", np.less_equal, operator.le, "less_equal")
_comparison("gt", np.greater, operator.gt, "greater")
_comparison("ge", np.greater_equal, operator.ge, "greater_equal")


def _logical(name: str, function: Callable[[Any, Any], Any]) -> None:
    @aten(name)
    def combine(self: Any, other: Any) -> Any:
        return function(cast(self, BOOL), cast(other, BOOL))


_logical("logical_and", np.logical_and)
_logical("logical_or", np.logical_or)
_logical("logical_xor", np.logical_xor)


def _bitwise(function: Callable[[Any, Any], Any], *names: str) -> None:
    @aten(*names)
    def combine(self: Any, other: Any) -> Any:
        return function(*together(self, other))


_bitwise(np.bitwise_and, "bitwise_and", "__and__", "__rand__")
_bitwise(np.bitwise_or, "bitwise_or", "__or__", "__ror__")
_bitwise(np.bitwise_xor, "bitwise_xor", "__xor__", "__rxor__")


@aten("bitwise_left_shift", "__lshift__", "__rlshift__")
def left_shift(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    return a * np.exp2(b) if is_float(a.dtype) else np.left_shift(a, b)


@aten("bitwise_right_shift", "__rshift__", "__rrshift__")
def right_shift(self: Any, other: Any) -> Any:
    a, b = together(self, other)
    return a / np.exp2(b) if is_float(a.dtype) else np.right_shift(a, b)


@aten("where")
def where(condition: Any, self: Any = None, other: Any = None) -> Any:
    if self is None or other is None:
        raise refuse("where", "with a condition alone", "its result has as many rows as there are elements that hold")
    return np.where(cast(condition, BOOL), *together(self, other))


@aten("clamp", "clip")
def clamp(self: Any, min: Any = None, max: Any = None) -> Any:
    dtype = result_dtype(self, min, max)
    x: Any = cast(self, dtype)
    low, high = (None if v is None else cast(v, dtype) for v in (min, max))
    if low is not None and high is not None and not (is_tensor(min) or is_tensor(max)):
        return cast(np.clip(x, low, high), dtype)  # NumPy's clips bfloat16 as float32
    # Gradients at an edge are those of x.
    if low is not None:
        x = np.where((x >= low) | (x != x), x, low)
    if high is not None:
        x = np.where((x <= high) | (x != x), x, high)
    return x


@aten("clamp_min")
def clamp_min(self: Any, min: Any) -> Any:
    return clamp(self, min)


@aten("clamp_max")
def clamp_max(self: Any, max: Any) -> Any:
    return clamp(self, None, max)


@aten("isclose")
def isclose(self: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    a, b = together(self, other)
    close = a == b
    if equal_nan:
        close = close | ((a != a) & (b != b))
    if rtol == 0 and atol == 0:
        return close
    x, y = (cast(v, float_dtype(v)) for v in (a, b))
    tolerance = cast(atol, x.dtype) + np.abs(cast(rtol, x.dtype) * y)
    distance = np.abs(x - y)
    return close | (np.isfinite(distance) & (distance <= tolerance))
