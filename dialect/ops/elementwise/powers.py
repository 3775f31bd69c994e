"""Powers: their types, their kernels for exponents that are known, their derivatives."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError
from ...ir.dtypes import F64, I64, numpy_dtype
from ...ir.op import Attrs
from ...ir.symbolic import Sym
from ...ir.types import TENSOR, ScalarType, TensorType, Type
from ...reasons import Kind, Reason
from ..sizes import as_tensor, is_nonnegative
from .binary import with_infinity
from .families import PYTHON_NUMBERS, PartialBinary

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import Partial


def _by_base(a: Any, b: Any, dtype: np.dtype) -> Partial:
    """The derivative of ``a ** b`` by a: 0 where b is 0, whatever a is."""
    if type(b) in PYTHON_NUMBERS:
        return None if b == 0 else 1 if b == 1 else a * 2 if b == 2 else b * a ** (b - 1)
    b = with_infinity(b, dtype)
    flat = b == 0
    return np.where(flat, 0, b * np.power(a, np.where(flat, 1, b - 1)))


def _by_exponent(a: Any, y: Any, dtype: np.dtype) -> Partial:
    """The derivative of ``y = a ** b`` by b: 0 where there is no logarithm of a."""
    if type(a) in PYTHON_NUMBERS:
        if dtype.kind == "c":
            return y * cmath.log(a) if a else None
        return y * math.log(a) if a > 0 else None
    a = with_infinity(a, dtype)
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
            None if type(a) in PYTHON_NUMBERS else _by_base(with_infinity(a, dtype), b, dtype),
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
