"""Elementwise arithmetic of two operands."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtypes import F64, I64, DType, numpy_dtype
from ...ir.op import Attrs, Rounding
from ...ir.size_algebra import sym_max, sym_min
from ...ir.symbolic import Dim, Sym
from ...ir.types import TENSOR, ScalarType, TensorType, Type
from ...reasons import Kind, Reason
from ..sizes import as_tensor, is_nonnegative, is_positive
from .families import PYTHON_NUMBERS, Binary, PartialBinary, in_f32

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import Partial


class Add(Binary, name="add"):
    """``a + b``; integers wrap, bools combine by "or"."""

    exact = True
    lowers_complex = True
    numpy = np.add
    python = symbolic = element = operator.add
    of_complex = staticmethod(lambda a, b: a.python_complex("add", b))
    partials = staticmethod(lambda a, b, y: (1, 1))


class Sub(Binary, name="sub"):
    """``a - b``; integers wrap, bool has no loop."""

    exact = True
    lowers_complex = True
    numpy = np.subtract
    python = symbolic = element = operator.sub
    of_complex = staticmethod(lambda a, b: a.python_complex("sub", b))
    partials = staticmethod(lambda a, b, y: (1, -1))


class Mul(Binary, name="mul"):
    """``a * b``; integers wrap, bools combine by "and"."""

    exact = True
    lowers_complex = True
    numpy = np.multiply
    python = symbolic = element = operator.mul
    of_complex = staticmethod(lambda a, b: a.python_complex("mul", b))
    partials = staticmethod(lambda a, b, y: (b, a))


class Division(PartialBinary):
    """Family of divisions. Python raises for a divisor of 0, which kernels report."""

    @classmethod
    def refuse_python(cls, types: Sequence[Type]) -> Reason | None:
        return None  # a kernel reports a divisor of 0

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        if isinstance(types[0], ScalarType) and not _is_size(args[1]):
            divisor = as_tensor(b, args[1])
            number = None if divisor.scalar is None else divisor.scalar.known
            if not cls.python_total(number):
                b.forbid(lambda n: n.eq(0), divisor)
        return super().lower(b, attrs, types, *args)


def _is_size(value: Any) -> bool:
    """True if a value is a size that is not 0."""
    return isinstance(value, Sym) and (is_positive(value) or is_positive(-value))


class Div(Division, name="div"):
    """``a / b``: true division, integers become floats."""

    exact = True
    lowers_complex = True
    numpy = np.divide
    python = element = operator.truediv
    of_complex = staticmethod(lambda a, b: a.python_complex("div", b))
    singular = True

    @staticmethod
    def partials(a: Any, b: Any, y: Any) -> Sequence[Partial]:
        if type(b) in PYTHON_NUMBERS and hasattr(y, "shape"):
            return 1 / b if b else math.copysign(math.inf, b.real), None
        if hasattr(y, "shape") and not hasattr(b, "shape"):
            inverse = _inverse(b, y.dtype)
        else:
            inverse = 1 / b
        # Both begin with the gradient of ``a``: elements are not divided by a number per row.
        return inverse, (inverse, y, -1)


def _inverse(number: Any, dtype: np.dtype) -> Any:
    """1 by a number that is not known: rounded as that of one that is known, a Python number."""
    if isinstance(number, complex):
        return 1 / _as_array(number, dtype)
    inverse = 1 / _as_array(number, np.dtype(np.float64))
    real = np.zeros((), dtype).real.dtype
    return inverse if real == np.float64 else inverse.astype(real)


def _as_array(x: Any, dtype: np.dtype) -> Any:
    """A number that is not known as an array, which gives infinity where Python raises."""
    # Not np.asarray, which would take the value of this call for a constant.
    has_value = hasattr(x, "shape") or type(x) in PYTHON_NUMBERS
    return x if has_value else np.multiply(x, dtype.type(1))


def _no_zero(call: Callable[[Dim, Dim], Dim]) -> Callable[[Dim, Dim], Dim]:
    """``call`` on sizes, refusing a divisor that is or may be 0, for which Python raises."""

    def divide(a: Dim, b: Dim) -> Dim:
        if b == 0 or (isinstance(b, Sym) and not _is_size(b)):
            raise ZeroDivisionError("division by zero")
        return call(a, b)

    return divide


class ToComplex(Binary, name="to_complex", rounding=Rounding.NONE):
    """``complex(a, b)`` of two real Python numbers: the number with these parts."""

    lowers_complex = of_numbers = True
    numpy = python = complex
    element = staticmethod(lambda a, b: a.joined(a.cast(F64), b.cast(F64)))
    partials = staticmethod(lambda a, b, y: (1, 1j))

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        for type_ in types:
            if not isinstance(type_, ScalarType) or type_.dtype.is_complex:
                raise DTypeError("parts of a complex number are real Python numbers")
        return super().infer(types, attrs)

    @classmethod
    def python_operands(cls, target: DType, *xs: Scalar) -> tuple[Scalar, ...]:
        return xs


class FloorDiv(Division, name="floor_div"):
    """``a // b`` rounded down; integers give 0 for a zero divisor."""

    numpy = np.floor_divide
    python = operator.floordiv
    symbolic = staticmethod(_no_zero(operator.floordiv))
    element = operator.floordiv
    no_gradient = True


class Remainder(Division, name="remainder"):
    """``a % b`` with the sign of ``b``; integers give 0 for a zero divisor."""

    numpy = np.remainder
    python = operator.mod
    symbolic = staticmethod(_no_zero(operator.mod))
    element = operator.mod
    partials = staticmethod(lambda a, b, y: (1, -np.floor_divide(a, b)))
    singular = True


class Fmod(Binary, name="fmod"):
    """Remainder with the sign of ``a`` (C's fmod and %); integers give 0 for a zero divisor."""

    numpy = np.fmod
    element = staticmethod(lambda a, b: a.fmod(b))
    partials = staticmethod(lambda a, b, y: (1, -np.trunc(a / b)))
    singular = True


def _by_base(a: Any, b: Any, dtype: np.dtype) -> Partial:
    """The derivative of ``a ** b`` by a: 0 where b is 0, whatever a is."""
    if type(b) in PYTHON_NUMBERS:
        return None if b == 0 else 1 if b == 1 else a * 2 if b == 2 else b * a ** (b - 1)
    b = _as_array(b, dtype)
    flat = b == 0
    return np.where(flat, 0, b * np.power(a, np.where(flat, 1, b - 1)))


def _by_exponent(a: Any, y: Any, dtype: np.dtype) -> Partial:
    """The derivative of ``y = a ** b`` by b: 0 where there is no logarithm of a."""
    if type(a) in PYTHON_NUMBERS:
        if dtype.kind == "c":
            return y * cmath.log(a) if a else None
        return y * math.log(a) if a > 0 else None
    a = _as_array(a, dtype)
    if dtype.kind == "c":
        a = a.astype(dtype)  # negative numbers have a logarithm there
        usual = a != 0
    else:
        usual = a > 0
    return np.where(usual, y * np.log(np.where(usual, a, 1)), 0)


class Pow(PartialBinary, name="pow"):
    """``a ** b``; integer powers wrap, and NumPy raises for negative ones."""

    lowers_complex = True
    numpy = np.power
    grows = True

    singular = True

    @staticmethod
    def partials(a: Any, b: Any, y: Any) -> Sequence[Partial]:
        dtype = numpy_dtype(y)
        return (
            None if type(a) in PYTHON_NUMBERS else _by_base(_as_array(a, dtype), b, dtype),
            None if type(b) in PYTHON_NUMBERS else _by_exponent(a, y, dtype),
        )

    @staticmethod
    def python(a: Any, b: Any) -> Any:
        out = a**b
        if type(out) is complex and type(a) is not complex and type(b) is not complex:
            # Its type must not depend on its operands' values.
            raise DTypeError(
                f"{a!r} ** {b!r} is complex in Python", hint="make the base complex, or keep it from being negative"
            )
        return out

    @classmethod
    def infer_python(cls, types: Sequence[Type]) -> Type:
        result = super().infer_python(types)
        if not isinstance(result, ScalarType) or not result.dtype.is_int:
            return result
        exponent = types[1].value if isinstance(types[1], ScalarType) else None
        if not isinstance(exponent, int):
            return TENSOR  # an int, or a float if the exponent turns out negative
        return result if exponent >= 0 else ScalarType(F64, result.value)

    @classmethod
    def refuse_python(cls, types: Sequence[Type]) -> Reason | None:
        result = cls.infer(types, {})[0]
        base, exponent = (t.value for t in types if isinstance(t, ScalarType))
        if isinstance(result, ScalarType) and result.value is not None:
            return None  # known: it becomes a constant
        if isinstance(base, Sym) and is_nonnegative(base) and exponent == 0.5:
            return None  # the square root of a size
        if result.dtype is not I64:  # type: ignore[union-attr]
            return Reason(Kind.PYTHON_RAISES, detail="where a power of floats overflows")
        return None  # its type is only known to be an int for exponents that are not negative

    @classmethod
    def refuse_complex(cls, types: Sequence[Type]) -> Reason | None:
        return cls.refuse(types) or Reason(Kind.PYTHON_RAISES, detail="where a power overflows")

    @staticmethod
    def of_complex(a: Scalar, b: Scalar) -> Scalar:
        return a.python_power(int(b.known.real))

    @classmethod
    def refuse(cls, types: Sequence[Type]) -> Reason | None:
        if not any(t.dtype is not None and t.dtype.is_complex for t in types):  # type: ignore[union-attr]
            return None
        exponent = types[1].value if isinstance(types[1], ScalarType) else None
        if exponent is None or isinstance(exponent, Sym) or exponent not in _COMPLEX_POWERS:
            return Reason(Kind.COMPLEX)
        return None

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        exponent = as_tensor(b, args[1])
        number = None if exponent.scalar is None else exponent.scalar.known
        if exponent.dtype.kind == "i" and (number is None or number < 0):
            b.forbid(lambda n: n < 0, exponent)
        out = types[0]
        roots = exponent.dtype.is_float and exponent.dtype.bits > 16 and not exponent.rank
        if isinstance(out, TensorType) and roots and number is None:
            return b.pointwise(cls._scalar_or_root, args, out)
        return super().lower(b, attrs, types, *args)

    @classmethod
    def _scalar_or_root(cls, a: Scalar, k: Scalar) -> Scalar:
        """One exponent for all elements, known when it runs: `_root` if it is 0.5."""
        return k.eq(0.5).select(_root(a), cls.scalar(a, k))

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        a, b = xs
        if a.dtype.is_complex:
            assert b.known is not None  # `refuse` has seen to that
            return a.to_power(int(b.known.real))
        if not a.dtype.is_float:
            return a.ipow(b)
        short = _POWERS.get(b.known)
        return a.math("powf", b) if short is None else short(a)


def _root(a: Scalar) -> Scalar:
    """``a ** 0.5``; NumPy takes the square root itself in f32 and f64."""
    if a.dtype.bits > 16:
        return a.math("sqrt")
    return _positive_root(a)


def _positive_root(a: Scalar) -> Scalar:
    """The square root, but as C's pow has it at -0.0 (0.0) and -inf (inf)."""
    return a.eq(float("-inf")).select(float("inf"), (a + 0.0).math("sqrt"))


def _half_more(a: Scalar) -> Scalar:
    """``a ** 1.5``, whose sign is that of no operand."""
    return abs(a) * _positive_root(a)


# Exponents for which NumPy multiplies complex numbers, as far as that is better than a call of it.
_COMPLEX_POWERS = range(17)
# Constant powers that cost less than exp and log, within about 2 units in the last place. No step
# overflows or loses digits where the result does not.
_POWERS: dict[Any, Callable[[Scalar], Scalar]] = {
    -3: lambda a: (1.0 / a) / (a * a),
    -2: lambda a: (1.0 / a) * (1.0 / a),
    -1.5: lambda a: (1.0 / abs(a)) / _positive_root(a),
    -1: lambda a: 1.0 / a,
    -0.5: lambda a: 1.0 / _positive_root(a),
    0.5: _root,
    1: lambda a: a,
    1.5: _half_more,
    2: lambda a: a * a,
    2.5: lambda a: abs(a) * _half_more(a),
    3: lambda a: a * a * a,
    4: lambda a: (a * a) * (a * a),
}


def _shared(a: Any, b: Any, y: Any) -> Sequence[Partial]:
    """Of a maximum or minimum: the chosen operand has the gradient, or both half of it; NaNs do."""
    both = (a == b) | (np.isnan(a) & np.isnan(b))

    def share(x: Any) -> Partial:
        chosen = (x == y) | np.isnan(x)
        return lambda g: np.where(both, g * 0.5, np.where(chosen, g, 0))

    return share(a), share(b)


class Maximum(Binary, name="maximum", rounding=Rounding.NONE):
    """Larger of two; nan wins."""

    lowers_complex = True
    numpy = np.maximum
    symbolic = staticmethod(sym_max)
    partials = staticmethod(_shared)

    @staticmethod
    def python(a: Any, b: Any) -> Any:
        return _as_common(a, b, a if a >= b or a != a else b)

    element = staticmethod(lambda a, b: a.maximum(b))


class Minimum(Binary, name="minimum", rounding=Rounding.NONE):
    """Smaller of two; nan wins."""

    lowers_complex = True
    numpy = np.minimum
    symbolic = staticmethod(sym_min)
    partials = staticmethod(_shared)

    @staticmethod
    def python(a: Any, b: Any) -> Any:
        return _as_common(a, b, a if a <= b or a != a else b)

    element = staticmethod(lambda a, b: a.minimum(b))


def _as_common(a: Any, b: Any, value: Any) -> Any:
    """``value``, one of two Python numbers, in the wider of their types."""
    return value if type(a) is type(b) else type(a + b)(value)


class Atan2(Binary, name="atan2"):
    """Angle of the point (b, a)."""

    numpy = np.arctan2
    element = staticmethod(lambda a, b: a.math("atan2", b))

    singular = True

    @staticmethod
    def partials(a: Any, b: Any, y: Any) -> Sequence[Partial]:
        square = a * a + b * b
        square = np.where(square == 0, 1, square)  # at the origin, where no direction is better, the gradient is 0
        return b / square, -a / square


class Hypot(Binary, name="hypot"):
    """``sqrt(a² + b²)`` without overflow on the way; infinite if either is, even beside nan."""

    numpy = np.hypot

    @staticmethod
    def partials(a: Any, b: Any, y: Any) -> Sequence[Partial]:
        none = y == 0
        length = np.where(none, 1, y)
        return np.where(none, 0, a / length), np.where(none, 0, b / length)

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        a, b = xs
        return a.hypot(b)


class Copysign(Binary, name="copysign", rounding=Rounding.NONE):
    """Size of ``a``, sign of ``b``."""

    numpy = np.copysign
    element = staticmethod(lambda a, b: a.math("copysign", b))
    partials = staticmethod(lambda a, b, y: (np.sign(a) * np.sign(y), None))


class Logaddexp(Binary, name="logaddexp"):
    """``log(exp(a) + exp(b))`` without overflow."""

    numpy = np.logaddexp

    @staticmethod
    def partials(a: Any, b: Any, y: Any) -> Sequence[Partial]:
        # Infinities that are equal have no difference.
        return tuple(np.exp(np.where(x == y, 0, x - y)) for x in (a, b))

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        a, b = map(in_f32, xs)
        distance = abs(a - b)
        total = a.maximum(b) + (-distance).math("exp").math("log1p")
        # Equal infinities have no distance.
        return a.eq(b).select(a + 0.6931471805599453, total).cast(xs[0].dtype)
