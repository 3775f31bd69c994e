"""Elementwise functions of one operand: sign, exponentials, trigonometry, rounding, tests."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.dtypes import BF16, DType, numpy_dtype
from ...ir.op import Rounding
from ...ir.types import Type
from ...reasons import Kind, Reason
from .families import Key, MathUnary, Unary

if TYPE_CHECKING:
    from ....lowering.linalg.scalar import Scalar
    from ...ir.gradients import Partial


# --- sign and size ----------------------------------------------------------------------------


class Positive(Unary, name="positive", rounding=Rounding.NONE):
    """``+x``."""

    exact = True
    lowers_complex = True
    numpy = np.positive
    python = symbolic = operator.pos
    element = of_complex = staticmethod(lambda x: x)
    partials = staticmethod(lambda x, y: (1,))


class Neg(Unary, name="neg", rounding=Rounding.NONE):
    """``-x``; unsigned integers wrap, bool has no loop."""

    exact = True
    lowers_complex = True
    numpy = np.negative
    python = symbolic = element = of_complex = operator.neg
    partials = staticmethod(lambda x, y: (-1,))


class Abs(Unary, name="abs", rounding=Rounding.NONE):
    """Absolute value; the most negative integer stays as it is."""

    exact = True
    lowers_complex = True
    numpy = np.absolute
    python = element = of_complex = abs

    @classmethod
    def refuse_complex(cls, types: Sequence[Type]) -> Reason | None:
        return Reason(Kind.PYTHON_RAISES, detail="where an absolute value overflows")

    @staticmethod
    def partials(x: Any, y: Any) -> Sequence[Partial]:
        if numpy_dtype(x).kind != "c":
            return (np.sign(x),)
        none = y == 0
        return (np.conj(np.where(none, 0, x / np.where(none, 1, y))),)


class Sign(Unary, name="sign", rounding=Rounding.NONE):
    """-1, 0 or 1; nan stays nan, and the sign of -0.0 is 0.0 (-0.0 in bf16)."""

    numpy = np.sign
    no_gradient = True

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        zero, one = x.const(0), x.const(1)
        if x.dtype.kind == "u":
            return x.ne(0).select(one, zero)
        rest = x.eq(0).select(zero, x) if x.dtype.is_float else zero
        if x.dtype is BF16:
            rest = x  # ml_dtypes keeps the sign of zero
        return (x > 0).select(one, (x < 0).select(x.const(-1), rest))


class Conj(Unary, name="conj", rounding=Rounding.NONE):
    """Complex conjugate."""

    lowers_complex = True
    numpy = np.conjugate
    element = staticmethod(lambda x: x.conj())
    partials = staticmethod(lambda x, y: (np.conj,))


class _Part(Unary, rounding=Rounding.NONE):
    """Real or imaginary part: complex to the float of half its width, others keep theirs."""

    lowers_complex = True

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        dtype, _ = keys[0]
        return dtype, dtype.part


class Real(_Part, name="real"):
    """Real part; a view, or a real operand itself."""

    aliases = {0: 0}
    numpy = np.real
    python = operator.attrgetter("real")
    element = of_complex = staticmethod(lambda x: x.real)
    partials = staticmethod(lambda x, y: (1,))


class Imag(_Part, name="imag"):
    """Imaginary part, a view; 0 for real operands."""

    aliases = {0: 0}
    numpy = np.imag
    python = operator.attrgetter("imag")
    element = of_complex = staticmethod(lambda x: x.imag)
    partials = staticmethod(lambda x, y: (-1j if numpy_dtype(x).kind == "c" else None,))


# --- exponentials and logarithms --------------------------------------------------------------


class Exp(MathUnary, name="exp"):
    lowers_complex = True
    numpy = np.exp
    partials = staticmethod(lambda x, y: (y,))


class Exp2(MathUnary, name="exp2"):
    numpy = np.exp2
    partials = staticmethod(lambda x, y: (y * math.log(2),))


class Expm1(MathUnary, name="expm1"):
    numpy = np.expm1
    partials = staticmethod(lambda x, y: (y + 1,))


class Log(MathUnary, name="log"):
    lowers_complex = True
    numpy = np.log
    partials = staticmethod(lambda x, y: (1 / x,))
    singular = True


class Log2(MathUnary, name="log2"):
    numpy = np.log2
    partials = staticmethod(lambda x, y: (1 / (x * math.log(2)),))
    singular = True


class Log10(MathUnary, name="log10"):
    numpy = np.log10
    partials = staticmethod(lambda x, y: (1 / (x * math.log(10)),))
    singular = True


class Log1p(MathUnary, name="log1p"):
    numpy = np.log1p
    partials = staticmethod(lambda x, y: (1 / (x + 1),))
    singular = True


# --- powers and roots -------------------------------------------------------------------------


class Sqrt(MathUnary, name="sqrt"):
    exact = True
    lowers_complex = True
    numpy = np.sqrt
    partials = staticmethod(lambda x, y: (0.5 / y,))
    singular = True


class Square(Unary, name="square"):
    """``x * x``."""

    exact = True
    lowers_complex = True
    numpy = np.square
    partials = staticmethod(lambda x, y: (x * 2,))

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        return x * x


class Reciprocal(Unary, name="reciprocal"):
    """``1 / x`` in the operand's dtype; integers truncate."""

    exact = True
    lowers_complex = True
    numpy = np.reciprocal
    partials = staticmethod(lambda x, y: (-y * y,))
    singular = True

    @classmethod
    def refuse(cls, types: Sequence[Type]) -> Reason | None:
        if cls.infer(types, {})[0].dtype.is_int:  # type: ignore[union-attr]
            return Reason(Kind.UNDEFINED, detail="the integer reciprocal of 0")
        return None

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        return x.reciprocal() if x.dtype.is_complex else x.const(1) / x


# --- trigonometry -----------------------------------------------------------------------------


class Sin(MathUnary, name="sin"):
    lowers_complex = True
    numpy = np.sin
    partials = staticmethod(lambda x, y: (np.cos(x),))


class Cos(MathUnary, name="cos"):
    lowers_complex = True
    numpy = np.cos
    partials = staticmethod(lambda x, y: (-np.sin(x),))


class Tan(MathUnary, name="tan"):
    lowers_complex = True
    numpy = np.tan
    partials = staticmethod(lambda x, y: (y * y + 1,))


class Asin(MathUnary, name="asin"):
    numpy = np.arcsin
    partials = staticmethod(lambda x, y: (1 / np.sqrt((1 - x) * (1 + x)),))
    singular = True


class Acos(MathUnary, name="acos"):
    numpy = np.arccos
    partials = staticmethod(lambda x, y: (-1 / np.sqrt((1 - x) * (1 + x)),))
    singular = True


class Atan(MathUnary, name="atan"):
    numpy = np.arctan
    partials = staticmethod(lambda x, y: (1 / (x * x + 1),))


class Sinh(MathUnary, name="sinh"):
    lowers_complex = True
    numpy = np.sinh
    partials = staticmethod(lambda x, y: (np.cosh(x),))


class Cosh(MathUnary, name="cosh"):
    lowers_complex = True
    numpy = np.cosh
    partials = staticmethod(lambda x, y: (np.sinh(x),))


class Tanh(MathUnary, name="tanh"):
    lowers_complex = True
    numpy = np.tanh
    partials = staticmethod(lambda x, y: (1 - y * y,))


class Asinh(MathUnary, name="asinh"):
    numpy = np.arcsinh
    partials = staticmethod(lambda x, y: (1 / np.sqrt(x * x + 1),))


class Acosh(MathUnary, name="acosh"):
    numpy = np.arccosh
    partials = staticmethod(lambda x, y: (1 / (np.sqrt(x - 1) * np.sqrt(x + 1)),))
    singular = True


class Atanh(MathUnary, name="atanh"):
    numpy = np.arctanh
    partials = staticmethod(lambda x, y: (1 / ((1 - x) * (1 + x)),))
    singular = True


# --- rounding ---------------------------------------------------------------------------------


class _Rounding(MathUnary, rounding=Rounding.NONE):
    """To an integral value; integers and bools pass as they are."""

    no_gradient = True

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        return super().scalar(*xs) if xs[0].dtype.is_float else xs[0]


class Floor(_Rounding, name="floor"):
    numpy = np.floor


class Ceil(_Rounding, name="ceil"):
    numpy = np.ceil


class Trunc(_Rounding, name="trunc"):
    numpy = np.trunc


class Rint(_Rounding, name="rint"):
    """To nearest, ties to even; integers become floats."""

    numpy = np.rint
    math = "roundeven"


class Round(_Rounding, name="round"):
    """`numpy.round` to 0 decimals: nearest, ties to even; integers stay integers."""

    rule = np.rint
    math = "roundeven"

    @staticmethod
    def numpy(x: Any) -> Any:
        return np.round(x)

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        dtype, _ = keys[0]
        return (dtype, dtype) if dtype.is_int else super().loop(*keys)


# --- tests ------------------------------------------------------------------------------------


class Isnan(Unary, name="isnan", rounding=Rounding.NONE):
    """True where nan."""

    exact = True
    lowers_complex = True
    numpy = np.isnan
    element = operator.methodcaller("isnan")
    no_gradient = True


class Isinf(Unary, name="isinf", rounding=Rounding.NONE):
    """True where infinite, of either sign."""

    exact = True
    lowers_complex = True
    numpy = np.isinf
    element = operator.methodcaller("isinf")
    no_gradient = True


class Isfinite(Unary, name="isfinite", rounding=Rounding.NONE):
    """True where neither infinite nor nan."""

    exact = True
    lowers_complex = True
    numpy = np.isfinite
    element = operator.methodcaller("isfinite")
    no_gradient = True
