"""Scalars as patterns of bits: shifts, representations of floats, and the signs of bf16, which has no operations.

Every function here emits at the current insertion point and location of the `mlir` bindings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dialect.ir.dtypes import BF16, I8, I16, I32, I64, U8, U16, U32, U64, DType
from .element import compute_type, emit

if TYPE_CHECKING:
    from .scalar import Scalar

SIGNED = {8: I8, 16: I16, 32: I32, 64: I64}
_UNSIGNED = {I8: U8, I16: U16, I32: U32, I64: U64}
_SIGN = -0x8000  # of bf16


def shl(x: Scalar, count: Scalar) -> Scalar:
    """Left shift; 0 where the count is negative or at least the width."""
    return _fits(x, count).select(x._op("arith.shli", count), 0)


def shr(x: Scalar, count: Scalar) -> Scalar:
    """Right shift; for counts negative or at least the width: 0, or the sign if signed."""
    if x.dtype.kind == "i":
        sign = x._op("arith.shrsi", x.const(x.dtype.bits - 1))
        return _fits(x, count).select(x._op("arith.shrsi", count), sign)
    return _fits(x, count).select(x._op("arith.shrui", count), 0)


def _fits(x: Scalar, count: Scalar) -> Scalar:
    """True where a count is below the width: one unsigned comparison, which refuses negative counts as well."""
    return type(x)(count.value, _UNSIGNED.get(count.dtype, count.dtype)) < x.dtype.bits


def bits(x: Scalar) -> Scalar:
    """A float's representation as a signed integer of the same width."""
    dtype = SIGNED[x.dtype.bits]
    if x.dtype is BF16:
        return type(x)(x.value, dtype)
    return type(x)(emit("arith.bitcast", compute_type(dtype), x.value), dtype)


def bitcast(x: Scalar, dtype: DType) -> Scalar:
    """The same bits as another dtype of this width; none of the two is complex or bool."""
    pattern = bits(x) if x.dtype.is_float else x
    if dtype.is_float and dtype is not BF16:
        return type(x)(emit("arith.bitcast", compute_type(dtype), pattern.value), dtype)
    return type(x)(pattern.value, dtype)


def negated(x: Scalar) -> Scalar:
    """-x of a bf16."""
    return type(x)((bits(x) ^ _SIGN).value, BF16)


def absolute(x: Scalar) -> Scalar:
    """The absolute value of a bf16."""
    return type(x)((bits(x) & ~_SIGN).value, BF16)


def with_sign(x: Scalar, other: Scalar) -> Scalar:
    """A bf16 with the sign of another one."""
    return type(x)((bits(absolute(x)) | (bits(other) & _SIGN)).value, BF16)
