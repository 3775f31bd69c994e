"""Emitter for inline math: scalar `arith`/`math` ops of one float type at the insertion point.

Everything it emits maps to machine instructions, element by element and without branches, so LLVM's
loop vectoriser turns the loop around it into SIMD code.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, math

from ...dialect.dataclass import dataclass
from ..linalg.element import RARE

_FLOAT_PREDICATES = arith.CmpFPredicate


@dataclass(frozen=True)
class Format:
    """Constants of an IEEE format.

    Attributes:
        bits: width of the value.
        mantissa: stored mantissa bits.
        bias: exponent bias.
        magic: 1.5 * 2**mantissa; adding it rounds to an integer that lands in the low bits.
        small: its square is negligible next to 1, and its cube is a normal number.
    """

    bits: int
    mantissa: int
    bias: int

    @property
    def magic(self) -> float:
        return 1.5 * 2.0**self.mantissa

    @property
    def small(self) -> float:
        return 2.0 ** (-40 if self.bits == 32 else -60)

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


F32 = Format(32, 23, 127)
F64 = Format(64, 52, 1023)


class K:
    """Emits floating-point and bit operations of one element type, f32 or f64.

    `mul add sub fma` carry fastmath `contract`: the back end may fuse a product into a sum where
    the target has the instruction. `exact_fma` is fused on every target, for error-free
    transformations. An emitter creates each constant once, so it serves one insertion block.

    ``slow_subnormals``: the emitter avoids operations that take or give subnormal numbers, at the
    cost of a few others; the results have the same bits.

    ``fused``: the target has fused multiply-add, and `emit.rare` makes two versions of loops, so
    that a separate form for most arguments (`rarely`) pays.
    """

    def __init__(self, type: ir.Type, slow_subnormals: bool = False, fused: bool = False) -> None:
        self.type = type
        self.slow_subnormals, self.fused = slow_subnormals, fused
        self.format = F32 if isinstance(type, ir.F32Type) else F64
        self.int_type = ir.IntegerType.get_signless(self.format.bits)
        self.contract = ir.Attribute.parse("#arith.fastmath<contract>")
        self._floats: dict[str, ir.Value] = {}
        self._ints: dict[int, ir.Value] = {}

    @property
    def is_f32(self) -> bool:
        return self.format is F32

    def double(self) -> K:
        """The emitter of f64 at the same place."""
        return K(ir.F64Type.get(), self.slow_subnormals, self.fused)

    # constants

    def const(self, value: float) -> ir.Value:
        key = float(value).hex()
        if key not in self._floats:
            self._floats[key] = arith.constant(self.type, ir.FloatAttr.get(self.type, value))
        return self._floats[key]

    def integer(self, value: int) -> ir.Value:
        if value not in self._ints:
            attr = ir.IntegerAttr.get(self.int_type, value)
            self._ints[value] = arith.constant(self.int_type, attr)
        return self._ints[value]

    def _value(self, x: ir.Value | float) -> ir.Value:
        return self.const(x) if isinstance(x, (int, float)) else x

    # arithmetic; Python numbers are taken as constants

    def mul(self, a, b) -> ir.Value:
        return arith.mulf(self._value(a), self._value(b), fastmath=self.contract)

    def add(self, a, b) -> ir.Value:
        return arith.addf(self._value(a), self._value(b), fastmath=self.contract)

    def sub(self, a, b) -> ir.Value:
        return arith.subf(self._value(a), self._value(b), fastmath=self.contract)

    def div(self, a, b) -> ir.Value:
        return arith.divf(self._value(a), self._value(b))

    def fma(self, a, b, c) -> ir.Value:
        return self.add(self.mul(a, b), c)

    def exact_add(self, a, b) -> ir.Value:
        """Sum that is never fused with a product."""
        return arith.addf(self._value(a), self._value(b))

    def exact_sub(self, a, b) -> ir.Value:
        """Difference that is never fused with a product."""
        return arith.subf(self._value(a), self._value(b))

    def exact_mul(self, a, b) -> ir.Value:
        """Product that is never fused into a sum."""
        return arith.mulf(self._value(a), self._value(b))

    def exact_fma(self, a, b, c) -> ir.Value:
        return math.fma(self._value(a), self._value(b), self._value(c))

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """Horner's scheme, highest degree first."""
        result = self.const(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.fma(result, x, coefficient)
        return result

    # These three keep tails of series normal: f(x) = x + x * p(x**2) rounds to x for small x.

    def square(self, x) -> ir.Value:
        """x * x; with `slow_subnormals`, no less than the square of `small`."""
        if self.slow_subnormals:
            x = self.max(self.abs(x), self.format.small)
        return self.mul(x, x)

    def flushed(self, x) -> ir.Value:
        """x; with `slow_subnormals`, -0.0, which changes no sum, where |x| < `small`."""
        if not self.slow_subnormals:
            return x
        return self.select(self.lt(self.abs(x), self.format.small), -0.0, x)

    def capped(self, x, high: float) -> ir.Value:
        """x; with `slow_subnormals`, at most ``high``, beyond which 1 / x does not matter."""
        return self.min(x, high) if self.slow_subnormals else x

    neg = staticmethod(arith.negf)
    abs = staticmethod(math.absf)
    sqrt = staticmethod(math.sqrt)
    floor = staticmethod(math.floor)
    roundeven = staticmethod(math.roundeven)
    copysign = staticmethod(math.copysign)

    # comparisons are ordered (false on NaN) unless the name says otherwise

    def compare(self, predicate: str, a, b) -> ir.Value:
        return arith.cmpf(getattr(_FLOAT_PREDICATES, predicate), self._value(a), self._value(b))

    def eq(self, a, b) -> ir.Value:
        return self.compare("OEQ", a, b)

    def eq_or_nan(self, a, b) -> ir.Value:
        """a == b, or either is NaN."""
        return self.compare("UEQ", a, b)

    def ne(self, a, b) -> ir.Value:
        """a != b, or either is NaN."""
        return self.compare("UNE", a, b)

    def lt(self, a, b) -> ir.Value:
        return self.compare("OLT", a, b)

    def gt(self, a, b) -> ir.Value:
        return self.compare("OGT", a, b)

    def not_lt(self, a, b) -> ir.Value:
        """a >= b, or either is NaN."""
        return self.compare("UGE", a, b)

    def not_le(self, a, b) -> ir.Value:
        """a > b, or either is NaN."""
        return self.compare("UGT", a, b)

    def select(self, condition, a, b) -> ir.Value:
        return arith.select(condition, self._value(a), self._value(b))

    def rarely(self, condition, rare, usual) -> ir.Value:
        """`select` for a condition that hardly ever holds.

        Blocks of elements in which it never holds run without ``rare``. The condition should follow
        from the arguments in few operations.
        """
        result = self.select(condition, rare, usual)
        result.owner.attributes[RARE] = ir.UnitAttr.get()
        return result

    def unusual(self, x) -> ir.Value:
        """True where x is zero, negative, subnormal, infinite or NaN."""
        least = self.bits(self.const(self.format.smallest_normal))
        above = self.isub(self.bits(x), least)
        normal = self.integer((2 * self.format.bias) << self.format.mantissa)
        return arith.cmpi(arith.CmpIPredicate.uge, above, normal)

    def if_unusual(self, condition, rare, usual) -> ir.Value:
        """`rarely` if `fused`; else ``rare``, the form that holds for all arguments."""
        return self.rarely(condition, rare, usual) if self.fused else rare

    both = staticmethod(arith.andi)
    either = staticmethod(arith.ori)

    def clamp(self, x, low: float, high: float) -> ir.Value:
        """Limit x to [low, high]; NaN stays."""
        return self.min(self.max(x, low), high)

    # The constant is on the left of the comparison, so that each of these is one instruction: x86's
    # max and min return their second operand on NaN.

    def max(self, x, low) -> ir.Value:
        low = self._value(low)
        return arith.select(arith.cmpf(_FLOAT_PREDICATES.OGT, low, x), low, x)

    def min(self, x, high) -> ir.Value:
        high = self._value(high)
        return arith.select(arith.cmpf(_FLOAT_PREDICATES.OLT, high, x), high, x)

    # bit patterns

    def bits(self, x) -> ir.Value:
        return arith.bitcast(self.int_type, x)

    def from_bits(self, i) -> ir.Value:
        return arith.bitcast(self.type, i)

    iadd = staticmethod(arith.addi)
    isub = staticmethod(arith.subi)
    iand = staticmethod(arith.andi)
    ixor = staticmethod(arith.xori)
    imax = staticmethod(arith.maxsi)

    def shl(self, a, count: int) -> ir.Value:
        return arith.shli(a, self.integer(count))

    def shr(self, a, count: int) -> ir.Value:
        """Logical shift right."""
        return arith.shrui(a, self.integer(count))

    def to_float(self, i) -> ir.Value:
        """A signed integer of small magnitude as a float.

        f64 uses the magic number, because AVX2 has no conversion from 64-bit integers.
        """
        if self.is_f32:
            return arith.sitofp(self.type, i)
        magic = self.const(self.format.magic)
        return arith.subf(self.from_bits(self.iadd(i, self.bits(magic))), magic)

    def round(self, x, scale: float, offset: int = 0) -> tuple[ir.Value, ir.Value]:
        """n = round(x * scale) as a float, and bits whose low half holds n + offset.

        Uses the magic number, because fptosi is poison on NaN. Valid for |n| < 2**(mantissa - 2).
        """
        magic = self.const(self.format.magic + offset)
        shifted = self.fma(x, scale, magic)
        return arith.subf(shifted, magic), self.bits(shifted)

    def extend(self, x) -> ir.Value:
        """f32 to f64."""
        return arith.extf(ir.F64Type.get(), x)

    def truncate(self, x) -> ir.Value:
        """f64 to f32, rounded to nearest."""
        return arith.truncf(ir.F32Type.get(), x)

    def is_odd(self, i) -> ir.Value:
        """True where the lowest bit of an integer is set."""
        low = self.iand(i, self.integer(1))
        return arith.cmpi(arith.CmpIPredicate.ne, low, self.integer(0))

    def sign_bit(self, x) -> ir.Value:
        """True where the sign bit is set, as for -0."""
        return arith.cmpi(arith.CmpIPredicate.slt, self.bits(x), self.integer(0))

    def flip_sign(self, x, sign) -> ir.Value:
        """x with its sign changed where that of `sign` is set."""
        mask = self.integer(-(1 << (self.format.bits - 1)))
        return self.from_bits(self.ixor(self.bits(x), self.iand(self.bits(sign), mask)))
