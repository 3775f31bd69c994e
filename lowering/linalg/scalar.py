"""Typed scalar emission: one `Scalar` per SSA value inside a linalg body, with NumPy's meaning.

A `Scalar` knows its dtype, which MLIR's signless integers do not: the dtype picks signed or
unsigned operations.  Results match NumPy element by element, including the cases for which LLVM
gives poison or traps: division by zero, ``INT_MIN // -1``, shifts by the width or more, and
conversions of NaN or out-of-range floats.  Half-precision values are computed in f32 and rounded
after each operation, as NumPy does. A complex number is two scalars, its parts (`complexes`).

Every function here emits at the current insertion point and location of the `mlir` bindings.
"""

from __future__ import annotations

from typing import Any, Union

from mlir import ir

from ...dialect.errors import InternalError
from ...dialect.ir.dtypes import BF16, BOOL, C64, C128, F32, U64, DType
from ...dialect.ir.types import ScalarType
from . import bit_patterns, complexes, division, scalar_cast
from .element import GUARDED, HALF, RARE, Number, compute_type, constant_value, emit, int_type

# Predicates of arith.cmpi (signed, unsigned) and arith.cmpf (unordered only for "ne").
_CMPI = {"eq": (0, 0), "ne": (1, 1), "<": (2, 6), "<=": (3, 7), ">": (4, 8), ">=": (5, 9)}
_CMPF = {"eq": 1, ">": 2, ">=": 3, "<": 4, "<=": 5, "ne": 13, "unordered": 14}


def constant(value: Number | complex, dtype: DType) -> Scalar:
    """A constant of this dtype; integers wrap, floats round to nearest."""
    if dtype.is_complex:
        real, imag = constant(value.real, dtype.part), constant(value.imag, dtype.part)
        return _joined(real, imag, known=value)
    assert not isinstance(value, complex)
    return Scalar(constant_value(value, dtype), dtype, known=value)


class Scalar:
    """One value inside a kernel body.

    Attributes:
        value: the SSA value, of type ``compute_type(dtype)``.
        dtype: the dtype, which decides on signedness.
        reassoc: float additions with this operand may be reassociated (sum accumulators).
        known: for a constant, its number as given; None for computed values.
        parts: real and imaginary part of a complex number; None for others.
    """

    __slots__ = ("dtype", "known", "parts", "reassoc", "value")

    def __init__(
        self,
        value: ir.Value,
        dtype: DType,
        *,
        reassoc: bool = False,
        known: Any = None,
        parts: tuple[Scalar, Scalar] | None = None,
    ) -> None:
        self.value, self.dtype, self.reassoc, self.known = value, dtype, reassoc, known
        self.parts = parts

    @property
    def type(self) -> ScalarType:
        """The type, with no known value."""
        return ScalarType(self.dtype)

    def __repr__(self) -> str:
        return f"Scalar({self.dtype})"

    # --- parts -------------------------------------------------------------------------------

    @property
    def real(self) -> Scalar:
        """The real part; of a real number, the number itself."""
        return self if self.parts is None else self.parts[0]

    @property
    def imag(self) -> Scalar:
        """The imaginary part; of a real number, 0."""
        return self.const(0) if self.parts is None else self.parts[1]

    def conj(self) -> Scalar:
        """The complex conjugate; of a real number, the number itself."""
        return self if self.parts is None else _joined(self.real, -self.imag)

    @staticmethod
    def joined(real: Scalar, imag: Scalar) -> Scalar:
        """The complex number of two floats of one dtype, f32 or f64."""
        return _joined(real, imag)

    # --- helpers -----------------------------------------------------------------------------

    def const(self, value: Number | complex) -> Scalar:
        """A constant of this scalar's dtype."""
        return constant(value, self.dtype)

    def _other(self, other: Operand) -> Scalar:
        if not isinstance(other, Scalar):
            return self.const(other)
        if other.dtype is not self.dtype:
            raise InternalError(f"scalar operands differ in dtype: {self.dtype}, {other.dtype}")
        return other

    def _op(self, name: str, *others: Scalar, **attributes: ir.Attribute) -> Scalar:
        """An operation all of whose operands and result have this dtype."""
        operands = (o.value for o in others)
        return Scalar(emit(name, self.value.type, self.value, *operands, **attributes), self.dtype)

    def _float(self, name: str, *others: Scalar, **attributes: ir.Attribute) -> Scalar:
        """`_op`, with halves computed in f32 and rounded back."""
        if self.dtype in HALF:
            wide = self.cast(F32)._op(name, *(o.cast(F32) for o in others), **attributes)
            return wide.cast(self.dtype)
        return self._op(name, *others, **attributes)

    def _arith(self, other: Operand, name: str) -> Scalar:
        """add, sub or mul: NumPy defines add and mul on bool as or and and."""
        rhs = self._other(other)
        if self.dtype.is_complex:
            return complexes.arith(self, rhs, name)
        if self.dtype is BOOL:
            if name == "sub":
                raise InternalError("bool subtraction is undefined")
            return self._op("arith.ori" if name == "add" else "arith.andi", rhs)
        if self.dtype.is_int:
            return self._op(f"arith.{name}i", rhs)
        if self.dtype in HALF:
            return self._float(f"arith.{name}f", rhs)
        reassoc = self.reassoc or rhs.reassoc
        flags = "reassoc,contract" if reassoc and name == "add" else "contract"
        fastmath = ir.Attribute.parse(f"#arith.fastmath<{flags}>")
        out = self._op(f"arith.{name}f", rhs, fastmath=fastmath)
        out.reassoc = reassoc and name == "add"
        return out

    def _compare(self, other: Operand, how: str) -> Scalar:
        lhs, rhs = self, self._other(other)
        if lhs.dtype.is_complex:
            return complexes.compare(lhs, rhs, how)
        if lhs.dtype in HALF:
            lhs, rhs = lhs.cast(F32), rhs.cast(F32)
        if lhs.dtype.is_float:
            name, code = "arith.cmpf", _CMPF[how]
        else:
            name, code = "arith.cmpi", _CMPI[how][lhs.dtype.kind != "i"]
        predicate = ir.IntegerAttr.get(int_type(64), code)
        value = emit(name, int_type(1), lhs.value, rhs.value, predicate=predicate)
        return Scalar(value, BOOL)

    def python_complex(self, how: str, other: Scalar) -> Scalar:
        """An operation of Python's on two of its numbers, of which one is complex."""
        return complexes.of_python(self, other, how)

    # --- arithmetic --------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Scalar:
        return self._arith(other, "add")

    def __sub__(self, other: Operand) -> Scalar:
        return self._arith(other, "sub")

    def __mul__(self, other: Operand) -> Scalar:
        return self._arith(other, "mul")

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Operand) -> Scalar:
        return self._other(other) - self

    def __truediv__(self, other: Operand) -> Scalar:
        if self.dtype.is_complex:
            return complexes.divide(self, self._other(other))
        if not self.dtype.is_float:
            raise InternalError(f"true division of {self.dtype} scalars")
        return self._float("arith.divf", self._other(other))

    def __rtruediv__(self, other: Operand) -> Scalar:
        return self._other(other) / self

    def __floordiv__(self, other: Operand) -> Scalar:
        """NumPy's floor_divide; an integer divided by 0 gives 0."""
        return division.floor_divmod(self, self._other(other))[0]

    def __mod__(self, other: Operand) -> Scalar:
        """NumPy's remainder: the sign of the divisor; an integer modulo 0 gives 0."""
        return division.floor_divmod(self, self._other(other))[1]

    def __rfloordiv__(self, other: Operand) -> Scalar:
        return self._other(other) // self

    def __rmod__(self, other: Operand) -> Scalar:
        return self._other(other) % self

    def fmod(self, other: Operand) -> Scalar:
        """C's remainder: the sign of the dividend; an integer modulo 0 gives 0."""
        return division.fmod(self, self._other(other))

    def ipow(self, other: Operand) -> Scalar:
        """Integer power, wrapping; 1 for a negative exponent, which has to be forbidden."""
        return division.ipow(self, self._other(other))

    def to_power(self, exponent: int) -> Scalar:
        """A complex number to the power of a known integer."""
        return complexes.power(self, exponent)

    def python_power(self, exponent: int) -> Scalar:
        """The same of Python's complex numbers."""
        return complexes.power_of_python(self, exponent)

    def reciprocal(self) -> Scalar:
        """1 divided by a complex number."""
        return complexes.reciprocal(self)

    def __neg__(self) -> Scalar:
        if self.dtype is BOOL:
            raise InternalError("bool negation is undefined")
        if self.dtype.is_complex:
            return _joined(-self.real, -self.imag)
        if self.dtype is BF16:
            return bit_patterns.negated(self)
        return self._op("arith.negf") if self.dtype.is_float else self.const(0) - self

    def __abs__(self) -> Scalar:
        if self.dtype.is_complex:
            return self.real.hypot(self.imag)
        if self.dtype is BF16:
            return bit_patterns.absolute(self)
        if self.dtype.is_float:
            return self._op("math.absf")
        return (self < 0).select(-self, self) if self.dtype.kind == "i" else self

    # --- comparisons, bits -------------------------------------------------------------------

    def __lt__(self, other: Operand) -> Scalar:
        return self._compare(other, "<")

    def __le__(self, other: Operand) -> Scalar:
        return self._compare(other, "<=")

    def __gt__(self, other: Operand) -> Scalar:
        return self._compare(other, ">")

    def __ge__(self, other: Operand) -> Scalar:
        return self._compare(other, ">=")

    def eq(self, other: Operand) -> Scalar:
        """``==`` (False when either is NaN)."""
        return self._compare(other, "eq")

    def ne(self, other: Operand) -> Scalar:
        """``!=`` (True when either is NaN)."""
        return self._compare(other, "ne")

    def __and__(self, other: Operand) -> Scalar:
        return self._op("arith.andi", self._other(other))

    def __or__(self, other: Operand) -> Scalar:
        return self._op("arith.ori", self._other(other))

    def __xor__(self, other: Operand) -> Scalar:
        return self._op("arith.xori", self._other(other))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Scalar:
        return self ^ (1 if self.dtype is BOOL else -1)

    def shl(self, other: Operand) -> Scalar:
        """Left shift; 0 where the count is negative or at least the width."""
        return bit_patterns.shl(self, self._other(other))

    def shr(self, other: Operand) -> Scalar:
        """Right shift; for counts negative or at least the width: 0, or the sign if signed."""
        return bit_patterns.shr(self, self._other(other))

    def kept_below(self, count: Scalar) -> Scalar:
        """An i64 as a place on an axis: a negative one counts from the end, all are kept within it.

        Loops of which all places are on the axis run without this.
        """
        zero = self.const(0)
        within = (self < zero).select(self + count, self).minimum(count - 1).maximum(zero)
        is_outside = Scalar(self.value, U64) >= Scalar(count.value, U64)
        place = is_outside.select(within, self)
        place.value.owner.attributes[RARE] = ir.StringAttr.get(GUARDED)
        return place

    # --- selection and float functions -------------------------------------------------------

    def select(self, a: Operand, b: Operand) -> Scalar:
        """``a`` where this bool is true, else ``b``; at least one of them is a Scalar."""
        if not isinstance(a, Scalar):
            assert isinstance(b, Scalar)
            a = b.const(a)
        b = a._other(b)
        if a.dtype.is_complex:
            return _joined(self.select(a.real, b.real), self.select(a.imag, b.imag))
        return Scalar(emit("arith.select", a.value.type, self.value, a.value, b.value), a.dtype)

    def _extremum(self, other: Operand, word: str, flavour: str) -> Scalar:
        rhs = self._other(other)
        if self.dtype.is_complex:
            return complexes.extremum(self, rhs, word)
        if self.dtype.is_float:
            return self._float(f"arith.{word}{flavour}f", rhs)
        if self.dtype is BOOL:
            return self | rhs if word == "max" else self & rhs
        return self._op(extremum_op(self.dtype, word), rhs)

    def maximum(self, other: Operand) -> Scalar:
        """The larger; NaN if either is NaN."""
        return self._extremum(other, "max", "imum")

    def minimum(self, other: Operand) -> Scalar:
        """The smaller; NaN if either is NaN."""
        return self._extremum(other, "min", "imum")

    def fmax(self, other: Operand) -> Scalar:
        """The larger; NaN only if both are NaN."""
        return self._extremum(other, "max", "num")

    def fmin(self, other: Operand) -> Scalar:
        """The smaller; NaN only if both are NaN."""
        return self._extremum(other, "min", "num")

    def hypot(self, other: Scalar) -> Scalar:
        """``sqrt(self² + other²)`` of floats, without overflow on the way."""
        return complexes.hypot(self, other)

    def math(self, name: str, *others: Operand) -> Scalar:
        """The operation ``math.<name>`` on floats (``"exp"``, ``"atan2"``, ``"powf"``, …).

        Complex numbers have those in `complexes.FUNCTIONS`.
        """
        if self.dtype.is_complex:
            return complexes.function(self, name)
        if not self.dtype.is_float:
            raise InternalError(f"math.{name} of {self.dtype} scalars")
        if name == "absf":
            return abs(self)
        operands = [self._other(o) for o in others]
        if name == "copysign":  # exact in every format
            if self.dtype is BF16:
                return bit_patterns.with_sign(self, operands[0])
            return self._op("math.copysign", *operands)
        return self._float(f"math.{name}", *operands)

    def isnan(self) -> Scalar:
        """True for NaN, in either part; False for every integer."""
        if self.dtype.is_complex:
            return self.real.isnan() | self.imag.isnan()
        return self._compare(self, "unordered") if self.dtype.is_float else constant(0, BOOL)

    def isinf(self) -> Scalar:
        """True for ±infinity, in either part."""
        if self.dtype.is_complex:
            return self.real.isinf() | self.imag.isinf()
        return abs(self).eq(float("inf")) if self.dtype.is_float else constant(0, BOOL)

    def isfinite(self) -> Scalar:
        """False for NaN and ±infinity."""
        if self.dtype.is_complex:
            return self.real.isfinite() & self.imag.isfinite()
        return abs(self) < float("inf") if self.dtype.is_float else constant(1, BOOL)

    def bits(self) -> Scalar:
        """A float's representation as a signed integer of the same width."""
        return bit_patterns.bits(self)

    def bitcast(self, dtype: DType) -> Scalar:
        """The same bits as another dtype of this width; none of the two is complex or bool."""
        return bit_patterns.bitcast(self, dtype)

    def cast(self, dtype: DType) -> Scalar:
        """``astype(dtype)``, with NumPy's results on x86-64 for values that do not fit."""
        return scalar_cast.cast(self, dtype)


Operand = Union[Scalar, Number]


def extremum_op(dtype: DType, word: str) -> str:
    """Name of the operation for ``"max"`` or ``"min"``; of floats, NaN if one of them is NaN."""
    if dtype.is_float:
        return f"arith.{word}imumf"
    return f"arith.{word}{'s' if dtype.kind == 'i' else 'u'}i"


def _joined(real: Scalar, imag: Scalar, known: Any = None) -> Scalar:
    """A complex number from its parts."""
    dtype = C64 if real.dtype is F32 else C128
    value = emit("complex.create", compute_type(dtype), real.value, imag.value)
    return Scalar(value, dtype, known=known, parts=(real, imag))
