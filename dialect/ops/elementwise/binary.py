"""Elementwise arithmetic of two operands."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtypes import F64, DType
from ...ir.op import Attrs, Rounding
from ...ir.size_algebra import sym_max, sym_min
from ...ir.symbolic import Dim, Sym
from ...ir.types import ScalarType, Type
from ...reasons import Reason
from ..sizes import as_tensor, is_positive
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
        return 1 / with_infinity(number, dtype)
    inverse = 1 / with_infinity(number, np.dtype(np.float64))
    real = np.zeros((), dtype).real.dtype
    return inverse if real == np.float64 else inverse.astype(real)


def with_infinity(x: Any, dtype: np.dtype) -> Any:
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
