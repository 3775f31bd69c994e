"""Exponential family: exp exp2 expm1 sinh cosh tanh.

Cody–Waite reduction x = n*ln2 + r with |r| <= ln2/2, own minimax polynomials (Remez) on that
interval, then scaling by 2**n. Error bounds: `math.ULP_BOUNDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log

from mlir import ir

from .expander import K

LOG2_E = 1.4426950408889634
# ln2 in two parts; the first has trailing zeros, so that n times it is exact.
LN2 = {32: (0.693359375, -2.1219444005469058277e-4), 64: (6.93147180369123816490e-01, 1.90821492927058770002e-10)}

# (e**r - 1 - r) / r**2 on |r| <= ln2/2; error 0.05 ulp in f32, 0.03 ulp in f64
EXP_TAIL = {
    32: (1.3814627891406417e-03, 8.368710055947304e-03, 4.166838526725769e-02, 0.1666652113199234, 0.4999999403953552),
    64: (
        2.499974600296662e-08,
        2.7630206604945257e-07,
        2.7557587292845786e-06,
        2.4801493228908246e-05,
        0.00019841269505688834,
        0.0013888888943488398,
        0.008333333333494767,
        0.04166666666653078,
        0.16666666666666413,
        0.500000000000001,
    ),
}

# (2**r - 1) / r on |r| <= 1/2; error 0.03 ulp
EXP2 = {
    32: (
        1.5353075286839157e-04,
        1.3398872688412666e-03,
        9.61843878030777e-03,
        5.5503323674201965e-02,
        0.24022647738456726,
        0.6931471824645996,
    ),
    64: (
        4.434819018973412e-10,
        7.073785876574135e-09,
        1.0178199250204462e-07,
        1.3215435272709906e-06,
        1.5252733493978187e-05,
        0.00015403530457117485,
        0.0013333558146773523,
        0.00961812910759413,
        0.05550410866482009,
        0.2402265069591013,
        0.6931471805599453,
    ),
}

# (sinh(x) - x) / x**3 in x**2 for |x| <= 1; error 0.001 ulp
SINH = {
    32: (2.816955657181097e-06, 0.0001983615948120132, 0.008333349600434303, 0.1666666716337204),
    64: (
        7.758752371245996e-13,
        1.605725969083431e-10,
        2.5052123137095357e-08,
        2.755731915707461e-06,
        0.00019841269841431843,
        0.008333333333333148,
        0.16666666666666669,
    ),
}

# tanh(x) / x = P / Q in x**2 for |x| <= 9.02, error 0.35 ulp. P is 1 at 0; all coefficients are
# positive, and rounded to f32 by local search.
TANH_P = (1.3319096936470487e-08, 2.0583507648552768e-05, 0.003494036151096225, 0.13379719853401184)
TANH_Q = (7.762030236335704e-07, 0.0003283095429651439, 0.02587107941508293, 0.4671303927898407, 0.9999999403953552)

# Of e**x, e**x / 2 and 2**x: LOW is the least argument to compute with, and gives 0; HIGH is the
# largest argument with a finite result.
EXP_LOW = {32: -104.0, 64: -746.0}
EXP_HIGH = {32: 88.72283172607422, 64: 709.782712893384}
HALF_EXP_HIGH = {32: 89.41598510742188, 64: 710.4758600739439}
EXP2_LOW = {32: -151.0, 64: -1076.0}
EXP2_HIGH = {32: 127.99999237060547, 64: 1023.9999999999999}
# Arguments outside give -1 or inf; inside, n stays within the exponent field.
EXPM1_RANGE = {32: (-18.0, 89.0), 64: (-38.0, 710.0)}


def reduce_exp(k: K, x: ir.Value, offset: int) -> tuple[ir.Value, ir.Value]:
    """r and the bits of n + offset, where x = n*ln2 + r."""
    n, bits = k.round(x, LOG2_E, offset)
    high, low = LN2[k.format.bits]
    return k.fma(n, -low, k.fma(n, -high, x)), bits


def scale(k: K, y: ir.Value, bits: ir.Value) -> ir.Value:
    """y * 2**n where the low bits hold n + 2 * bias: two factors reach inf and subnormals.

    Both factors are 0 for n = -2 * bias. Products, unlike additions to the exponent field, keep a
    NaN in y whatever the bits say. The last product is never fused with a sum, which could be
    finite where the product overflows.
    """
    mantissa = k.format.mantissa
    half = k.shr(bits, 1)
    first = k.from_bits(k.shl(half, mantissa))
    second = k.from_bits(k.shl(k.isub(bits, half), mantissa))
    return k.exact_mul(k.mul(y, first), second)


def scale_finite(k: K, y: ir.Value, bits: ir.Value) -> ir.Value:
    """The bits of `scale` for finite results, from operations on normal numbers only.

    The low bits hold n. Adding n to the exponent field gives normal results. For n < 0, the shifted
    bits of n alone are the float -2**(n + bias + 2); the sum of y times this float and -8 rounds
    y * 2**n to a multiple of the least subnormal, and holds it in its low bits. Where the result is
    normal, or n >= 0, these low bits are no more than the bits of the normal result.
    """
    shifted = k.shl(bits, k.format.mantissa)
    normal = k.iadd(k.bits(y), shifted)
    tiny = k.fma(y, k.from_bits(shifted), -8.0)
    return k.from_bits(k.imax(normal, k.isub(k.bits(tiny), k.bits(k.const(-8.0)))))


def scaled(
    k: K,
    x: ir.Value,
    low: float,
    high: float,
    unit: float,
    log2_factor: int,
    reduced: Callable[[ir.Value, int], tuple[ir.Value, ir.Value]],
) -> ir.Value:
    """y * 2**n from ``reduced(x, offset)``, which gives y and the bits of n + offset.

    Args:
        low, high: the least argument to compute with, the largest with a finite result.
        unit: the increase of x by which n grows by one.
        log2_factor: this is added to the n of x.
    """
    bias = k.format.bias
    if k.slow_subnormals:
        clamped = k.max(x, low)
        result = scale_finite(k, *reduced(clamped, log2_factor))
        # Arguments beyond `high` give inf, and NaN gives NaN.
        return k.select(k.not_le(clamped, high), k.exact_add(clamped, inf), result)
    # Arguments far below the range get factors of 0: products that underflow to 0 take longer.
    zero = -(2 * bias + log2_factor) * unit
    clamped = k.clamp(x, zero, high + unit)
    return scale(k, *reduced(clamped, 2 * bias + log2_factor))


def exp_times(k: K, x: ir.Value, log2_factor: int = 0) -> ir.Value:
    """e**x * 2**log2_factor, also where e**x alone overflows; ``log2_factor`` is 0 or -1."""
    size = k.format.bits

    def reduced(x: ir.Value, offset: int) -> tuple[ir.Value, ir.Value]:
        r, bits = reduce_exp(k, x, offset)
        tail = k.polynomial(r, EXP_TAIL[size])
        return k.add(k.fma(tail, k.mul(r, r), r), 1.0), bits

    high = HALF_EXP_HIGH if log2_factor else EXP_HIGH
    return scaled(k, x, EXP_LOW[size], high[size], log(2.0), log2_factor, reduced)


def exp(k: K, x: ir.Value) -> ir.Value:
    return exp_times(k, x)


def exp2(k: K, x: ir.Value) -> ir.Value:
    size = k.format.bits

    def reduced(x: ir.Value, offset: int) -> tuple[ir.Value, ir.Value]:
        n, bits = k.round(x, 1.0, offset)
        r = k.exact_sub(x, n)
        return k.fma(r, k.polynomial(r, EXP2[size]), 1.0), bits

    return scaled(k, x, EXP2_LOW[size], EXP2_HIGH[size], 1.0, 0, reduced)


def expm1(k: K, x: ir.Value) -> ir.Value:
    """2**n * (e**r - 1) + (2**n - 1), halved and doubled again: 2**n itself may overflow."""
    clamped = k.clamp(x, *EXPM1_RANGE[k.format.bits])
    r, bits = reduce_exp(k, clamped, k.format.bias - 1)
    tail = k.polynomial(r, EXP_TAIL[k.format.bits])
    small = k.flushed(r)
    reduced = k.fma(tail, k.mul(small, small), r)
    half = k.from_bits(k.shl(bits, k.format.mantissa))
    result = k.mul(k.fma(half, reduced, k.sub(half, 0.5)), 2.0)
    # Halving a subnormal may lose its last bit; for arguments that small the result is x.
    result = k.select(k.lt(k.abs(x), 2.0**-64), x, result)
    return k.copysign(result, x)


def sinh(k: K, x: ir.Value) -> ir.Value:
    a = k.abs(x)
    square = k.square(a)
    small = k.fma(k.mul(k.polynomial(square, SINH[k.format.bits]), square), a, a)
    half = exp_times(k, a, -1)
    large = k.sub(half, k.div(0.25, k.capped(half, 2.0**60)))
    return k.copysign(k.select(k.lt(a, 1.0), small, large), x)


def cosh(k: K, x: ir.Value) -> ir.Value:
    half = exp_times(k, k.abs(x), -1)
    return k.add(half, k.div(0.25, k.capped(half, 2.0**60)))


def rational(k: K, x: ir.Value, limit: float, p: Sequence[float], q: Sequence[float]) -> ir.Value:
    """x * P(x**2) / Q(x**2), with x clamped to ±limit and the result to ±1; P is 1 at 0."""
    x = k.clamp(x, -limit, limit)
    small = k.flushed(x)
    square = k.mul(small, small)
    numerator = k.fma(k.mul(small, square), k.polynomial(square, p), x)
    return k.clamp(k.div(numerator, k.polynomial(square, q)), -1.0, 1.0)


def tanh(k: K, x: ir.Value) -> ir.Value:
    """A rational function in f32; t / (t + 2) with t = expm1(2 * |x|) in f64."""
    if k.is_f32:
        return rational(k, x, 9.02, TANH_P, TANH_Q)
    a = k.min(k.abs(x), 22.0)
    t = expm1(k, k.add(a, a))
    return k.copysign(k.div(t, k.add(t, 2.0)), x)
