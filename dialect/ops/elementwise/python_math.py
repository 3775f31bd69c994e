"""The functions of Python's `math` and `cmath`, of Python's numbers.

They give what NumPy's functions of the same numbers do, but for errors: where Python raises one, a
kernel has a result that is infinite or NaN, which voids its run.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import DTypeError
from ...ir.dtypes import C128, F64
from ...ir.op import Attrs
from ...ir.types import ScalarType, Type
from ...reasons import Kind, Reason
from . import binary, powers, special, unary
from .families import Binary, Elementwise, Unary, known_scalar

if TYPE_CHECKING:
    from ....lowering.linalg.scalar import Scalar


class _OfNumbers(Elementwise):
    """A function of one number or two; ``like`` = the op of arrays whose body it has."""

    like: ClassVar[type[Elementwise]]
    of_numbers = True

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        if not all(isinstance(t, ScalarType) for t in types):
            raise DTypeError(f"{cls.name} is of Python numbers")
        return (cls.infer_python(types),)

    @classmethod
    def infer_python(cls, types: Sequence[Type]) -> Type:
        dtype = C128 if cls.name.startswith("cmath") else F64
        values = [t.value for t in types if isinstance(t, ScalarType)]
        return ScalarType(dtype) if None in values else known_scalar(dtype, cls.python_value(values))

    @classmethod
    def refuse_python(cls, types: Sequence[Type]) -> Reason | None:
        return Reason(Kind.PYTHON_RAISES, detail="where the result is no number")

    refuse_complex = refuse_python

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        return cls.like.scalar(*xs)


def _ops(family: type[Elementwise], module: Any, likes: dict[str, type[Elementwise]]) -> None:
    """One op class for each function of a module."""
    for name, like in likes.items():
        function: Callable[..., Any] = getattr(module, name)
        assert like.partials is not None
        fields = {
            "__doc__": f"Python's ``{module.__name__}.{name}``.",
            "__module__": __name__,
            "python": staticmethod(function),
            "numpy": like.numpy,
            "like": like,
            "partials": staticmethod(like.partials),
            "singular": like.singular,
            "lowers_complex": module is cmath,
        }
        op = type(
            f"{module.__name__}_{name}".title().replace("_", ""),
            (family, _OfNumbers),
            fields,
            name=f"{module.__name__}_{name}",
        )
        FUNCTIONS[function] = op


FUNCTIONS: dict[Callable[..., Any], type[Elementwise]] = {}
"""Python's function -> its op."""

_UNARY: dict[str, type[Elementwise]] = {
    "sqrt": unary.Sqrt,
    "exp": unary.Exp,
    "log": unary.Log,
    "sin": unary.Sin,
    "cos": unary.Cos,
    "tan": unary.Tan,
    "sinh": unary.Sinh,
    "cosh": unary.Cosh,
    "tanh": unary.Tanh,
}
_ops(Unary, cmath, _UNARY)
_ops(
    Unary,
    math,
    {
        **_UNARY,
        "expm1": unary.Expm1,
        "log2": unary.Log2,
        "log10": unary.Log10,
        "log1p": unary.Log1p,
        "asin": unary.Asin,
        "acos": unary.Acos,
        "atan": unary.Atan,
        "asinh": unary.Asinh,
        "acosh": unary.Acosh,
        "atanh": unary.Atanh,
        "erf": special.Erf,
    },
)
_ops(
    Binary,
    math,
    {"atan2": binary.Atan2, "hypot": binary.Hypot, "copysign": binary.Copysign, "fmod": binary.Fmod, "pow": powers.Pow},
)
