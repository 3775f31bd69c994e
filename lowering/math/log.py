"""Logarithms and inverse hyperbolic functions: log log2 log10 log1p asinh acosh atanh.

x = 2**e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f + tail. In f32 the tail is a
polynomial in f; in f64 it is fdlibm's form, with s = f / (2 + f) and a polynomial in s**2. The
coefficients are own minimax fits (Remez). Error bounds: `math.ULP_BOUNDS`.
"""

from __future__ import annotations

from math import inf, nan

from mlir import ir

from .exp import LN2
from .expander import K

# The first part of each pair has trailing zeros, as in `LN2`, so that e times it is exact.
LOG10_2 = {32: (0.301025390625, 4.6050389811952137e-06), 64: (0.30102999560767785, 5.630334806675098e-11)}
# Each constant correctly rounded, and the rounding error.
LOG2_E = {32: (1.4426950216293335, 1.9259629911266175e-08), 64: (1.4426950408889634, 2.0355273740931033e-17)}
LOG10_E = {32: (0.4342944920063019, -1.0103050052231683e-08), 64: (0.4342944819032518, 1.098319650216765e-17)}
SQRT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}

# (log(1 + f) - f + f**2/2) / f**3; error 0.1 ulp
LOG_F32 = (
    -0.07635322213172913,
    0.127618670463562,
    -0.13159961998462677,
    0.14201705157756805,
    -0.1662338227033615,
    0.20001229643821716,
    -0.2500081956386566,
    0.3333333134651184,
)
# (2 * atanh(s) - 2 * s) / s**3 in s**2; error 0.01 ulp
LOG_F64 = (
    0.14795210201760706,
    0.15314132658580298,
    0.181835607311983,
    0.22222198651564148,
    0.2857142874150719,
    0.3999999999941937,
    0.6666666666666734,
)


def split(k: K, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """e + bias as an integer and 1 + f, for normal x > 0."""
    form = k.format
    mask = (1 << form.mantissa) - 1
    least = SQRT_HALF_BITS[form.bits]
    shifted = k.iadd(k.bits(x), k.integer((form.bias << form.mantissa) - least))
    significand = k.from_bits(k.iadd(k.iand(shifted, k.integer(mask)), k.integer(least)))
    return k.shr(shifted, form.mantissa), significand


def tail(k: K, f: ir.Value) -> ir.Value:
    """log(1 + f) - f."""
    square = k.mul(f, f)
    if k.is_f32:
        cube = k.mul(square, f)
        return k.fma(square, -0.5, k.mul(cube, k.polynomial(f, LOG_F32)))
    s = k.div(f, k.add(f, 2.0))
    z = k.mul(s, s)
    half = k.mul(square, 0.5)
    return k.sub(k.mul(s, k.fma(z, k.polynomial(z, LOG_F64), half)), half)


def reduce_log(k: K, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """e and f, for finite x > 0, subnormal ones included, and whether x is unusual."""
    form = k.format
    lift = form.mantissa + 2
    subnormal, unusual = k.lt(x, form.smallest_normal), k.unusual(x)
    lifted = k.if_unusual(unusual, k.select(subnormal, k.mul(x, 2.0**lift), x), x)
    biased, significand = split(k, lifted)
    bias = k.const(form.bias)
    bias = k.if_unusual(unusual, k.select(subnormal, form.bias + lift, bias), bias)
    return k.sub(k.to_float(biased), bias), k.exact_sub(significand, 1.0), unusual


def at_limits(k: K, x: ir.Value, result: ir.Value, pole: float) -> ir.Value:
    """The result where pole < x < inf; -inf at the pole, NaN below, x itself for inf and NaN."""
    result = k.select(k.lt(x, inf), result, x)
    return k.select(k.not_le(x, pole), result, k.select(k.eq(x, pole), -inf, nan))


def log_of(k: K, e: ir.Value, f: ir.Value, rest: ir.Value) -> ir.Value:
    """e * ln2 + f + rest."""
    high, low = LN2[k.format.bits]
    return k.fma(e, high, k.add(f, k.fma(e, low, rest)))


def log(k: K, x: ir.Value) -> ir.Value:
    e, f, unusual = reduce_log(k, x)
    result = log_of(k, e, f, tail(k, f))
    return k.if_unusual(unusual, at_limits(k, x, result, 0.0), result)


def log_base(k: K, x: ir.Value, per_octave: tuple[float, float], factor: tuple[float, float]) -> ir.Value:
    """e * per_octave + log(1 + f) * factor, both constants in two parts."""
    e, f, unusual = reduce_log(k, x)
    high, low = factor
    low_part = k.mul(f, low)
    if per_octave[1]:
        low_part = k.fma(e, per_octave[1], low_part)
    result = k.fma(f, high, k.fma(tail(k, f), high, low_part))
    result = k.fma(e, per_octave[0], result)
    return k.if_unusual(unusual, at_limits(k, x, result, 0.0), result)


def log2(k: K, x: ir.Value) -> ir.Value:
    return log_base(k, x, (1.0, 0.0), LOG2_E[k.format.bits])


def log10(k: K, x: ir.Value) -> ir.Value:
    return log_base(k, x, LOG10_2[k.format.bits], LOG10_E[k.format.bits])


def log1p(k: K, x: ir.Value) -> ir.Value:
    """log(u) for u = 1 + x, with the rounding error of u added to f."""
    form = k.format
    u = k.exact_add(x, 1.0)
    lost = k.exact_sub(x, k.exact_sub(u, 1.0))
    biased, significand = split(k, u)
    # 2**-e; where its exponent runs out of range, x is so large that nothing was lost
    exponent = k.imax(k.isub(k.integer(2 * form.bias), biased), k.integer(0))
    unit = k.from_bits(k.shl(exponent, form.mantissa))
    f = k.fma(lost, unit, k.exact_sub(significand, 1.0))
    e = k.sub(k.to_float(biased), form.bias)
    result = at_limits(k, x, log_of(k, e, f, tail(k, k.flushed(f))), -1.0)
    return k.copysign(result, x)


# Beyond this, 1 / x**2 is negligible next to 1; up to it, x**2 is finite.
LARGE = {32: 2.0**40, 64: 2.0**100}
LN2_ROUNDED = 0.6931471805599453


def asinh(k: K, x: ir.Value) -> ir.Value:
    """log1p(a + a**2 / (1 + sqrt(a**2 + 1))), and log1p(a) + ln2 for large a = |x|."""
    a = k.abs(x)
    large = k.gt(a, LARGE[k.format.bits])
    small = k.flushed(a)
    square = k.mul(small, small)
    near = k.add(a, k.div(square, k.add(k.sqrt(k.add(square, 1.0)), 1.0)))
    result = log1p(k, k.select(large, a, near))
    result = k.select(large, k.add(result, LN2_ROUNDED), result)
    return k.copysign(result, x)


def acosh(k: K, x: ir.Value) -> ir.Value:
    """log1p(t + sqrt(t * (t + 2))), t = x - 1, and log1p(x) + ln2 for large x."""
    large = k.gt(x, LARGE[k.format.bits])
    t = k.sub(x, 1.0)
    near = k.add(t, k.sqrt(k.mul(t, k.add(t, 2.0))))
    result = log1p(k, k.select(large, x, near))
    result = k.select(large, k.add(result, LN2_ROUNDED), result)
    return k.select(k.lt(x, 1.0), nan, result)


def atanh(k: K, x: ir.Value) -> ir.Value:
    """log1p(2a / (1 - a)) / 2, a = |x|."""
    a = k.abs(x)
    ratio = k.div(k.add(a, a), k.exact_sub(1.0, a))
    return k.copysign(k.mul(log1p(k, ratio), 0.5), x)
