"""Circular functions: sin cos tan of f32; asin acos atan atan2 of f32 and f64.

sin, cos and tan of f64 are left to libm: reduction of every finite f64 takes 1100 bits of 1/(2*pi).
"""

from __future__ import annotations

from math import inf, pi

from mlir import ir

from .emitter import K

# 1 / (2 * pi) in parts of 28 bits, so that their products with an f32 are exact in f64, and a last
# one of 53. From 2**77 on the bits above 2**-53 give whole turns and are left out; what is missing
# at the end is below 2**-64 of a turn for the largest argument of each.
LARGE = 2.0**77
TURNS = (0.15915494225919247, 8.327028684640414e-10, 5.69002511952534e-19, 6.317065088957875e-27)
TURNS_LARGE = (7.342738823155979e-17, 2.7773570257824794e-25, 1.0046721373901103e-33,
               3.975028258922255e-42)  # fmt: skip

# (sin(r) - r) / r**3 in r**2 for |r| <= pi/2 + 0.0127; error 0.1 ulp
SIN = (2.6034442726086127e-06, -0.00019808635988738388, 0.0083330562338233,
       -0.16666659712791443)  # fmt: skip
# (tan(r) - r) / r**3 in r**2 for |r| <= pi/4; error 0.02 ulp
TAN = (0.004418184980750084, 1.260389581148047e-06, 0.010908469557762146, 0.021252792328596115,
       0.054065920412540436, 0.13332606852054596, 0.3333335220813751)  # fmt: skip

# (asin(x) - x) / x**3 in x**2 for |x| <= 1/2; error 0.08 ulp in f32, 0.009 in f64
ASIN = {
    32: (0.04222164675593376, 0.024146992713212967, 0.04547692835330963, 0.07495246082544327,
         0.16666753590106964),
    64: (0.03268322464640504, -0.021084853002555574, 0.02176685853865615, 0.003682562648572552,
         0.01078638819181863, 0.011397855678568665, 0.013980943932020214, 0.017351602330157152,
         0.022372215482264278, 0.030381942692373983, 0.04464285717486934, 0.07499999999970633,
         0.1666666666666676),
}  # fmt: skip

# (atan(t) - t) / t**3 in t**2 for |t| <= sqrt(2) - 1; error 0.01 ulp
ATAN = {
    32: (-0.0608232244849205, 0.10595690459012985, -0.14243830740451813, 0.19998490810394287,
         -0.33333316445350647),
    64: (-0.017915108335712842, 0.038072517130543986, -0.05039650184578228, 0.05847973988348425,
         -0.06663116933649657, 0.07692061475197161, -0.09090897837114086, 0.1111111078659412,
         -0.14285714280269302, 0.19999999999954457, -0.33333333333333204),
}  # fmt: skip

# pi rounded, and what that leaves; halves and quarters of both are exact.
PI = {32: (3.1415927410125732, -8.742278000372485e-08), 64: (pi, 1.2246467991473532e-16)}
TAN_PI_8 = 0.41421356237309503
TAN_3PI_8 = 2.414213562373095


def turns(k: K, x: ir.Value) -> tuple[K, ir.Value]:
    """x / (2 * pi) less a near integer, in f64, and its emitter; NaN for infinite x.

    Within 2**-9 of [-1/2, 1/2]. One part of the constant after another, whole turns dropped after
    each: every sum is exact or rounded below 2**-54 of a turn, for every finite x, without a table
    or a branch.
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


def sin(k: K, x: ir.Value) -> ir.Value:
    """sin of the turn or, with the sign of the turn, of half a turn less it."""
    d, turn = turns(k, x)
    a = d.abs(turn)
    folded = d.flip_sign(d.min(a, d.exact_sub(0.5, a)), turn)
    return k.select(k.eq(x, 0.0), x, sin_of_turns(k, d, folded))


def cos(k: K, x: ir.Value) -> ir.Value:
    """sin of a quarter turn less |x|; the difference is exact near the zeros."""
    d, turn = turns(k, x)
    return sin_of_turns(k, d, d.exact_sub(0.25, d.abs(turn)))


def tan(k: K, x: ir.Value) -> ir.Value:
    """tan or, beyond an eighth of a turn, the reciprocal of that of the complement."""
    d, turn = turns(k, x)
    half = d.exact_sub(turn, d.mul(d.roundeven(d.add(turn, turn)), 0.5))
    a = d.abs(half)
    complement = d.exact_sub(0.25, a)
    r = k.truncate(d.mul(d.copysign(d.min(a, complement), half), 2.0 * pi))
    square = k.square(r)
    t = k.fma(k.mul(k.polynomial(square, TAN), square), r, r)
    far = d.gt(a, 0.125)
    result = k.div(k.select(far, 1.0, t), k.select(far, t, 1.0))
    return k.select(k.eq(x, 0.0), x, result)


def asin_parts(k: K, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether |x| > 1/2, and asin(|x|), or asin(sqrt((1 - |x|) / 2)) there; NaN if |x| > 1."""
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
    # At x near -1 it is pi - 2 * angle, and signed is -angle.
    negative = k.lt(x, 0.0)
    twice = k.add(signed, signed)
    obtuse = k.add(high, k.add(twice, low))
    return k.select(far, k.select(negative, obtuse, twice), near)


def atan_of_ratio(k: K, y: ir.Value, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """atan(y / x) in two parts for y, x >= 0, by one division: of -x/y, (y - x)/(y + x) or y/x.

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
    left = k.sign_bit(x)
    base = k.select(left, k.exact_sub(high, base), base)
    rest = k.select(left, k.exact_sub(low, rest), rest)
    return k.copysign(k.add(base, rest), y)
