"""The error function. Own minimax fits; error bounds: `math.ULP_BOUNDS`."""

from __future__ import annotations

from mlir import ir

from .exp import exp, rational
from .expander import K

# erf(x) / x = P / Q in x**2 for |x| <= 3.95, error 0.33 ulp. P is 1 at 0; all coefficients are
# positive, and rounded to f32 by local search.
ERF_P = (1.7953974520423799e-06, 0.0002522981958463788, 0.003374934196472168, 0.04685976356267929, 0.16975808143615723)
ERF_Q = (
    3.3527412597322837e-05,
    0.0010375367710366845,
    0.013342306949198246,
    0.10152622312307358,
    0.4458526074886322,
    0.8862268924713135,
)
# erf(x) / x in x**2 for |x| <= 1; error 0.001 ulp
ERF_SMALL = (
    5.944983433746284e-11,
    -1.1365513300377592e-09,
    1.465784377306262e-08,
    -1.6350020430624823e-07,
    1.646097242553906e-06,
    -1.4925593486749647e-05,
    0.00012055331036263046,
    -0.0008548326978731067,
    0.0052239776247807995,
    -0.026866170645072903,
    0.11283791670954858,
    -0.3761263890318375,
    1.1283791670955126,
)
# erfc(x) * e**(x**2) in (x - 2) / (x + 2) for 1 <= x <= 6; error 0.02 ulp of 1
ERFC_LARGE = (
    -1.269319517731682e-05,
    -2.671767995716481e-05,
    2.7549340424721737e-05,
    0.00017427245496363705,
    4.3539634827897625e-05,
    -0.0009819744166260388,
    -0.0008471424003574853,
    0.006997461741427506,
    0.003732892389742225,
    -0.0789785810164912,
    0.24165819424253443,
    -0.42718584741395405,
    0.25539567631050575,
)


def erf(k: K, x: ir.Value) -> ir.Value:
    """A rational function in f32; in f64 a polynomial up to 1, then 1 - erfc."""
    if k.is_f32:
        return rational(k, x, 3.95, ERF_P, ERF_Q)
    a = k.min(k.abs(x), 6.0)
    square = k.square(a)
    small = k.mul(k.polynomial(square, ERF_SMALL), a)
    t = k.div(k.sub(a, 2.0), k.add(a, 2.0))
    complement = k.mul(k.polynomial(t, ERFC_LARGE), exp(k, k.neg(square)))
    return k.copysign(k.select(k.lt(a, 1.0), small, k.sub(1.0, complement)), x)
