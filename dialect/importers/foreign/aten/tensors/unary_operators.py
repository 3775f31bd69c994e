"""Operators of one tensor, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ....numpy.capture.user_functions import op
from ....numpy.tracing.handler_tables import created
from ..aten_table import aten, refuse
from ..promotion import (
    BOOL,
    DEFAULT,
    INT64,
    cast,
    category,
    complex_dtype,
    float_dtype,
    is_integral,
    is_tensor,
    together,
    widened,
)


def _of_floats(name: str) -> Callable[[Any], Any]:
    """An op whose loops are SciPy's: it has none for narrow floats, which torch computes in float32."""
    function = op(name)

    def call(x: Any) -> Any:
        return cast(function(cast(x, widened(x.dtype))), x.dtype)

    return call


sigmoid = _of_floats("sigmoid")

# Functions of real and complex numbers, which make the default dtype of integers.
_OF_FLOATS: dict[str, Callable[[Any], Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": _of_floats("erf"),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "reciprocal": np.reciprocal,
    "rsqrt": op("rsqrt"),
    "sigmoid": sigmoid,
    "sin": np.sin,
    "sinc": lambda x: _sinc(x),
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "deg2rad": lambda x: x * cast(math.pi / 180.0, x.dtype),
    "rad2deg": lambda x: x * cast(180.0 / math.pi, x.dtype),
}
_ALIASES = {
    "acos": ("arccos",),
    "acosh": ("arccosh",),
    "asin": ("arcsin",),
    "asinh": ("arcsinh",),
    "atan": ("arctan",),
    "atanh": ("arctanh",),
    "erf": ("special_erf",),
    "exp2": ("special_exp2",),
    "expm1": ("special_expm1",),
    "log1p": ("special_log1p",),
    "sigmoid": ("special_expit",),
    "sinc": ("special_sinc",),
}


def function_of_floats(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of floats as one of any tensor: of integers it takes and gives the default dtype."""

    def call(self: Any) -> Any:
        return function(cast(self, float_dtype(self)))

    return call


for _name, _function in _OF_FLOATS.items():
    aten(_name, *_ALIASES.get(_name, ()))(function_of_floats(_function))


def _sinc(x: Any) -> Any:
    at_zero = x == 0
    scaled = np.where(at_zero, cast(1, x.dtype), x) * cast(math.pi, x.dtype)
    return np.where(at_zero, cast(1, x.dtype), np.sin(scaled) / scaled)


@aten("neg", "negative")
def neg(self: Any) -> Any:
    return -self


@aten("abs", "absolute")
def absolute(self: Any) -> Any:
    if not is_tensor(self):
        return abs(self)
    return np.copy(self) if self.dtype == BOOL else np.abs(self)


@aten("square")
def square(self: Any) -> Any:
    x = cast(self, INT64) if self.dtype == BOOL else self
    return x * x


@aten("sign")
def sign(self: Any) -> Any:
    if self.dtype == BOOL:
        return np.copy(self)
    signs = np.sign(self)  # NaN has none in torch
    return signs if is_integral(self.dtype) else np.where(self != self, cast(0, self.dtype), signs)


@aten("sgn")
def sgn(self: Any) -> Any:
    if category(self.dtype) < 3:
        return sign(self)
    size = np.abs(self)
    return np.where(
        size == 0, cast(0, self.dtype), self / cast(np.where(size == 0, cast(1, size.dtype), size), self.dtype)
    )


@aten("signbit")
def signbit(self: Any) -> Any:
    return self < 0 if is_integral(self.dtype) and self.dtype != BOOL else np.signbit(cast(self, float_dtype(self)))


@aten("isreal")
def isreal(self: Any) -> Any:
    return np.imag(self) == 0 if category(self.dtype) == 3 else np.ones_like(self, dtype=bool)


@aten("isnan")
def isnan(self: Any) -> Any:
    return self != self


@aten("isinf")
def isinf(self: Any) -> Any:
    return np.isinf(self)


@aten("isfinite")
def isfinite(self: Any) -> Any:
    return np.isfinite(self)


@aten("isposinf")
def isposinf(self: Any) -> Any:
    return np.zeros_like(self, dtype=bool) if is_integral(self.dtype) else self == cast(math.inf, self.dtype)


@aten("isneginf")
def isneginf(self: Any) -> Any:
    return np.zeros_like(self, dtype=bool) if is_integral(self.dtype) else self == cast(-math.inf, self.dtype)


def _whole(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A rounding, which leaves integers as they are."""

    def call(self: Any) -> Any:
        if not is_tensor(self):
            return function(self)
        return np.copy(self) if is_integral(self.dtype) else function(self)

    return call


aten("floor")(_whole(lambda x: np.floor(x) if is_tensor(x) else math.floor(x)))
aten("ceil")(_whole(lambda x: np.ceil(x) if is_tensor(x) else math.ceil(x)))
trunc = aten("trunc", "fix")(_whole(np.trunc))


@aten("round")
def round_(self: Any, *, decimals: int = 0) -> Any:
    if not is_tensor(self):
        return round(self, decimals) if decimals else round(self)
    if is_integral(self.dtype):
        return np.copy(self)
    if not decimals:
        return np.rint(self)
    scale = cast(10.0 ** abs(decimals), self.dtype)
    return np.rint(self * scale) / scale if decimals > 0 else np.rint(self / scale) * scale


@aten("frac")
def frac(self: Any) -> Any:
    return self - np.trunc(self)


@aten("logit", "special_logit")
def logit(self: Any, eps: float | None = None) -> Any:
    x = cast(self, float_dtype(self))
    if eps is not None:
        low, high = cast(eps, x.dtype), cast(1 - eps, x.dtype)
        x = np.where(x < low, low, np.where(x > high, high, x))
    return np.log(x) - np.log1p(-x)  # whose gradients at 0 and 1 are infinite


@aten("bitwise_not", "__invert__")
def bitwise_not(self: Any) -> Any:
    return np.invert(self)


@aten("logical_not")
def logical_not(self: Any) -> Any:
    return np.logical_not(self)


@aten("positive", "alias", "detach", "detach_", "lift_fresh", "lift", "resolve_conj", "resolve_neg")
def same(self: Any, *, memory_format: Any = None) -> Any:
    return self


@aten("contiguous")
def contiguous(self: Any, *, memory_format: Any = None) -> Any:
    # A copy, or the tensor itself, by its layout: writes that would tell are refused.
    return created("ascontiguousarray", self) if self.ndim else self


@aten("clone", "lift_fresh_copy", "alias_copy", "detach_copy")
def clone(self: Any, *, memory_format: Any = None) -> Any:
    return np.copy(self)


@aten("conj", "_conj", "conj_physical", "_conj_physical")
def conj(self: Any) -> Any:
    return np.conj(self) if category(self.dtype) == 3 else self


@aten("real")
def real(self: Any) -> Any:
    return np.real(self) if category(self.dtype) == 3 else self


@aten("imag")
def imag(self: Any) -> Any:
    if category(self.dtype) != 3:
        raise refuse("imag", "on real tensors", "imaginary parts of real numbers are no tensor in torch")
    return np.imag(self)


@aten("angle")
def angle(self: Any) -> Any:
    if category(self.dtype) == 3:
        return np.arctan2(np.imag(self), np.real(self))
    x = cast(self, float_dtype(self))
    pi, zero = cast(math.pi, x.dtype), cast(0, x.dtype)
    return np.where(x != x, x, np.where(x < zero, pi, zero))


@aten("nan_to_num")
def nan_to_num(self: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    dtype = self.dtype
    if is_integral(dtype):
        return np.copy(self)
    if category(dtype) == 3:
        raise refuse("nan_to_num", "on complex tensors")
    limits = ml_dtypes.finfo(dtype)
    x = np.where(self != self, cast(0.0 if nan is None else nan, dtype), self)
    x = np.where(self == cast(math.inf, dtype), cast(float(limits.max) if posinf is None else posinf, dtype), x)
    return np.where(self == cast(-math.inf, dtype), cast(float(limits.min) if neginf is None else neginf, dtype), x)


@aten("_to_copy")
def to_copy(self: Any, *, dtype: Any = None, memory_format: Any = None) -> Any:
    return np.copy(self) if dtype is None or dtype == self.dtype else cast(self, dtype)


@aten("to")
def to(self: Any, *options: Any, dtype: Any = None, copy: bool = False, memory_format: Any = None) -> Any:
    for option in options:
        if is_tensor(option):
            dtype = option.dtype
        elif isinstance(option, np.dtype):
            dtype = option
    return self if dtype is None else cast(self, dtype)


@aten("type_as")
def type_as(self: Any, other: Any) -> Any:
    return cast(self, other.dtype)


for _name, _dtype in (
    ("float", DEFAULT),
    ("double", np.dtype(np.float64)),
    ("half", np.dtype(np.float16)),
    ("long", INT64),
    ("int", np.dtype(np.int32)),
    ("short", np.dtype(np.int16)),
    ("char", np.dtype(np.int8)),
    ("byte", np.dtype(np.uint8)),
    ("bool", BOOL),
):
    aten(_name)(lambda self, memory_format=None, dtype=_dtype: cast(self, dtype))


@aten("view_as_real")
def view_as_real(self: Any) -> Any:
    return np.stack((np.real(self), np.imag(self)), -1)


@aten("view_as_complex")
def view_as_complex(self: Any) -> Any:
    return complex_of(self[..., 0], self[..., 1])


@aten("complex")
def complex_of(real: Any, imag: Any) -> Any:
    re, im = np.broadcast_arrays(*together(real, imag))
    if re.dtype.itemsize < 4:
        raise refuse("complex", f"on {re.dtype}", "convert to float32 first")
    if not re.ndim:  # parts of a number cannot be written
        return np.reshape(complex_of(np.reshape(re, (1,)), np.reshape(im, (1,))), ())
    out = created("zeros", tuple(re.shape), complex_dtype(re.dtype))
    out.real[...] = re
    out.imag[...] = im
    return out


@aten("polar")
def polar(abs: Any, angle: Any) -> Any:
    return complex_of(abs * np.cos(angle), abs * np.sin(angle))
