"""powf: |x|**y = 2**(y * log2(|x|)), then the sign and the special cases of C99.

f32 computes in f64 or, where the target has fused multiply-add and nothing is unusual, with a
logarithm in two f32 parts (`usual_f32`). f64 carries the logarithm and its product with y in two
parts (error-free transformations, Dekker), since the exponential multiplies a relative error of the
product by up to 700.
Polynomials are own minimax fits (Remez). Error bounds: `math.ULP_BOUNDS`.
"""

from __future__ import annotations

from math import inf, nan

from mlir import ir

from .exp import EXP2, EXP_TAIL, LN2, reduce_exp, scale
from .expander import K
from .log import LOG2_E, reduce_log, split

# (2 * atanh(s) - 2 * s) / s**3 in s**2; relative error 2**-37 of the logarithm
LOG_ROUGH = (0.235816254771388, 0.2853734361358225, 0.4000033446995255, 0.6666666564979579)
# (2**r - 1) / r on |r| <= 1/2; relative error 2**-34
EXP2_ROUGH = (
    1.5196569340467674e-05,
    0.00015466777150538322,
    0.0013333934189860704,
    0.0096180380891223,
    0.055504103656906154,
    0.24022651066634926,
    0.6931471807047251,
)
# (2 * atanh(s) - 2 * s - 2/3 * s**3) / s**5 in s**2; relative error 2**-66 of the logarithm
LOG_FINE = (
    0.13196164525548829,
    0.13256838857125616,
    0.15386756244471492,
    0.18181784395543873,
    0.22222222519529874,
    0.2857142857010225,
    0.4000000000000225,
)
TWO_THIRDS = (2.0 / 3.0, 3.700743415417188e-17)

# Natural exponents below give 0, by factors of 0 in `scale`, those above give inf.
EXPONENT_RANGE = (-2046 * LN2[64][0], 710.0)


# (2 * atanh(s) - 2 * s) / s**3 / ln2 in s**2 for |s| <= 0.1716; relative error 2**-30
LOG2_CUBIC = (0.4309638738632202, 0.5767537951469421, 0.9617982506752014)
# 2 / ln2 in two parts
TWO_LOG2_E = (2.885390043258667, 3.8519259822532534e-08)
# Least |y * log2(x)| that counts as unusual.
USUAL = {32: 32.0, 64: 1020.0}


def powf(k: K, x: ir.Value, y: ir.Value) -> ir.Value:
    if not k.fused:
        return any_power(k, x, y)
    # The bits of x, read as a fixed-point number, are log2(x) with an error below 0.09.
    drop = 0 if k.is_f32 else 20
    linear = k.to_float(k.shr(k.bits(x), drop))
    linear = k.sub(k.mul(linear, 2.0 ** (drop - k.format.mantissa)), k.format.bias)
    bound = k.mul(k.abs(y), k.add(k.abs(linear), 0.09))
    unusual = k.either(k.unusual(x), k.not_lt(bound, USUAL[k.format.bits]))
    usual = usual_f32(k, x, y) if k.is_f32 else usual_f64(k, x, y)
    return k.rarely(unusual, any_power(k, x, y), usual)


def usual_f32(k: K, x: ir.Value, y: ir.Value) -> ir.Value:
    """2**(y * log2(x)) for normal x, y and result: all in f32, the logarithm in two parts."""
    biased, significand = split(k, x)
    e = k.sub(k.to_float(biased), k.format.bias)
    f = k.exact_sub(significand, 1.0)
    # s = f / (2 + f) in two parts
    divisor = k.exact_add(f, 2.0)
    reciprocal = k.div(1.0, divisor)
    s = k.exact_mul(f, reciprocal)
    minus_s = k.neg(s)
    lost = k.exact_sub(f, k.exact_sub(divisor, 2.0))
    rest = k.exact_fma(minus_s, lost, k.exact_fma(minus_s, divisor, f))
    s_low = k.exact_mul(rest, reciprocal)
    square = k.exact_mul(s, s)
    high, low = TWO_LOG2_E
    first = k.exact_mul(s, high)
    second = k.exact_fma(s, low, k.exact_fma(s, high, k.neg(first)))
    second = k.exact_fma(k.exact_fma(s_low, square, s_low), high, second)
    square_low = k.exact_fma(s, s, k.neg(square))
    cubic = k.polynomial(square, LOG2_CUBIC)
    part = k.exact_mul(square, cubic)
    part_low = k.exact_fma(square_low, cubic, k.exact_fma(square, cubic, k.neg(part)))
    second = k.exact_fma(s, part, k.exact_fma(s, part_low, second))
    log2 = k.exact_add(e, first)
    log2_low = k.exact_add(k.exact_sub(first, k.exact_sub(log2, e)), second)
    exponent = k.exact_mul(y, log2)
    error = k.exact_fma(y, log2_low, k.exact_fma(y, log2, k.neg(exponent)))
    n, bits = k.round(k.exact_add(exponent, error), 1.0)
    r = k.exact_add(k.exact_sub(exponent, n), error)
    power = k.fma(r, k.polynomial(r, EXP2[32]), 1.0)
    return k.from_bits(k.iadd(k.bits(power), k.shl(bits, k.format.mantissa)))


def usual_f64(k: K, x: ir.Value, y: ir.Value) -> ir.Value:
    """e**(y * log(x)) for normal x, y and result."""
    log, log_error = log_two_parts(k, x)
    exponent = k.exact_mul(y, log)
    error = k.exact_fma(y, log_error, k.exact_fma(y, log, k.neg(exponent)))
    r, bits = reduce_exp(k, exponent, 0)
    r = k.add(r, error)
    power = k.add(k.fma(k.polynomial(r, EXP_TAIL[64]), k.mul(r, r), r), 1.0)
    return k.from_bits(k.iadd(k.bits(power), k.shl(bits, k.format.mantissa)))


def any_power(k: K, x: ir.Value, y: ir.Value) -> ir.Value:
    """The power of any two numbers."""
    a = k.abs(x)
    magnitude = magnitude_f32(k, a, y) if k.is_f32 else magnitude_f64(k, a, y)
    whole = k.eq(k.floor(y), y)
    half = k.mul(y, 0.5)
    odd = k.both(whole, k.ne(k.floor(half), half))
    # A finite x < 0 needs an integer y; -0 and -inf do not.
    complex_result = k.both(k.both(k.lt(x, 0.0), k.lt(a, inf)), k.ne(k.floor(y), y))
    result = k.select(odd, k.copysign(magnitude, x), magnitude)
    result = k.select(complex_result, nan, result)
    # 1**y and x**0 are 1 even if the other operand is NaN; (-1)**inf is 1, too.
    minus_one = k.both(k.eq(a, 1.0), k.eq(k.abs(y), inf))
    one = k.either(k.either(k.eq(x, 1.0), k.eq(y, 0.0)), minus_one)
    return k.select(one, 1.0, result)


def magnitude_f32(k: K, a: ir.Value, y: ir.Value) -> ir.Value:
    d = k.double()
    a, y = k.extend(a), k.extend(y)
    biased, significand = split(d, a)
    f = d.exact_sub(significand, 1.0)
    s = d.div(f, d.add(f, 2.0))
    square = d.mul(s, s)
    natural = d.fma(d.mul(d.polynomial(square, LOG_ROUGH), square), s, d.add(s, s))
    e = d.sub(d.to_float(biased), d.format.bias)
    log2 = d.fma(natural, LOG2_E[64][0], e)
    log2 = d.select(d.eq(a, 0.0), -inf, d.select(d.lt(a, inf), log2, a))
    # Between these limits the f64 is normal, at the lower one it is 0; rounding it to f32 gives
    # subnormals, 0 and inf.
    exponent = d.clamp(d.exact_mul(y, log2), -1023.0, 200.0)
    n, bits = d.round(exponent, 1.0, d.format.bias)
    r = d.exact_sub(exponent, n)
    unit = d.from_bits(d.shl(bits, d.format.mantissa))
    return k.truncate(d.mul(d.fma(r, d.polynomial(r, EXP2_ROUGH), 1.0), unit))


def two_sum(k: K, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sum and its rounding error, for |a| >= |b| (Dekker)."""
    total = k.exact_add(a, b)
    return total, k.exact_sub(b, k.exact_sub(total, a))


def two_product(k: K, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Product and its rounding error."""
    product = k.exact_mul(a, b)
    return product, k.exact_fma(a, b, k.neg(product))


def log_two_parts(k: K, a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """log(a) for finite a > 0 as an unevaluated sum, relative error about 2**-64."""
    e, f, _ = reduce_log(k, a)
    divisor = k.exact_add(f, 2.0)
    divisor_error = k.exact_sub(f, k.exact_sub(divisor, 2.0))
    reciprocal = k.div(1.0, divisor)
    s = k.exact_mul(f, reciprocal)
    remainder = k.exact_fma(k.neg(s), divisor, f)
    s_error = k.exact_mul(k.exact_fma(k.neg(s), divisor_error, remainder), reciprocal)
    square, square_error = two_product(k, s, s)
    square_error = k.exact_fma(k.exact_add(s, s), s_error, square_error)
    # c = 2/3 + s**2 * (2/5 + …)
    rest = k.mul(square, k.polynomial(square, LOG_FINE))
    c, c_error = two_sum(k, k.const(TWO_THIRDS[0]), rest)
    c_error = k.exact_add(c_error, TWO_THIRDS[1])
    # log(1 + f) = 2 * s + s * s**2 * c
    product, product_error = two_product(k, square, c)
    product_error = k.exact_add(product_error, k.exact_fma(square, c_error, k.exact_mul(square_error, c)))
    factor, factor_error = two_sum(k, k.const(2.0), product)
    factor_error = k.exact_add(factor_error, product_error)
    natural, natural_error = two_product(k, s, factor)
    natural_error = k.exact_add(natural_error, k.exact_fma(s, factor_error, k.exact_mul(s_error, factor)))
    high, low = LN2[64]
    total, total_error = two_sum(k, k.exact_mul(e, high), natural)
    return total, k.exact_add(total_error, k.exact_fma(e, low, natural_error))


def magnitude_f64(k: K, a: ir.Value, y: ir.Value) -> ir.Value:
    log, log_error = log_two_parts(k, a)
    limit = k.select(k.eq(a, 0.0), -inf, a)
    finite = k.both(k.gt(a, 0.0), k.lt(a, inf))
    log = k.select(finite, log, limit)
    exponent = k.exact_mul(y, log)
    inside = k.lt(k.abs(exponent), 800.0)
    error = k.exact_fma(y, log_error, k.exact_fma(y, log, k.neg(exponent)))
    error = k.select(inside, error, 0.0)
    r, bits = reduce_exp(k, k.clamp(exponent, *EXPONENT_RANGE), 2 * k.format.bias)
    r = k.add(r, error)
    tail = k.polynomial(r, EXP_TAIL[64])
    return scale(k, k.add(k.fma(tail, k.mul(r, r), r), 1.0), bits)
