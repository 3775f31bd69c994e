"""The error function. Own minimax fits; error bounds: `math.ULP_BOUNDS`."""

from __future__ import annotations

from mlir import ir

from .math_emit import K

# erf(x) / x = P / Q in x**2 for |x| <= 3.93, all coefficients positive; error 0.33 ulp
ERF_P = (2.041958850895753e-06, 0.00028480839682742953, 0.0037796292454004288,
         0.05279035121202469, 0.19078437983989716, 1.1283791065216064)  # fmt: skip
ERF_Q = (3.8003938243491575e-05, 0.0011652163229882717, 0.014997480437159538,
         0.11425774544477463, 0.5024109482765198, 1.0)  # fmt: skip


def erf(k: K, x: ir.Value) -> ir.Value:
    x = k.clamp(x, -3.93, 3.93)
    square = k.mul(x, x)
    numerator = k.mul(x, k.polynomial(square, ERF_P))
    return k.div(numerator, k.polynomial(square, ERF_Q))
