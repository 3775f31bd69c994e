"""Elementwise ops of StableHLO and CHLO, constants and conversions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import ShapeError, TraceError
from ....ir.dtypes import dtype_of
from ...numpy.handlers.creation import full_of
from ...numpy.tracing.operators import op
from ..array_values import constant_or_created, is_constant, is_number, is_size
from ..interpreter import NodeContext
from ..operator_table import OperatorTable
from ..size_values import all_sizes, as_array
from .hlo_values import arrays, in_trace, settled_sizes

STABLEHLO = OperatorTable("StableHLO", home=(f"{__package__}.all_stablehlo", "STABLEHLO"))

_UNARY = {
    "abs": "abs",
    "cbrt": None,
    "ceil": "ceil",
    "cosine": "cos",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "floor": "floor",
    "imag": "imag",
    "is_finite": "isfinite",
    "log": "log",
    "log_plus_one": "log1p",
    "logistic": "sigmoid",
    "negate": "neg",
    "real": "real",
    "round_nearest_even": "rint",
    "rsqrt": "rsqrt",
    "sign": "sign",
    "sine": "sin",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
_CHLO = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cosh", "erf", "sinh", "square", "tan")
_BINARY = {"atan2": "atan2", "maximum": "maximum", "minimum": "minimum"}
_OF_SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "maximum": lambda x, y: np.maximum(x, y),
    "minimum": lambda x, y: np.minimum(x, y),
    "and": lambda x, y: bool(x) and bool(y),
    "or": lambda x, y: bool(x) or bool(y),
    "xor": lambda x, y: bool(x) != bool(y),
}
_OF_SIZE: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "negate": operator.neg,
    "sign": lambda x: 1 if x > 0 else -1 if x < 0 else 0,
}
_COMPARED = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_PYTHON = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def _register_unary(name: str, ours: str) -> None:
    @STABLEHLO.register(name)
    def unary(call: NodeContext, x: Any, **_: Any) -> Any:
        of_size = _OF_SIZE.get(name.removeprefix("stablehlo."))
        if of_size is not None and is_number(x) and x.dtype.kind == "i":
            return x.dtype.type(of_size(x))
        if of_size is not None and is_size(x) and type(x) is not tuple:
            return of_size(x)
        return op(ours, *arrays((x,)))


for _name, _ours in _UNARY.items():
    if _ours is not None:
        _register_unary(f"stablehlo.{_name}", _ours)
for _name in _CHLO:
    _register_unary(f"chlo.{_name}", _name)


def _of_sizes(call: NodeContext, operands: tuple, compute: Callable[..., Any] | None) -> Any:
    """The result on sizes, an int or a tuple; None where the operands are none."""
    if compute is None:
        return None
    if all(map(is_number, operands)) and operands[0].dtype.kind in "iub":
        with np.errstate(all="ignore"):
            return np.asarray(compute(*operands)).astype(_dtype(call))[()]
    ints = all_sizes(operands)
    if ints is None:
        return None
    if not any(type(x) is tuple for x in ints):
        return compute(*ints)
    count = max(len(x) for x in ints if type(x) is tuple)
    return tuple(compute(*xs) for xs in zip(*((x if type(x) is tuple else (x,) * count) for x in ints), strict=True))


def _dtype(call: NodeContext) -> np.dtype:
    """The dtype of the result, which types of tensors always tell."""
    assert call.type is not None and call.type.dtype is not None
    return call.type.dtype


def _arithmetic(name: str, plain: str, of_bools: str | None) -> None:
    @STABLEHLO.register(f"stablehlo.{name}")
    def binary(call: NodeContext, x: Any, y: Any, **_: Any) -> Any:
        are_bits = name in ("and", "or", "xor") and call.type is not None and call.type.dtype != np.bool_
        result = None if are_bits else _of_sizes(call, (x, y), _OF_SIZES.get(name))
        if result is not None:
            return result
        x, y = arrays((x, y))
        if x.dtype == np.bool_:
            if of_bools is None:
                raise TraceError(f"stablehlo.{name} of booleans is not supported")
            return op(of_bools, x, y)
        return op(plain, x, y)


_arithmetic("add", "add", "logical_or")
_arithmetic("subtract", "sub", None)
_arithmetic("multiply", "mul", "logical_and")
_arithmetic("maximum", "maximum", "logical_or")
_arithmetic("minimum", "minimum", "logical_and")
_arithmetic("and", "bitwise_and", "logical_and")
_arithmetic("or", "bitwise_or", "logical_or")
_arithmetic("xor", "bitwise_xor", "logical_xor")
_arithmetic("atan2", "atan2", None)


@STABLEHLO.register("stablehlo.not")
def _not(call: NodeContext, x: Any) -> Any:
    if is_size(x) and type(x) is not tuple and call.type is not None and call.type.dtype == np.bool_:
        return not x
    (x,) = arrays((x,))
    return op("logical_not" if x.dtype == np.bool_ else "bitwise_not", x)


@STABLEHLO.register("stablehlo.divide")
def _divide(call: NodeContext, x: Any, y: Any) -> Any:
    """Quotients; those of integers are cut towards zero, and -1 where the divisor is 0."""
    ints = all_sizes((x, y))
    if ints is not None and not any(type(n) is tuple for n in ints):
        return ints[0] // ints[1]  # of sizes, which are not negative
    x, y = arrays((x, y))
    if x.dtype.kind not in "iu":
        return op("div", x, y)
    safe = np.where(y == 0, np.ones((), y.dtype), y)
    quotient = op("floor_div", x, safe)
    if x.dtype.kind == "i":
        is_inexact = op("ne", op("mul", quotient, safe), x)
        quotient = np.where(is_inexact & (quotient < 0), quotient + np.ones((), x.dtype), quotient)
    return np.where(y == 0, ~np.zeros((), x.dtype), quotient)


@STABLEHLO.register("stablehlo.remainder")
def _remainder(call: NodeContext, x: Any, y: Any) -> Any:
    """Remainders with the sign of the dividend, which they are themselves where an integer divisor is 0."""
    ints = all_sizes((x, y))
    if ints is not None and not any(type(n) is tuple for n in ints):
        return ints[0] % ints[1]
    x, y = arrays((x, y))
    if x.dtype.kind not in "iu":
        return op("fmod", x, y)
    return np.where(y == 0, x, op("fmod", x, np.where(y == 0, np.ones((), y.dtype), y)))


@STABLEHLO.register("stablehlo.power")
def _power(call: NodeContext, x: Any, y: Any) -> Any:
    x, y = arrays((x, y))
    if x.dtype.kind != "i":
        return op("pow", x, y)
    one = np.ones((), x.dtype)
    is_odd = op("bitwise_and", y, one) == one
    of_negative = np.where(x == one, one, np.where(x == -one, np.where(is_odd, -one, one), np.zeros((), x.dtype)))
    return np.where(y < 0, of_negative, op("pow", x, np.where(y < 0, np.zeros((), y.dtype), y)))


def _shift(name: str, ours: str, kind: str) -> None:
    @STABLEHLO.register(f"stablehlo.{name}")
    def shifted(call: NodeContext, x: Any, amount: Any) -> Any:
        """A shift; by as many bits as there are, or more, nothing but the sign is left, if even that."""
        x, amount = arrays((x, amount))
        dtype, bits = x.dtype, 8 * x.dtype.itemsize
        unsigned = np.dtype(f"u{dtype.itemsize}")
        number = x.astype(np.dtype(f"{kind}{dtype.itemsize}"))  # the same bits, as which the shift reads them
        is_whole = amount.astype(unsigned) >= bits
        most = bits - 1 if kind == "i" else 0
        few = np.where(is_whole, np.asarray(most, dtype), amount).astype(number.dtype)
        result = op(ours, number, few)
        if kind == "u":
            result = np.where(is_whole, np.zeros((), number.dtype), result)
        return result.astype(dtype)


_shift("shift_left", "shift_left", "u")
_shift("shift_right_logical", "shift_right", "u")
_shift("shift_right_arithmetic", "shift_right", "i")


@STABLEHLO.register("stablehlo.popcnt")
def _count_ones(call: NodeContext, x: Any) -> Any:
    """How many bits are 1, by sums of neighbours: of bits, of pairs, of groups of four, then of bytes."""
    dtype, unsigned = x.dtype, np.dtype(f"u{x.dtype.itemsize}")
    return _bits_of_ones(x.astype(unsigned)).astype(dtype)


def _bits_of_ones(x: Any) -> Any:
    dtype, bits = x.dtype, 8 * x.dtype.itemsize
    ones = (1 << bits) - 1

    def number(n: int) -> np.generic:
        return dtype.type(n)

    def shifted(y: Any, count: int) -> Any:
        return op("shift_right", y, number(count))

    x = x - op("bitwise_and", shifted(x, 1), number(ones // 3))
    x = op("bitwise_and", x, number(ones // 5)) + op("bitwise_and", shifted(x, 2), number(ones // 5))
    x = op("bitwise_and", x + shifted(x, 4), number(ones // 17))
    for count in (8, 16, 32):
        if count < bits:
            x = x + shifted(x, count)
    return op("bitwise_and", x, number(0x7F))


@STABLEHLO.register("stablehlo.count_leading_zeros")
def _count_leading_zeros(call: NodeContext, x: Any) -> Any:
    """How many bits are 0 before the first 1: all bits but those from that one on."""
    dtype, bits = x.dtype, 8 * x.dtype.itemsize
    below = x.astype(np.dtype(f"u{dtype.itemsize}"))
    for count in (1, 2, 4, 8, 16, 32):
        if count < bits:
            below = op("bitwise_or", below, op("shift_right", below, below.dtype.type(count)))
    return (below.dtype.type(bits) - _bits_of_ones(below)).astype(dtype)


@STABLEHLO.register("stablehlo.round_nearest_afz")
def _round_away(call: NodeContext, x: Any) -> Any:
    """Rounding of which halves go away from zero."""
    whole = op("trunc", x)
    is_up = op("abs", x - whole) >= np.asarray(0.5, x.dtype)
    return op("copysign", np.where(is_up, whole + op("sign", x), whole), x)


@STABLEHLO.register("stablehlo.cbrt")
def _cbrt(call: NodeContext, x: Any) -> Any:
    return np.cbrt(x)


@STABLEHLO.register("chlo.erfc")
def _erfc(call: NodeContext, x: Any) -> Any:
    raise TraceError("chlo.erfc is not supported: 1 - erf(x) loses its digits")


@STABLEHLO.register("stablehlo.complex")
def _complex(call: NodeContext, re: Any, im: Any) -> Any:
    dtype = np.dtype(np.complex64 if re.dtype == np.float32 else np.complex128)
    return re.astype(dtype) + op("mul", im.astype(dtype), np.asarray(1j, dtype))


@STABLEHLO.register("stablehlo.clamp")
def _clamp(call: NodeContext, low: Any, x: Any, high: Any) -> Any:
    ints = all_sizes((low, x, high))
    if ints is not None and not any(type(n) is tuple for n in ints):
        return np.minimum(np.maximum(ints[1], ints[0]), ints[2])
    low, x, high = arrays((low, x, high))
    return op("minimum", op("maximum", x, low), high)


@STABLEHLO.register("stablehlo.compare")
def _compare(
    call: NodeContext, x: Any, y: Any, *, comparison_direction: str, compare_type: str = "NOTYPE", **_: Any
) -> Any:
    if compare_type == "TOTALORDER":
        x, y = map(total_rank, arrays((x, y)))
    result = _of_sizes(call, (x, y), _PYTHON[comparison_direction])
    return op(_COMPARED[comparison_direction], *arrays((x, y))) if result is None else result


def total_rank(x: Any) -> Any:
    """Integers in the total order of floats: negative NaNs, numbers with -0 before 0, NaNs."""
    if x.dtype.kind in "iub":
        return x
    integer = np.dtype(f"i{x.dtype.itemsize}")
    bits = op("bitcast", x, dtype=dtype_of(integer))
    return np.where(bits < 0, op("bitwise_xor", bits, np.asarray(np.iinfo(integer).max, integer)), bits)


@STABLEHLO.register("stablehlo.select")
def _select(call: NodeContext, condition: Any, x: Any, y: Any) -> Any:
    if is_number(condition) or (is_size(condition) and type(condition) is not tuple):
        return x if condition else y
    condition = as_array(condition, np.dtype(bool))
    return np.where(condition, *arrays((x, y)))


@STABLEHLO.register("stablehlo.constant")
def _constant(call: NodeContext, *, value: Any, shape: tuple[int, ...]) -> Any:
    return full_of(value, shape, value.dtype)


@STABLEHLO.register("stablehlo.convert")
def _convert(call: NodeContext, x: Any) -> Any:
    """A conversion; floats too large for an integer become its limit, and NaN becomes 0."""
    dtype = _dtype(call)
    if is_size(x):
        return x if dtype.kind in "iu" else as_array(x, np.dtype(np.int64)).astype(dtype)
    if is_constant(x):
        return x.astype(dtype)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = op("real", x)
    if x.dtype.kind not in "iub" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
        above = wide >= np.asarray(math.ldexp(1.0, int(info.max).bit_length()), wide.dtype)
        below = wide <= np.asarray(float(info.min), wide.dtype)
        inside = op(
            "cast", np.where(above | below | np.isnan(wide), np.zeros((), wide.dtype), wide), dtype=dtype_of(dtype)
        )
        limits = np.where(below, np.asarray(info.min, dtype), inside)
        return np.where(above, np.asarray(info.max, dtype), limits)
    return op("cast", x, dtype=dtype_of(dtype))


@STABLEHLO.register("stablehlo.bitcast_convert")
def _bitcast(call: NodeContext, x: Any) -> Any:
    dtype = _dtype(call)
    if dtype.itemsize != x.dtype.itemsize:
        raise TraceError("stablehlo.bitcast_convert to another width is not supported")
    return x if dtype == x.dtype else op("bitcast", x, dtype=dtype_of(dtype))


@STABLEHLO.register("stablehlo.iota", "stablehlo.dynamic_iota")
def _iota(call: NodeContext, sizes: Any = None, *, iota_dimension: int) -> Any:
    assert call.type is not None and call.type.dtype is not None
    shape = call.type.shape if sizes is None else settled_sizes(sizes)
    assert shape is not None
    fixed = tuple(shape)
    if all(type(n) is int for n in fixed):
        return op("iota", shape=fixed, dtype=dtype_of(call.type.dtype), axis=iota_dimension)
    line = constant_or_created("arange", shape[iota_dimension], dtype=call.type.dtype)
    column = np.reshape(in_trace(line, fixed), tuple(-1 if d == iota_dimension else 1 for d in range(len(fixed))))
    return np.broadcast_to(column, fixed)


CUSTOM_CALLS: dict[str, Callable[..., Any]] = {}  # by name: those that are computations


@STABLEHLO.register("stablehlo.custom_call")
def _custom_call(call: NodeContext, *operands: Any, call_target_name: str, **attributes: Any) -> Any:
    """Assertions on sizes, hints on layouts, and the few computations that modules call so."""
    if call_target_name in CUSTOM_CALLS:
        return CUSTOM_CALLS[call_target_name](call, *operands)
    if call_target_name == "shape_assertion":
        if not bool(operands[0]):
            message = attributes.get("error_message", "sizes of the arguments are not what the module asserts")
            numbers = iter(operands[1:])
            raise ShapeError(_formatted(str(message), numbers))
        return ()
    if call_target_name in ("Sharding", "annotate_device_placement", "SPMDFullToShardShape", "SPMDShardToFullShape"):
        return operands[0]
    raise TraceError(f"stablehlo.custom_call of {call_target_name} is not supported")


def _formatted(message: str, numbers: Any) -> str:
    """The text of an assertion with the numbers in the place of ``{0}``, ``{1}`` …"""
    try:
        return message.format(*(int(n) if is_size(n) or is_number(n) else "?" for n in numbers))
    except (IndexError, KeyError, ValueError):
        return message


@STABLEHLO.register("stablehlo.optimization_barrier")
def _barrier(call: NodeContext, *operands: Any) -> Any:
    return operands[0] if len(operands) == 1 else operands
