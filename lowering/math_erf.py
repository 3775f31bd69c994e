"""The error function. Own minimax fits; error bounds: `math.ULP_BOUNDS`."""

from __future__ import annotations

from mlir import ir

from .math_emit import K

# erf(x) / x = P / Q in x**2 for |x| <= 3.93, error 0.33 ulp. All coefficients are positive, and
# rounded to f32 by local search, with 1 as the largest quotient.
ERF_P = (2.40063991441275e-06, 0.00033483642619103193, 0.0044435434974730015,
         0.06206328794360161, 0.2242967039346695, 1.3265855312347412)  # fmt: skip
ERF_Q = (4.46795420430135e-05, 0.0013698930852115154, 0.01763187162578106,
         0.1343277543783188, 0.5906625390052795, 1.175655722618103)  # fmt: skip


def erf(k: K, x: ir.Value) -> ir.Value:
    x = k.clamp(x, -3.93, 3.93)
    square = k.mul(x, x)
    numerator = k.mul(x, k.polynomial(square, ERF_P))
    return k.div(numerator, k.polynomial(square, ERF_Q))
