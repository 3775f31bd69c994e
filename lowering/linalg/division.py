"""Integer and float division with NumPy's conventions, and integer powers.

x86's ``idiv`` traps on a zero divisor and on ``INT_MIN / -1``, so no divisor reaches a division
before a select has replaced those cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dialect.errors import InternalError
from ...dialect.ir.dtypes import BOOL, F32
from .element import HALF

if TYPE_CHECKING:
    from .scalar import Scalar


def floor_divmod(n: Scalar, d: Scalar) -> tuple[Scalar, Scalar]:
    """Quotient rounded down and remainder with the divisor's sign (CSE drops an unused one)."""
    if n.dtype.is_float:
        return _float_divmod(n, d)
    shift = power_of_two(int(d.known or 0))
    if n.dtype.kind == "i" and shift is not None:
        # Bits of two's complement are rounded down, and LLVM would not find that by itself.
        return n._op("arith.shrsi", n.const(shift)), n & (int(d.known) - 1)
    quotient, remainder, zero = _divide(n, d)
    if n.dtype.kind == "i":
        wrong = remainder.ne(0) & ((remainder ^ d) < 0)
        quotient = quotient - wrong.cast(n.dtype)
        remainder = remainder + wrong.select(d, 0)
    if zero is not None:
        quotient = zero.select(0, quotient)
    return quotient, remainder


def power_of_two(number: int) -> int | None:
    """k for 2**k; None for other numbers."""
    return number.bit_length() - 1 if number > 0 and not number & (number - 1) else None


def fmod(n: Scalar, d: Scalar) -> Scalar:
    """Remainder of the division rounded towards zero."""
    if n.dtype.is_float:
        return n._float("arith.remf", d)
    return _divide(n, d)[1]


def _divide(n: Scalar, d: Scalar) -> tuple[Scalar, Scalar, Scalar | None]:
    """Truncating quotient and remainder, and whether the divisor was zero (None: never)."""
    if n.dtype is BOOL:
        raise InternalError("bool division is undefined")
    signed = n.dtype.kind == "i"
    zero: Scalar | None = None
    if d.known is None or d.known in (0, -1):
        zero = d.eq(0)
        unsafe = zero
        if signed:
            # The quotient by 1 equals the wrapped quotient of INT_MIN by -1.
            lowest = n.eq(-(1 << (n.dtype.bits - 1)))
            unsafe = zero | (lowest & d.eq(-1))
        d = unsafe.select(1, d)
    quotient = n._op("arith.divsi" if signed else "arith.divui", d)
    return quotient, n - quotient * d, zero


def _float_divmod(n: Scalar, d: Scalar) -> tuple[Scalar, Scalar]:
    """NumPy's ``npy_divmod``, without contraction; a zero divisor gives n / d and NaN."""
    if n.dtype in HALF:
        quotient, remainder = _float_divmod(n.cast(F32), d.cast(F32))
        return quotient.cast(n.dtype), remainder.cast(n.dtype)
    ratio = n._op("arith.divf", d)
    mod = n._op("arith.remf", d)
    div = n._op("arith.subf", mod)._op("arith.divf", d)
    wrong = mod.ne(0) & ((d < 0) ^ (mod < 0))
    fixed_mod = wrong.select(mod._op("arith.addf", d), mod)
    div = wrong.select(div._op("arith.subf", div.const(1.0)), div)
    remainder = mod.eq(0).select(mod.const(0.0).math("copysign", d), fixed_mod)
    floor = div.math("floor")
    up = div._op("arith.subf", floor) > 0.5
    floor = up.select(floor._op("arith.addf", floor.const(1.0)), floor)
    floor = div.eq(0).select(div.const(0.0).math("copysign", ratio), floor)
    by_zero = d.eq(0)
    return by_zero.select(ratio, floor), by_zero.select(mod, remainder)


def ipow(base: Scalar, exponent: Scalar) -> Scalar:
    """Wrapping integer power; 1 for a negative exponent."""
    if exponent.known is not None and exponent.known >= 0:
        return _constant_power(base, int(exponent.known))
    if base.dtype.kind != "i":
        # `ipowi` takes its exponent as signed; half of it is not negative.
        half = base._op("math.ipowi", exponent._op("arith.shrui", exponent.const(1)))
        return half * half * (exponent & 1).ne(0).select(base, 1)
    return base._op("math.ipowi", exponent.maximum(0))


def _constant_power(base: Scalar, exponent: int) -> Scalar:
    result: Scalar | None = None
    square = base
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return base.const(1) if result is None else result
