"""ONNX's elementwise operators: arithmetic, comparisons, logic and functions of one number."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.capture import user_functions
from ....numpy.neural.layer_inputs import narrowed, widened
from ...array_values import is_traced
from ...size_values import as_array, each, quotient
from ..onnx_table import onnx_op
from ..onnx_texts import Texts


def erf(x: Any) -> Any:
    """The error function in the dtype of ``x``, as ONNX has it; SciPy's is wider for halves."""
    return narrowed(user_functions.erf(widened(x)[0]), x.dtype)


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))`` in the dtype of ``x``, as ONNX has it; SciPy's is wider for halves."""
    return narrowed(user_functions.sigmoid(widened(x)[0]), x.dtype)


_UNARY: dict[str, Callable[[Any], Any]] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BitwiseNot": np.bitwise_not,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": erf,
    "Exp": np.exp,
    "Floor": np.floor,
    "IsNaN": np.isnan,
    "Log": np.log,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sigmoid": sigmoid,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
_BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any] | None]] = {
    "Add": (np.add, operator.add),
    "And": (np.logical_and, lambda a, b: b if a else a),
    "BitwiseAnd": (np.bitwise_and, None),
    "BitwiseOr": (np.bitwise_or, None),
    "BitwiseXor": (np.bitwise_xor, None),
    "Equal": (np.equal, operator.eq),
    "Greater": (np.greater, operator.gt),
    "GreaterOrEqual": (np.greater_equal, operator.ge),
    "Less": (np.less, operator.lt),
    "LessOrEqual": (np.less_equal, operator.le),
    "Mul": (np.multiply, operator.mul),
    "Or": (np.logical_or, lambda a, b: a if a else b),
    "PRelu": (lambda x, slope: np.where(x < 0, x * slope, x), None),
    "Sub": (np.subtract, operator.sub),
    "Xor": (np.logical_xor, operator.ne),
}
_SIZES_OF_ONE: dict[str, Callable[[Any], Any]] = {"Abs": abs, "Neg": operator.neg, "Not": operator.not_}


def _register_unary(name: str, function: Callable[[Any], Any]) -> None:
    number = _SIZES_OF_ONE.get(name)

    def sizes(call: Any, x: Any, /) -> Any:
        return NotImplemented if number is None else each(number, x)

    @onnx_op(name, sizes=sizes)
    def handler(call: Any, x: Any, /) -> Any:
        return function(x)


def _register_binary(name: str, function: Callable, number: Callable | None) -> None:
    def sizes(call: Any, a: Any, b: Any, /) -> Any:
        return NotImplemented if number is None else each(number, a, b)

    @onnx_op(name, sizes=sizes)
    def handler(call: Any, a: Any, b: Any, /) -> Any:
        return function(a, b)


for _name, _function in _UNARY.items():
    _register_unary(_name, _function)
for _name, (_of_arrays, _of_sizes) in _BINARY.items():
    _register_binary(_name, _of_arrays, _of_sizes)


@onnx_op("profuse.Aligned")
def _aligned(call: Any, x: Any, y: Any, /, *, axis: int) -> Any:
    """The second operand of an operator before version 7, so that it broadcasts along the first one's axes."""
    behind = x.ndim - axis % max(x.ndim, 1) - y.ndim
    return np.reshape(y, (*y.shape, *(1,) * behind)) if behind > 0 else y


@onnx_op("PRelu-1")
def _prelu_of_channels(call: Any, x: Any, slope: Any, /) -> Any:
    """Before version 7 a vector was the slopes of channels."""
    if slope.ndim == 1 and x.ndim > 2:
        slope = np.reshape(slope, (-1, *(1,) * (x.ndim - 2)))
    return np.where(x < 0, x * slope, x)


@onnx_op("Identity", whole=True)
def _identity(call: Any, x: Any, /) -> Any:
    return x


def _div_sizes(call: Any, a: Any, b: Any, /) -> Any:
    return each(quotient, a, b)


@onnx_op("Div", sizes=_div_sizes)
def _div(call: Any, a: Any, b: Any, /) -> Any:
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    q = np.floor_divide(a, b)
    if a.dtype.kind == "u":
        return q
    # NumPy's rounds down, ONNX's to zero.
    inexact = (np.multiply(q, b) != a) & ((a < 0) != (b < 0))
    return q + inexact.astype(q.dtype)


def _mod_sizes(call: Any, a: Any, b: Any, /, *, fmod: int) -> Any:
    return NotImplemented if fmod else each(operator.mod, a, b)


@onnx_op("Mod", sizes=_mod_sizes)
def _mod(call: Any, a: Any, b: Any, /, *, fmod: int = 0) -> Any:
    return np.fmod(a, b) if fmod else np.remainder(a, b)


@onnx_op("Pow")
def _pow(call: Any, x: Any, y: Any, /) -> Any:
    real = x.dtype.kind in "fV"
    if real and isinstance(y, np.generic):
        exponent = y.item()
        return x ** (float(exponent) if isinstance(exponent, int) else exponent)
    if real:
        y = y if y.dtype == x.dtype else y.astype(x.dtype)
        return np.power(x, y)
    if x.dtype.kind in "iu" and y.dtype.kind == "i" and not is_traced(y) and np.min(y, initial=0) < 0:
        raise TraceError("Pow of integers has a negative exponent")
    if y.dtype.kind in "iu":
        return np.power(x.astype(np.result_type(x.dtype, y.dtype)), y).astype(x.dtype)
    return np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


@onnx_op("BitShift")
def _bit_shift(call: Any, a: Any, b: Any, /, *, direction: str) -> Any:
    return np.left_shift(a, b) if direction == "LEFT" else np.right_shift(a, b)


@onnx_op("IsInf")
def _is_inf(call: Any, x: Any, /, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    is_infinite = np.isinf(x)
    if not detect_negative:
        is_infinite = is_infinite & (x > 0)
    return is_infinite if detect_positive else is_infinite & (x < 0)


def _where_sizes(call: Any, condition: Any, a: Any, b: Any, /) -> Any:
    return each(lambda c, x, y: x if c else y, condition, a, b)


@onnx_op("Where", sizes=_where_sizes)
def _where(call: Any, condition: Any, a: Any, b: Any, /) -> Any:
    return np.where(condition, a, b)


def _extreme(number: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def sizes(call: Any, *operands: Any) -> Any:
        return functools.reduce(functools.partial(each, number), operands)

    return sizes


@onnx_op("Max", sizes=_extreme(lambda a, b: a if a >= b else b))
def _max(call: Any, /, *operands: Any) -> Any:
    return functools.reduce(np.maximum, operands)


@onnx_op("Min", sizes=_extreme(lambda a, b: a if a <= b else b))
def _min(call: Any, /, *operands: Any) -> Any:
    return functools.reduce(np.minimum, operands)


@onnx_op("Sum")
def _sum(call: Any, /, *operands: Any) -> Any:
    return functools.reduce(np.add, operands)


@onnx_op("Mean")
def _mean(call: Any, /, *operands: Any) -> Any:
    return functools.reduce(np.add, operands) / float(len(operands))


@onnx_op("Clip")
def _clip(
    call: Any, x: Any, low: Any = None, high: Any = None, /, *, min: float | None = None, max: float | None = None
) -> Any:
    # The bounds were attributes once. Where they cross, the upper one counts.
    low, high = (min if low is None else low), (max if high is None else high)
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@onnx_op("profuse.Result", whole=True, texts=True)
def _result(call: Any, x: Any, /, *, texts: bool = False) -> Any:
    if isinstance(x, Texts) != texts:
        raise TraceError(f"the model says that this is {'texts' if texts else 'no text'}, and it is not so")
    return x.places if texts else as_array(x)
