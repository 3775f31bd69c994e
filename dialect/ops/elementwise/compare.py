"""Comparisons, logic on truth values, and operations on the bits of integers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.dtypes import BOOL, DType
from ...ir.op import Rounding
from ...ir.types import Type
from ...reasons import Reason
from .families import Binary, Compare, PartialBinary, Unary

if TYPE_CHECKING:
    from ....lowering.linalg.scalar import Scalar


class Eq(Compare, name="eq"):
    """``a == b``."""

    numpy = np.equal
    python = operator.eq
    element = staticmethod(lambda a, b: a.eq(b))
    of_complex = staticmethod(lambda a, b: a.python_complex("eq", b))


class Ne(Compare, name="ne"):
    """``a != b``."""

    numpy = np.not_equal
    python = operator.ne
    element = staticmethod(lambda a, b: a.ne(b))
    of_complex = staticmethod(lambda a, b: a.python_complex("ne", b))


class Lt(Compare, name="lt"):
    """``a < b``."""

    numpy = np.less
    python = element = operator.lt


class Le(Compare, name="le"):
    """``a <= b``."""

    numpy = np.less_equal
    python = element = operator.le


class Gt(Compare, name="gt"):
    """``a > b``."""

    numpy = np.greater
    python = element = operator.gt


class Ge(Compare, name="ge"):
    """``a >= b``."""

    numpy = np.greater_equal
    python = element = operator.ge


# --- logic ------------------------------------------------------------------------------------


class _Logical(Binary, rounding=Rounding.NONE):
    """Of truth values: everything that is not 0 is true, nan too; ``element`` is of two bools."""

    exact = True
    lowers_complex = True
    no_gradient = True

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        a, b = (x if x.dtype is BOOL else x.ne(0) for x in xs)
        return cls.element(a, b)

    @classmethod
    def python_operands(cls, target: DType, *xs: Scalar) -> tuple[Scalar, ...]:
        return xs

    @classmethod
    def refuse_complex(cls, types: Sequence[Type]) -> Reason | None:
        return None


class LogicalAnd(_Logical, name="logical_and"):
    """True where both operands are true."""

    numpy = np.logical_and

    @staticmethod
    def python(a: Any, b: Any) -> bool:
        return bool(a) and bool(b)

    element = operator.and_


class LogicalOr(_Logical, name="logical_or"):
    """True where either operand is true."""

    numpy = np.logical_or

    @staticmethod
    def python(a: Any, b: Any) -> bool:
        return bool(a) or bool(b)

    element = operator.or_


class LogicalXor(_Logical, name="logical_xor"):
    """True where exactly one operand is true."""

    numpy = np.logical_xor

    @staticmethod
    def python(a: Any, b: Any) -> bool:
        return bool(a) != bool(b)

    element = operator.xor


class LogicalNot(Unary, name="logical_not", rounding=Rounding.NONE):
    """True where the operand is 0."""

    exact = True
    lowers_complex = True
    numpy = np.logical_not
    python = operator.not_
    no_gradient = True

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        (x,) = xs
        return ~x if x.dtype is BOOL else x.eq(0)

    @classmethod
    def python_operands(cls, target: DType, *xs: Scalar) -> tuple[Scalar, ...]:
        return xs

    @classmethod
    def refuse_complex(cls, types: Sequence[Type]) -> Reason | None:
        return None


# --- bits -------------------------------------------------------------------------------------


class BitwiseAnd(Binary, name="bitwise_and", rounding=Rounding.NONE):
    """``a & b`` of integers or bools."""

    exact = True
    numpy = np.bitwise_and
    python = element = operator.and_
    no_gradient = True


class BitwiseOr(Binary, name="bitwise_or", rounding=Rounding.NONE):
    """``a | b`` of integers or bools."""

    exact = True
    numpy = np.bitwise_or
    python = element = operator.or_
    no_gradient = True


class BitwiseXor(Binary, name="bitwise_xor", rounding=Rounding.NONE):
    """``a ^ b`` of integers or bools."""

    exact = True
    numpy = np.bitwise_xor
    python = element = operator.xor
    no_gradient = True


class BitwiseNot(Unary, name="bitwise_not", rounding=Rounding.NONE):
    """``~x``: complement of an integer, negation of a bool."""

    exact = True
    numpy = np.invert
    no_gradient = True

    @staticmethod
    def python(x: Any) -> Any:
        return ~(int(x) if type(x) is bool else x)  # ~True is -2 too, but deprecated

    element = operator.invert


class _Shift(PartialBinary, rounding=Rounding.NONE):
    """A shift; amounts outside ``0 … width - 1`` shift everything out."""

    no_gradient = True

    @classmethod
    def python_total(cls, value: Any) -> bool:
        return type(value) is int and 0 <= value < 64


class ShiftLeft(_Shift, name="shift_left"):
    """``a << b``."""

    numpy = np.left_shift
    grows = True
    python = operator.lshift
    element = staticmethod(lambda a, b: a.shl(b))


class ShiftRight(_Shift, name="shift_right"):
    """``a >> b``; signed integers keep their sign."""

    numpy = np.right_shift
    python = operator.rshift
    element = staticmethod(lambda a, b: a.shr(b))
