"""Elementwise functions of one operand: sign, exponentials, trigonometry, rounding, tests."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.dtypes import BF16, C64, C128, F32, F64, DType
from ...ir.op import Rounding
from ...ir.types import Type
from ...reasons import Kind, Reason
from .families import Key, MathUnary, Unary

if TYPE_CHECKING:
    from ....lowering.linalg.scalar import Scalar


# --- sign and size ----------------------------------------------------------------------------


class Positive(Unary, name="positive", rounding=Rounding.NONE):
    """``+x``."""

    numpy = np.positive
    python = symbolic = operator.pos
    element = staticmethod(lambda x: x)


class Neg(Unary, name="neg", rounding=Rounding.NONE):
    """``-x``; unsigned integers wrap, bool has no loop."""

    numpy = np.negative
    python = symbolic = element = operator.neg


class Abs(Unary, name="abs", rounding=Rounding.NONE):
    """Absolute value; the most negative integer stays as it is."""

    numpy = np.absolute
    python = element = abs


class Sign(Unary, name="sign", rounding=Rounding.NONE):
    """-1, 0 or 1; nan stays nan, and the sign of -0.0 is 0.0 (-0.0 in bf16)."""

    numpy = np.sign

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

    numpy = np.conjugate
    element = staticmethod(lambda x: x)


class _Part(Unary, rounding=Rounding.NONE):
    """Real or imaginary part: complex to the float of half its width, others keep theirs."""

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        dtype, _ = keys[0]
        return dtype, {C64: F32, C128: F64}.get(dtype, dtype)


class Real(_Part, name="real"):
    """Real part; a view, or a real operand itself."""

    aliases = {0: 0}
    numpy = np.real
    python = operator.attrgetter("real")
    element = staticmethod(lambda x: x)


class Imag(_Part, name="imag"):
    """Imaginary part, a view; 0 for real operands."""

    aliases = {0: 0}
    numpy = np.imag
    python = operator.attrgetter("imag")

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        return xs[0].const(0)


# --- exponentials and logarithms --------------------------------------------------------------


class Exp(MathUnary, name="exp"):
    numpy = np.exp


class Exp2(MathUnary, name="exp2"):
    numpy = np.exp2


class Expm1(MathUnary, name="expm1"):
    numpy = np.expm1


class Log(MathUnary, name="log"):
    numpy = np.log


class Log2(MathUnary, name="log2"):
    numpy = np.log2


class Log10(MathUnary, name="log10"):
    numpy = np.log10


class Log1p(MathUnary, name="log1p"):
    numpy = np.log1p


# --- powers and roots -------------------------------------------------------------------------


class Sqrt(MathUnary, name="sqrt"):
    numpy = np.sqrt


class Square(Unary, name="square"):
    """``x * x``."""

    numpy = np.square

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        return x * x


class Reciprocal(Unary, name="reciprocal"):
    """``1 / x`` in the operand's dtype; integers truncate."""

    numpy = np.reciprocal

    @classmethod
    def refuse(cls, types: Sequence[Type]) -> Reason | None:
        if cls.infer(types, {})[0].dtype.is_int:  # type: ignore[union-attr]
            return Reason(Kind.UNDEFINED, detail="the integer reciprocal of 0")
        return None

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        return x.const(1) / x


# --- trigonometry -----------------------------------------------------------------------------


class Sin(MathUnary, name="sin"):
    numpy = np.sin


class Cos(MathUnary, name="cos"):
    numpy = np.cos


class Tan(MathUnary, name="tan"):
    numpy = np.tan


class Asin(MathUnary, name="asin"):
    numpy = np.arcsin


class Acos(MathUnary, name="acos"):
    numpy = np.arccos


class Atan(MathUnary, name="atan"):
    numpy = np.arctan


class Sinh(MathUnary, name="sinh"):
    numpy = np.sinh


class Cosh(MathUnary, name="cosh"):
    numpy = np.cosh


class Tanh(MathUnary, name="tanh"):
    numpy = np.tanh


class Asinh(MathUnary, name="asinh"):
    numpy = np.arcsinh


class Acosh(MathUnary, name="acosh"):
    numpy = np.arccosh


class Atanh(MathUnary, name="atanh"):
    numpy = np.arctanh


# --- rounding ---------------------------------------------------------------------------------


class _Rounding(MathUnary, rounding=Rounding.NONE):
    """To an integral value; integers and bools pass as they are."""

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

    numpy = np.isnan
    element = operator.methodcaller("isnan")


class Isinf(Unary, name="isinf", rounding=Rounding.NONE):
    """True where infinite, of either sign."""

    numpy = np.isinf
    element = operator.methodcaller("isinf")


class Isfinite(Unary, name="isfinite", rounding=Rounding.NONE):
    """True where neither infinite nor nan."""

    numpy = np.isfinite
    element = operator.methodcaller("isfinite")
