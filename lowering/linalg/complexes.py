"""Complex numbers in bodies: formulas on their two parts, with NumPy's results at special values.

Products and quotients take NumPy's steps, roundings included: a product rounds that of the
imaginary parts, a quotient is Smith's. Functions are made of those of floats, and give what C99's
Annex G and glibc, which NumPy calls, give for infinities, NaNs and signed zeros; errors are
relative to the modulus (`docs/cpu-lowering.md`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import exp as exp_of
from math import inf, log, nan
from typing import TYPE_CHECKING

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.dtypes import F32, F64
from .element import LENGTH, SQUARES

if TYPE_CHECKING:
    from .scalar import Scalar

# Largest argument of which `exp` is taken as it is; beyond, a factor is taken out.
_TOP = {F32: 88.0, F64: 709.0}
# Sums of squares of f64 between the first and the second number have neither lost digits to
# underflow nor overflowed; else their operands are multiplied by the third to a power of 1 or -1.
_LEAST, _MOST, _FACTOR = 2.0**-960, 2.0**1000, 2.0**560


# --- arithmetic ---------------------------------------------------------------------------------


def arith(a: Scalar, b: Scalar, name: str) -> Scalar:
    """The sum ("add"), difference ("sub") or product ("mul") of two complex numbers."""
    if name == "add":
        return a.joined(a.real + b.real, a.imag + b.imag)
    if name == "sub":
        return a.joined(a.real - b.real, a.imag - b.imag)
    # One rounding less, as in NumPy's vector code; not left to the back end, which would decide by
    # how often a product is used.
    real = a.real.math("fma", b.real, -_product(a.imag, b.imag))
    return a.joined(real, a.real.math("fma", b.imag, _product(a.imag, b.real)))


def _rounded_product(a: Scalar, b: Scalar) -> Scalar:
    """The product with all roundings, as NumPy's powers have it."""
    real = _difference(_product(a.real, b.real), _product(a.imag, b.imag))
    return a.joined(real, _sum(_product(a.real, b.imag), _product(a.imag, b.real)))


def divide(a: Scalar, b: Scalar) -> Scalar:
    """The quotient, by Smith's algorithm; a divisor of 0 divides both parts by 0."""
    x, y = abs(b.real), abs(b.imag)
    across = ~(x >= y)
    large, small = across.select(b.imag, b.real), across.select(b.real, b.imag)
    ratio = small / large
    scale = 1.0 / _sum(large, _product(small, ratio))
    u, v = across.select(a.imag, a.real), across.select(a.real, a.imag)
    cross = _product(u, ratio)
    real = _product(_sum(u, _product(v, ratio)), scale)
    difference = _difference(across.select(cross, v), across.select(v, cross))
    imag = _product(difference, scale)
    is_zero = x.eq(0) & y.eq(0)
    return is_zero.select(a.joined(a.real / x, a.imag / x), a.joined(real, imag))


# Since 3.14, Python takes no real number for a complex one whose imaginary part is 0.
MIXED = sys.version_info >= (3, 14)


def of_python(a: Scalar, b: Scalar, how: str) -> Scalar:
    """The result that Python computes ("add", "sub", "mul", "div", "eq" or "ne") of its own numbers.

    One of them is complex; the other may be an int or a float.
    """
    if how in ("eq", "ne"):
        return compare(_complex(a), _complex(b), how)
    if MIXED and not (a.dtype.is_complex and b.dtype.is_complex) and (a.dtype.is_complex or how != "div"):
        return _mixed(a, b, how)
    a, b = _complex(a), _complex(b)
    if how == "mul":
        return _rounded_product(a, b)
    if how == "div":
        return _python_quotient(a, b)
    combine = _sum if how == "add" else _difference
    return a.joined(combine(a.real, b.real), combine(a.imag, b.imag))


def _complex(x: Scalar) -> Scalar:
    return x if x.dtype.is_complex else x.joined(x.cast(F64), x.cast(F64).const(0))


def _mixed(a: Scalar, b: Scalar, how: str) -> Scalar:
    """A complex number and a real one, part by part; no quotient by a complex one."""
    z, x = (a, b.cast(F64)) if a.dtype.is_complex else (b, a.cast(F64))
    if how == "mul":
        return z.joined(_product(z.real, x), _product(z.imag, x))
    if how == "div":
        return z.joined(z.real / x, z.imag / x)
    if how == "add":
        return z.joined(_sum(z.real, x), z.imag)
    if a.dtype.is_complex:
        return z.joined(_difference(z.real, x), z.imag)
    return z.joined(_difference(x, z.real), -z.imag)


def _python_quotient(a: Scalar, b: Scalar) -> Scalar:
    """The quotient as Python rounds it; NaN for a divisor of 0, for which Python raises."""
    across = ~(abs(b.real) >= abs(b.imag))
    large, small = across.select(b.imag, b.real), across.select(b.real, b.imag)
    ratio = small / large
    whole = _sum(large, _product(small, ratio))
    u, v = across.select(a.imag, a.real), across.select(a.real, a.imag)
    cross = _product(u, ratio)
    real = _sum(u, _product(v, ratio)) / whole
    imag = _difference(across.select(cross, v), across.select(v, cross)) / whole
    return a.joined(real, imag)


def reciprocal(z: Scalar) -> Scalar:
    """``1 / z`` as NumPy's function of that name computes it."""
    across = ~(abs(z.imag) <= abs(z.real))
    large, small = across.select(z.imag, z.real), across.select(z.real, z.imag)
    ratio = small / large
    whole = _sum(large, _product(small, ratio))
    one = ratio.const(1)
    real, imag = across.select(ratio, one), across.select(one, ratio)
    return z.joined(real / whole, -imag / whole)


def power(z: Scalar, exponent: int) -> Scalar:
    """A power, not negative, by multiplications in the order in which NumPy makes them."""
    if exponent == 3:
        return (z.real.eq(0) & z.imag.eq(0)).select(0, _rounded_product(z, _rounded_product(z, z)))
    return power_of_python(z, exponent)


def power_of_python(z: Scalar, exponent: int) -> Scalar:
    """A power, not negative, by repeated squaring."""
    result = z.const(1)
    while exponent:
        if exponent & 1:
            result = _rounded_product(result, z)
        exponent >>= 1
        if exponent:
            z = _rounded_product(z, z)
    return result


# Results of these are rounded, and never fused with another operation.


def _product(a: Scalar, b: Scalar) -> Scalar:
    return a._op("arith.mulf", b)


def _sum(a: Scalar, b: Scalar) -> Scalar:
    return a._op("arith.addf", b)


def _difference(a: Scalar, b: Scalar) -> Scalar:
    return a._op("arith.subf", b)


# --- comparisons --------------------------------------------------------------------------------


def compare(a: Scalar, b: Scalar, how: str) -> Scalar:
    """A comparison by real parts, and by imaginary ones where these are equal."""
    if how == "eq":
        return a.real.eq(b.real) & a.imag.eq(b.imag)
    if how == "ne":
        return a.real.ne(b.real) | a.imag.ne(b.imag)
    ordered = ~(a.imag.isnan() | b.imag.isnan())
    first = a.real._compare(b.real, how[0]) & ordered
    return first | (a.real.eq(b.real) & a.imag._compare(b.imag, how))


def extremum(a: Scalar, b: Scalar, word: str) -> Scalar:
    """The larger ("max") or smaller ("min") of two; the first that has a NaN."""
    better = a >= b if word == "max" else a <= b
    return (better | a.isnan()).select(a, b)


# --- lengths ------------------------------------------------------------------------------------


class _Length:
    """``sqrt(a² + b²)`` in f64, of two f32 or f64 of which the squares may be out of range.

    Attributes:
        a, b: the numbers in f64, multiplied by a power of 4 if they are f64.
        root: the root of the sum of their squares; infinite if either is, even beside NaN.
    """

    def __init__(self, a: Scalar, b: Scalar) -> None:
        infinite = a.isinf() | b.isinf()
        self._scaled = a.dtype is F64
        self.a, self.b = a.cast(F64), b.cast(F64)
        self._one = self.a.const(1)
        squares = _squares(self.a, self.b)
        squares.value.owner.attributes[SQUARES] = ir.UnitAttr.get()
        if self._scaled:
            self._large, self._small = ~(squares < _MOST), squares < _LEAST
            scale = self.by_size(1 / _FACTOR, _FACTOR)
            self.a, self.b = self.a * scale, self.b * scale
            squares = _squares(self.a, self.b)
        self.root = infinite.select(inf, squares.math("sqrt"))

    def by_size(self, large: float, small: float, usual: float = 1.0) -> Scalar:
        """One number if the squares are large, another if they are small, and else the third."""
        otherwise = self._one.const(usual)
        return self._large.select(large, self._small.select(small, otherwise)) if self._scaled else otherwise


def _squares(a: Scalar, b: Scalar) -> Scalar:
    return a * a + b * b


def hypot(a: Scalar, b: Scalar) -> Scalar:
    """``sqrt(a² + b²)`` without overflow on the way; infinite if either is, even beside NaN."""
    length = _Length(a, b)
    result = (length.root * length.by_size(_FACTOR, 1 / _FACTOR)).cast(a.dtype)
    result.value.owner.attributes[LENGTH] = ir.UnitAttr.get()
    return result


# --- functions ----------------------------------------------------------------------------------


def exp(z: Scalar) -> Scalar:
    """``exp(x) * (cos(y), sin(y))``, of real exponents alone where y is 0."""
    x, y = z.real, z.imag
    top = _TOP[x.dtype]
    beyond = x > top  # the exponential may overflow where its product with a cosine does not
    size = beyond.select(x - top, x).math("exp")
    factor = beyond.select(x.const(exp_of(top)), 1.0)
    is_real, strange = y.eq(0), ~y.isfinite()
    vanishes = strange & x.eq(-inf)
    real = is_real.select(size * factor, size * y.math("cos") * factor)
    imag = is_real.select(y, size * y.math("sin") * factor)
    real = (strange & x.eq(inf)).select(inf, vanishes.select(0.0, real))
    return z.joined(real, vanishes.select(0.0, imag))


def log_of(z: Scalar) -> Scalar:
    """The logarithm of the modulus, and the angle."""
    x, y = z.real, z.imag
    length, shift = _Length(x, y), log(_FACTOR)
    real = length.root.math("log") + length.by_size(shift, -shift, 0.0)
    if x.dtype is F64:
        # The logarithm of what is nearly 1 has few correct digits.
        large, small = abs(x).maximum(abs(y)), abs(x).minimum(abs(y))
        near = (length.root > 0.5) & (length.root < 2.0) & (large < 2.0)
        rest = (large - 1.0) * (large + 1.0) + small * small
        real = near.select(near.select(rest, 0.0).math("log1p") * 0.5, real)
    return z.joined(real.cast(x.dtype), y.math("atan2", x))


def sqrt(z: Scalar) -> Scalar:
    """The root of which the real part is not negative; the sign of the imaginary part stays."""
    x, y = z.real, z.imag
    length, factor = _Length(x, y), _FACTOR**0.5
    back = length.by_size(factor, 1 / factor)
    main = (abs(length.a) * 0.5 + length.root * 0.5).math("sqrt")
    other = length.b / (main + main)
    is_left = x < 0
    real = (is_left.select(abs(other), main) * back).cast(x.dtype)
    imag = (is_left.select(main.math("copysign", length.b), other) * back).cast(x.dtype)
    none, upright = length.root.eq(0), y.isinf()
    real, imag = none.select(0.0, real), none.select(y, imag)
    return z.joined(upright.select(inf, real), upright.select(y, imag))


def _hyperbolic(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Sinh and cosh without a common factor, and that factor."""
    size, top = abs(x), _TOP[x.dtype]
    beyond = size > top
    large = (size - top).math("exp") * 0.5
    sinh = beyond.select(large.math("copysign", x), x.math("sinh"))
    cosh = beyond.select(large, x.math("cosh"))
    return sinh, cosh, beyond.select(x.const(exp_of(top)), 1.0)


def sinh(z: Scalar) -> Scalar:
    """``(sinh(x) cos(y), cosh(x) sin(y))``."""
    x, y = z.real, z.imag
    odd, even, factor = _hyperbolic(x)
    is_real, strange = y.eq(0), ~y.isfinite()
    real = is_real.select(odd * factor, odd * y.math("cos") * factor)
    real = (strange & x.eq(0)).select(x, (strange & x.isinf()).select(inf, real))
    return z.joined(real, is_real.select(y, even * y.math("sin") * factor))


def cosh(z: Scalar) -> Scalar:
    """``(cosh(x) cos(y), sinh(x) sin(y))``."""
    x, y = z.real, z.imag
    odd, even, factor = _hyperbolic(x)
    is_real, strange = y.eq(0), ~y.isfinite()
    real = is_real.select(even * factor, even * y.math("cos") * factor)
    real = (strange & x.isinf()).select(inf, real)
    imag = is_real.select(y * x.const(1).math("copysign", x), odd * y.math("sin") * factor)
    return z.joined(real, (strange & x.eq(0)).select(0.0, imag))


def tanh(z: Scalar) -> Scalar:
    """``(sinh(x) cosh(x), sin(y) cos(y)) / (sinh(x)² + cos(y)²)``."""
    x, y = z.real, z.imag
    size, far = abs(x), _TOP[x.dtype] / 4
    beyond = size > far
    within = beyond.select(0.0, x)
    odd, even = within.math("sinh"), within.math("cosh")
    sine, cosine = y.math("sin"), y.math("cos")
    whole = odd * odd + cosine * cosine
    real = beyond.select(x.const(1).math("copysign", x), odd * even / whole)
    turned = sine * cosine
    imag = beyond.select(turned * 4.0 * (size * -2.0).math("exp"), turned / whole)
    strange = ~y.isfinite()
    imag = (strange & x.isinf()).select(y.const(0).math("copysign", y), imag)
    real = (strange & x.isfinite()).select(x.eq(0).select(x, nan), real)
    return z.joined(real, y.eq(0).select(y, imag))


def _turned(z: Scalar) -> Scalar:
    """``i z``."""
    return z.joined(-z.imag, z.real)


def _turned_back(z: Scalar) -> Scalar:
    """``z / i``."""
    return z.joined(z.imag, -z.real)


def sin(z: Scalar) -> Scalar:
    """``sinh(i z) / i``."""
    result = _turned_back(sinh(_turned(z)))
    strange = z.imag.isinf() & ~z.real.isfinite()
    return z.joined(result.real, strange.select(inf, result.imag))


FUNCTIONS: dict[str, Callable[[Scalar], Scalar]] = {
    "exp": exp,
    "log": log_of,
    "sqrt": sqrt,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sin": sin,
    "cos": lambda z: cosh(_turned(z)),
    "tan": lambda z: _turned_back(tanh(_turned(z))),
}


def function(z: Scalar, name: str) -> Scalar:
    """A function of the `math` dialect of a complex number; raises LoweringError for others."""
    rule = FUNCTIONS.get(name)
    if rule is None:
        raise LoweringError(f"no kernel is generated for {name} of {z.dtype} values")
    return rule(z)
