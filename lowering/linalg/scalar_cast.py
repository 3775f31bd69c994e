"""`Scalar.cast`: NumPy's ``astype`` for one element, without poison.

LLVM leaves float -> integer conversions undefined for NaN and for values out of range.  NumPy
compiles them to x86's ``cvtt*``, whose answer for those is the smallest integer; narrower types
take the low bits of a wider conversion.  The selects here reproduce that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...dialect.errors import LoweringError
from ...dialect.ir.dtypes import BF16, BOOL, F16, F32, F64, I32, I64, U32, U64, DType
from .element import HALF, Number, compute_type, constant_value, emit

if TYPE_CHECKING:
    from .scalar import Scalar


def cast(x: Scalar, to: DType) -> Scalar:
    """``x`` converted to another dtype.

    Raises LoweringError for complex numbers as real ones, of which NumPy warns.
    """
    if x.dtype.is_complex and not to.is_complex and to is not BOOL:
        raise LoweringError(f"no kernel is generated for casts from {x.dtype} to {to}")
    if x.dtype is to:
        return x
    number = None
    if x.known is not None:
        with np.errstate(all="ignore"):
            number = np.asarray(x.known).astype(x.dtype.numpy).astype(to.numpy).item()
        if not to.is_complex:
            return _constant(x, number, to)
    if to.is_complex:
        result = x.joined(cast(x.real, to.part), cast(x.imag, to.part))
        result.known = number
        return result
    if to is BOOL:
        return x.ne(0)
    if x.dtype is BOOL:
        return x.select(_constant(x, 1, to), 0)
    if x.dtype.is_float:
        return _float_to_float(x, to) if to.is_float else _float_to_int(x, to)
    return _int_to_float(x, to) if to.is_float else _int_to_int(x, to)


def _constant(x: Scalar, number: Number, to: DType) -> Scalar:
    return type(x)(constant_value(number, to), to, known=number)


def _convert(name: str, x: Scalar, to: DType) -> Scalar:
    return type(x)(emit(f"arith.{name}", compute_type(to), x.value), to)


def _int_to_int(x: Scalar, to: DType) -> Scalar:
    if to.bits == x.dtype.bits:
        return type(x)(x.value, to)
    if to.bits < x.dtype.bits:
        return _convert("trunci", x, to)
    return _convert("extsi" if x.dtype.kind == "i" else "extui", x, to)


def _int_to_float(x: Scalar, to: DType) -> Scalar:
    if to in HALF:
        return _int_to_float(x, F32).cast(to)
    return _convert("sitofp" if x.dtype.kind == "i" else "uitofp", x, to)


def _float_to_float(x: Scalar, to: DType) -> Scalar:
    if x.dtype is BF16:
        return _bf16_to_f32(x).cast(to)
    if x.dtype is F16:
        return _convert("extf", x, F32).cast(to)
    if to is BF16 and x.dtype is F32:
        return _f32_to_bf16(x)
    if to in HALF and x.dtype is F64:
        return (_round_to_odd(x) if to is F16 else _convert("truncf", x, F32)).cast(to)
    return _convert("extf" if to.bits > x.dtype.bits else "truncf", x, to)


def _bf16_to_f32(x: Scalar) -> Scalar:
    """A bf16 is the upper half of an f32."""
    wide = _convert("extui", x, U32)
    bits = wide._op("arith.shli", wide.const(16))
    return type(x)(emit("arith.bitcast", compute_type(F32), bits.value), F32)


def _f32_to_bf16(x: Scalar) -> Scalar:
    """Rounded to nearest, ties to even."""
    bits = type(x)(x.bits().value, U32)
    sixteen = bits.const(16)
    upper = bits._op("arith.shrui", sixteen)
    rounded = (bits + (upper & 1) + 0x7FFF)._op("arith.shrui", sixteen)
    # Rounding would carry some NaNs into infinity or zero.
    return _convert("trunci", x.isnan().select(upper | 0x40, rounded), BF16)


def _round_to_odd(x: Scalar) -> Scalar:
    """f64 -> f32, rounded to odd, so that a second rounding, to f16, gives the nearest f16.

    A direct f64 -> f16 conversion is a call into the compiler's run-time library on x86.
    """
    near = _convert("truncf", x, F32)
    back = _convert("extf", near, F64)
    bits = near.bits()
    towards_zero = bits - (abs(back) > abs(x)).cast(I32)
    # NaN compares neither below nor above, so it stays as it is.
    inexact = (back < x) | (back > x)
    odd = inexact.select(towards_zero | 1, bits)
    return type(x)(emit("arith.bitcast", compute_type(F32), odd.value), F32)


def _float_to_int(x: Scalar, to: DType) -> Scalar:
    if x.dtype in HALF:
        x = x.cast(F32)
    if to is U64:
        big = x >= 2.0**63
        low = _truncate(x, I64)
        # `-` would permit contraction, which may change the value.
        shifted = x._op("arith.subf", x.const(2.0**63))
        high = _truncate(shifted, I64) ^ -(2**63)
        return big.select(high, low).cast(U64)
    wide = I64 if to in (U32, I64) else I32
    return _truncate(x, wide).cast(to)


def _truncate(x: Scalar, to: DType) -> Scalar:
    """x86's ``cvttss2si``/``cvttsd2si``: the smallest integer for whatever does not fit."""
    fits = abs(x) < 2.0 ** (to.bits - 1)
    return fits.select(_convert("fptosi", x, to), -(2 ** (to.bits - 1)))
