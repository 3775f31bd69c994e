"""The values of a composition that is recorded for operands of given types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...ir.symbolic import Sym
from ...ir.types import ScalarType, TensorType, Type
from ..elementwise.operator_names import COMPARISONS, OPERATORS, UNARY

if TYPE_CHECKING:
    from .composite import Expansion


class Part:
    """A value of a composition: a tensor or a number of which the type is known.

    It takes Python's operators; sizes that are no literals are such values themselves.
    """

    __array_ufunc__ = None  # NumPy's arrays leave their operators to this
    __slots__ = ("expansion", "number")

    def __init__(self, expansion: Expansion, number: int) -> None:
        self.expansion, self.number = expansion, number

    @property
    def type(self) -> Type:
        """What is known of the value."""
        return self.expansion.program.type_of(self.number)

    @property
    def dtype(self) -> np.dtype:
        """As of arrays."""
        dtype = self.type.dtype if isinstance(self.type, (TensorType, ScalarType)) else None
        assert dtype is not None
        return dtype.numpy

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._sizes())

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size of each axis: an int, or the value of an op that asks for it."""
        return tuple(
            size if isinstance(size, int) else self.expansion.op("dim", self, axis=axis)
            for axis, size in enumerate(self._sizes())
        )

    def _sizes(self) -> tuple[Any, ...]:
        type_ = self.type
        if isinstance(type_, ScalarType):
            return ()
        assert isinstance(type_, TensorType) and type_.shape is not None
        return type_.shape

    def __bool__(self) -> bool:
        value = self.type.value if isinstance(self.type, ScalarType) else None
        if value is None or isinstance(value, Sym):
            raise ShapeError("a composition cannot depend on a size that is known only at run time")
        return bool(value)

    __hash__ = object.__hash__


def _forward(name: str) -> Callable[..., Any]:
    return lambda self, other: self.expansion.op(name, self, other)


def _reflected(name: str) -> Callable[..., Any]:
    return lambda self, other: self.expansion.op(name, other, self)


def _alone(name: str) -> Callable[..., Any]:
    return lambda self: self.expansion.op(name, self)


for _python, _name in OPERATORS.items():
    setattr(Part, f"__{_python}__", _forward(_name))
    setattr(Part, f"__r{_python}__", _reflected(_name))
for _name in COMPARISONS:
    setattr(Part, f"__{_name}__", _forward(_name))
for _python, _name in UNARY.items():
    setattr(Part, f"__{_python}__", _alone(_name))
