"""Circular functions: sin cos tan, asin acos atan atan2.

sin, cos and tan have two argument reductions. The usual one subtracts a multiple of pi/2 in parts,
by fused multiply-adds. Beyond `QUARTERS_LIMIT`, f32 counts turns in f64, and f64 calls libm: to
reduce every finite f64 takes 1100 bits of 1/(2*pi). Targets without fused multiply-adds use the
second way alone.
"""

from __future__ import annotations

from math import inf, pi

from mlir import ir
from mlir.dialects import math

from .expander import K

# 1 / (2 * pi) in parts of 28 bits, so that their products with an f32 are exact in f64, and a last
# one of 53. Beyond `LARGE`, the bits of 1 / (2 * pi) above 2**-53 give whole turns: `TURNS_LARGE`
# leaves them out. The bits missing at the end are below 2**-64 of a turn for the largest argument
# of each.
LARGE = 2.0**77
TURNS = (0.15915494225919247, 8.327028684640414e-10, 5.69002511952534e-19, 6.317065088957875e-27)
TURNS_LARGE = (7.342738823155979e-17, 2.7773570257824794e-25, 1.0046721373901103e-33, 3.975028258922255e-42)

# (sin(r) - r) / r**3 in r**2 for |r| <= pi/2 + 0.0127; error 0.1 ulp
SIN = (2.6034442726086127e-06, -0.00019808635988738388, 0.0083330562338233, -0.16666659712791443)
# (tan(r) - r) / r**3 in r**2 for |r| <= pi/4; error 0.02 ulp
TAN = (
    0.004418184980750084,
    1.260389581148047e-06,
    0.010908469557762146,
    0.021252792328596115,
    0.054065920412540436,
    0.13332606852054596,
    0.3333335220813751,
)

# pi/2 in parts, the highest first. In f32, the first difference is exact for every n up to 2**16;
# in f64, n times the second part is exact, too, for n up to 2**20. No part is negative, so that -0
# stays as it is.
HALF_PI = {
    32: (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
    64: (1.5707963267948966, 6.12323399538461e-17, 3.5215598651832e-27),
}
QUARTERS_LIMIT = {32: 2.0**16, 64: 2.0**20}
# (sin(r) - r) / r**3 in r**2 for |r| <= pi/4 + 0.002; error 0.07 ulp in f32, 0.02 in f64
SIN_NEAR = {
    32: (-0.0001951332960743457, 0.0083321463316679, -0.16666653752326965),
    64: (
        1.5895252817776371e-10,
        -2.5050731347975396e-08,
        2.7557313519583064e-06,
        -0.00019841269829305475,
        0.008333333333321776,
        -0.1666666666666663,
    ),
}
# (cos(r) - 1 + r**2/2) / r**4 in r**2, for the same r; error below 0.01 ulp
COS_NEAR = {
    32: (2.4436294552288018e-05, -0.0013887349050492048, 0.04166664555668831),
    64: (
        -1.1359005602278515e-11,
        2.0875711270284036e-09,
        -2.755731426717842e-07,
        2.480158728919914e-05,
        -0.001388888888887369,
        0.041666666666666595,
    ),
}

# (asin(x) - x) / x**3 in x**2 for |x| <= 1/2; error 0.08 ulp in f32, 0.009 in f64
ASIN = {
    32: (0.04222164675593376, 0.024146992713212967, 0.04547692835330963, 0.07495246082544327, 0.16666753590106964),
    64: (
        0.03268322464640504,
        -0.021084853002555574,
        0.02176685853865615,
        0.003682562648572552,
        0.01078638819181863,
        0.011397855678568665,
        0.013980943932020214,
        0.017351602330157152,
        0.022372215482264278,
        0.030381942692373983,
        0.04464285717486934,
        0.07499999999970633,
        0.1666666666666676,
    ),
}

# (atan(t) - t) / t**3 in t**2 for |t| <= sqrt(2) - 1; error 0.01 ulp
ATAN = {
    32: (-0.0608232244849205, 0.10595690459012985, -0.14243830740451813, 0.19998490810394287, -0.33333316445350647),
    64: (
        -0.017915108335712842,
        0.038072517130543986,
        -0.05039650184578228,
        0.05847973988348425,
        -0.06663116933649657,
        0.07692061475197161,
        -0.09090897837114086,
        0.1111111078659412,
        -0.14285714280269302,
        0.19999999999954457,
        -0.33333333333333204,
    ),
}

# pi rounded, and the rounding error; halves and quarters of both are exact.
PI = {32: (3.1415927410125732, -8.742278000372485e-08), 64: (pi, 1.2246467991473532e-16)}
TAN_PI_8 = 0.41421356237309503
TAN_3PI_8 = 2.414213562373095


def turns(k: K, x: ir.Value) -> tuple[K, ir.Value]:
    """The emitter of f64, and x / (2 * pi) minus a near integer in f64; NaN for infinite x.

    The result is within 2**-9 of [-1/2, 1/2]. It adds the product with one part of the constant
    after another, and drops whole turns after each: every sum is exact or rounded below 2**-54 of a
    turn, for every finite x, without a table or a branch.
    """
    d = k.double()
    large = k.gt(k.abs(x), LARGE)
    parts = [d.select(large, *pair) for pair in zip(TURNS_LARGE, TURNS, strict=True)]
    x = k.extend(x)
    turn = d.exact_mul(x, parts[0])
    turn = d.exact_sub(turn, d.roundeven(turn))
    for part in parts[1:-1]:
        turn = d.fma(x, part, turn)
        turn = d.exact_sub(turn, d.roundeven(turn))
    return d, d.fma(x, parts[-1], turn)


def sin_of_turns(k: K, d: K, turn: ir.Value) -> ir.Value:
    """sin(2 * pi * turn) for |turn| up to about 1/4, in f32."""
    r = k.truncate(d.mul(turn, 2.0 * pi))
    square = k.square(r)
    return k.clamp(k.fma(k.mul(k.polynomial(square, SIN), square), r, r), -1.0, 1.0)


def by_turns(k: K, name: str, x: ir.Value) -> ir.Value:
    """sin, cos or tan of f32, for every argument."""
    d, turn = turns(k, x)
    if name == "cos":  # The difference is exact near the zeros.
        return sin_of_turns(k, d, d.exact_sub(0.25, d.abs(turn)))
    if name == "tan":
        return k.select(k.eq(x, 0.0), x, tan_of_turns(k, d, turn))
    a = d.abs(turn)
    folded = d.flip_sign(d.min(a, d.exact_sub(0.5, a)), turn)
    return k.select(k.eq(x, 0.0), x, sin_of_turns(k, d, folded))


def tan_of_turns(k: K, d: K, turn: ir.Value) -> ir.Value:
    """tan(2 * pi * turn) in f32; beyond an eighth of a turn, 1 / tan of the complement."""
    half = d.exact_sub(turn, d.mul(d.roundeven(d.add(turn, turn)), 0.5))
    a = d.abs(half)
    complement = d.exact_sub(0.25, a)
    r = k.truncate(d.mul(d.copysign(d.min(a, complement), half), 2.0 * pi))
    square = k.square(r)
    t = k.fma(k.mul(k.polynomial(square, TAN), square), r, r)
    far = d.gt(a, 0.125)
    return k.div(k.select(far, 1.0, t), k.select(far, t, 1.0))


def quarters(k: K, x: ir.Value) -> tuple[ir.Value, ir.Value | None, ir.Value]:
    """r, its rounding error in f64, and the bits of n: x = n * pi/2 + r up to `QUARTERS_LIMIT`."""
    n, bits = k.round(x, 2.0 / pi)
    n = k.neg(n)
    first, second, third = HALF_PI[k.format.bits]
    r = k.exact_fma(n, first, x)
    if k.is_f32:
        return k.exact_fma(n, third, k.exact_fma(n, second, r)), None, bits
    # The error of the sum is exact: part is less than r, or there is no error.
    part = k.exact_mul(n, second)
    near = k.exact_add(r, part)
    lost = k.exact_add(k.exact_sub(r, near), part)
    return near, k.exact_fma(n, third, lost), bits


def sin_cos(k: K, r: ir.Value, low: ir.Value | None) -> tuple[ir.Value, ir.Value]:
    """sin and cos of r + low, for |r| up to pi/4 and a little more."""
    square = k.square(r)
    tail = k.mul(k.polynomial(square, SIN_NEAR[k.format.bits]), square)
    half = k.fma(k.polynomial(square, COS_NEAR[k.format.bits]), square, -0.5)
    if low is None:
        return k.fma(tail, r, r), k.fma(half, square, 1.0)
    rest = k.fma(k.mul(low, square), -0.5, low)
    sin = k.exact_add(r, k.fma(tail, k.flushed(r), rest))
    return sin, k.exact_add(k.fma(half, square, k.neg(k.mul(r, low))), 1.0)


def circular(k: K, name: str, x: ir.Value) -> ir.Value:
    """sin, cos or tan, by the argument reductions that suit the target."""
    if not k.fused:
        return by_turns(k, name, x)
    r, low, bits = quarters(k, x)
    sin, cos = sin_cos(k, r, low)
    odd = k.is_odd(bits)
    top = k.format.bits - 1
    if name == "tan":
        sign = k.from_bits(k.shl(bits, top))
        usual = k.div(k.flip_sign(k.select(odd, cos, sin), sign), k.select(odd, sin, cos))
    else:
        quarter = k.iadd(bits, k.integer(1)) if name == "cos" else bits
        pair = (sin, cos) if name == "cos" else (cos, sin)
        sign = k.from_bits(k.shl(k.shr(quarter, 1), top))
        usual = k.flip_sign(k.select(odd, *pair), sign)
    # NaN stays as it is: its sign would depend on the order of operands in instructions.
    keep = k.ne(x, x) if name == "cos" else k.eq_or_nan(x, 0.0)
    usual = k.select(keep, x, usual)
    large = k.gt(k.abs(x), QUARTERS_LIMIT[k.format.bits])
    rare = by_turns(k, name, x) if k.is_f32 else getattr(math, name)(x)
    return k.rarely(large, rare, usual)


def sin(k: K, x: ir.Value) -> ir.Value:
    return circular(k, "sin", x)


def cos(k: K, x: ir.Value) -> ir.Value:
    return circular(k, "cos", x)


def tan(k: K, x: ir.Value) -> ir.Value:
    return circular(k, "tan", x)


def asin_parts(k: K, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """True where |x| > 1/2; asin(sqrt((1 - |x|) / 2)) if so, else asin(|x|); NaN if |x| > 1."""
    a = k.abs(x)
    far = k.gt(a, 0.5)
    square = k.select(far, k.mul(k.exact_sub(1.0, a), 0.5), k.square(a))
    root = k.select(far, k.sqrt(square), a)
    tail = k.mul(k.polynomial(square, ASIN[k.format.bits]), square)
    return far, k.fma(tail, root, root)


def asin(k: K, x: ir.Value) -> ir.Value:
    far, angle = asin_parts(k, x)
    high, low = (part / 2 for part in PI[k.format.bits])
    complement = k.add(high, k.fma(angle, -2.0, low))
    return k.copysign(k.select(far, complement, angle), x)


def acos(k: K, x: ir.Value) -> ir.Value:
    far, angle = asin_parts(k, x)
    high, low = PI[k.format.bits]
    signed = k.copysign(angle, x)
    near = k.sub(high / 2, k.sub(signed, low / 2))
    # For x < -1/2, acos(x) is pi - 2 * angle, and `signed` is -angle.
    negative = k.lt(x, 0.0)
    twice = k.add(signed, signed)
    obtuse = k.add(high, k.add(twice, low))
    return k.select(far, k.select(negative, obtuse, twice), near)


def atan_of_ratio(k: K, y: ir.Value, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """atan(y / x) in two parts for y, x >= 0, by one division: -x/y, (y - x)/(y + x) or y/x.

    The parts add up to the result; the first is a multiple of pi/4.
    """
    high, low = PI[k.format.bits]
    steep = k.gt(y, k.mul(x, TAN_3PI_8))
    middle = k.gt(y, k.mul(x, TAN_PI_8))
    numerator = k.select(steep, k.neg(x), k.select(middle, k.exact_sub(y, x), y))
    denominator = k.select(steep, y, k.select(middle, k.exact_add(y, x), x))
    t = k.div(numerator, denominator)
    small = k.flushed(t)
    square = k.mul(small, small)
    base = k.select(steep, high / 2, k.select(middle, high / 4, 0.0))
    rest = k.select(steep, low / 2, k.select(middle, low / 4, 0.0))
    tail = k.mul(k.polynomial(square, ATAN[k.format.bits]), square)
    return base, k.add(t, k.fma(tail, t, rest))


def atan(k: K, x: ir.Value) -> ir.Value:
    a = k.capped(k.abs(x), 2.0**60 if k.is_f32 else 2.0**200)
    base, rest = atan_of_ratio(k, a, k.const(1.0))
    return k.copysign(k.add(base, rest), x)


def atan2(k: K, y: ir.Value, x: ir.Value) -> ir.Value:
    """atan of |y| / |x|, then the quadrant from the signs, that of -0 included."""
    a, b = k.abs(y), k.abs(x)
    # Two infinities stand for equal sides, two zeros for the ratio 0.
    infinite = k.both(k.eq(a, inf), k.eq(b, inf))
    zero = k.eq(k.exact_add(a, b), 0.0)
    a = k.select(infinite, 1.0, a)
    b = k.select(infinite, 1.0, k.select(zero, 1.0, b))
    # The sum of the sides must not overflow.
    largest = 2.0 ** (k.format.bias - 1)
    factor = k.select(k.either(k.gt(a, largest), k.gt(b, largest)), 0.25, 1.0)
    base, rest = atan_of_ratio(k, k.mul(a, factor), k.mul(b, factor))
    high, low = PI[k.format.bits]
    is_left = k.sign_bit(x)
    base = k.select(is_left, k.exact_sub(high, base), base)
    rest = k.select(is_left, k.exact_sub(low, rest), rest)
    return k.copysign(k.add(base, rest), y)
