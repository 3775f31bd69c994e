"""The remainder of a division rounded towards zero, exactly as C's ``fmod`` gives it."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import math

from .expander import K

# Quotients below it are off by one at most once they are rounded, and whole parts of them exact.
LIMIT = {32: 2.0**22, 64: 2.0**51}


def remainder(k: K, x: ir.Value, y: ir.Value) -> ir.Value:
    """One division and one fused multiply-add; libm, in a call, for the largest quotients.

    The difference that the fused operation rounds is a number of the type, as is that between it
    and the divisor: nothing is rounded but the quotient. Needs fused multiply-add.
    """
    a, b = k.abs(x), k.abs(y)
    quotient = k.div(a, b)
    whole = math.trunc(quotient)
    rest = k.exact_fma(k.neg(whole), b, a)
    # A quotient may be rounded up to a whole number, and down where a reciprocal stands for it.
    rest = k.select(k.lt(rest, 0.0), k.exact_add(rest, b), rest)
    rest = k.select(k.lt(rest, b), rest, k.exact_sub(rest, b))
    usual = k.copysign(k.select(k.lt(a, b), a, rest), x)
    rare = ir.Operation.create("arith.remf", results=[x.type], operands=[x, y]).result
    is_far = k.gt(quotient, LIMIT[32 if k.is_f32 else 64])
    return k.rarely(is_far, rare, usual)
