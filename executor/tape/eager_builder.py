"""The builder that rules of op classes are handed on the tape: they compute at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, prod
from typing import Any, ClassVar

import numpy as np

from ...dialect.errors import InternalError
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.gradient_mode import gradients as switched
from ...dialect.ir.gradients import GradientBuilder
from ...dialect.ir.op import op_named
from .array import Array

_SHAPE_ONLY = frozenset({np.shape, np.ndim, np.size})
# These move elements, and give the shape of the result whatever the elements are.
_MOVING = frozenset({np.expand_dims, np.reshape, np.broadcast_to, np.swapaxes, np.moveaxis, np.transpose, np.squeeze})
_FILLING: dict[Any, Callable[..., Any]] = {np.zeros_like: np.zeros, np.ones_like: np.ones, np.empty_like: np.empty}


class Unsaved(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for an operand or a result of which a gradient asks for the shape alone.

    What is computed of it is such a stand-in again: a rule computes derivatives by operands that
    need none as well. Raises InternalError where contents are asked for.

    Args:
        shape: None for a stand-in that was computed, of which nobody asks for the shape.
    """

    def __init__(self, shape: tuple[int, ...] | None, dtype: np.dtype) -> None:
        self._shape, self.dtype = shape, dtype

    @property
    def is_unknown(self) -> bool:
        """True if not even the shape is known."""
        return self._shape is None

    @property
    def shape(self) -> tuple[int, ...]:
        """As of the array."""
        if self._shape is None:
            raise self._missing("shape")
        return self._shape

    @property
    def ndim(self) -> int:
        """Rank."""
        return len(self.shape)

    def stand_in(self) -> np.ndarray:
        """An array of this shape and dtype in next to no memory."""
        item = bytes(self.dtype.itemsize)
        return np.ndarray(self.shape, self.dtype, item, strides=(0,) * self.ndim)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if func in _SHAPE_ONLY and not kwargs and len(args) == 1:
            return func(self.stand_in())
        if func in _FILLING and args and args[0] is self:
            return _FILLING[func](self.shape, kwargs.get("dtype") or self.dtype)
        if func in _MOVING and args and args[0] is self:
            return Unsaved(func(self.stand_in(), *args[1:], **kwargs).shape, self.dtype)
        return Unsaved(None, self.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return Unsaved(None, self.dtype)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self._missing("__array__")

    def __bool__(self) -> bool:
        raise self._missing("__bool__")

    def __getattr__(self, name: str) -> Any:
        raise self._missing(name)

    __hash__ = object.__hash__

    @staticmethod
    def _missing(what: str) -> InternalError:
        return InternalError(
            f"a rule for gradients reads what was not saved, by {what}",
            hint="report it: `reads_of` has not seen that the rule reads it",
        )


_SMALL = 4096  # elements
_ABSORBING = op_named("absorbing_mul")


def absorbed(g: Any, partial: Any) -> Any:
    """``g * partial`` of plain arrays, but 0 wherever ``g`` is 0."""
    product = np.multiply(g, partial)
    # A finite sum has finite terms, which are 0 where ``g`` is.
    if isfinite(abs(np.add.reduce(product, None))):
        return product
    return _ABSORBING.evaluate({}, g, partial)


def repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """`numpy.broadcast_to`, which is written in Python, for a shape to which ``x`` broadcasts.

    Small arrays are filled, as it takes less time to write them than to step through repeated ones.
    """
    dtype = x.dtype
    if dtype.kind == "V":
        return np.broadcast_to(x, shape)
    if prod(shape) <= _SMALL:
        filled = np.empty(shape, dtype)
        filled[...] = x
        return filled
    if not x.shape:
        steps = (0,) * len(shape)
    elif x.flags.c_contiguous:
        lead = (0,) * (len(shape) - x.ndim)
        own = zip(x.shape, x.strides, strict=True)
        steps = (*lead, *[0 if n == 1 else s for n, s in own])
    else:
        return np.broadcast_to(x, shape)
    view: np.ndarray = np.ndarray(shape, dtype, x, 0, steps)
    if isinstance(x, np.ndarray):  # others are read-only
        view.flags.writeable = False
    return view


class ArrayBuilder(GradientBuilder):
    """Evaluates what rules ask for, and records it on the tape where that is asked for.

    Args:
        wanted: which operands of the op whose rule runs need a gradient.

    Attributes:
        apply: evaluates an op of which an operand is an `Array`; `operations` sets it.
        backward: gradients of what is on the tape; `api` sets it.
    """

    __slots__ = ("wanted",)
    apply: ClassVar[Callable[..., Any]]
    backward: ClassVar[Callable[..., Any]]

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted

    def op(self, name: str, *operands: Any, **attrs: Any) -> Any:
        cls = op_named(name)
        if any(type(x) is Unsaved for x in operands[:1]):
            return Unsaved(None, operands[0].dtype)
        if any(type(x) is Array for x in operands):
            return self.apply(cls, attrs, operands)
        return cls.evaluate(cls.full_attrs(attrs), *operands)

    def pulled(self, function: Callable[..., Any], operands: Sequence[Any], gradients: Sequence[Any]) -> Sequence[Any]:
        noted = gradient_mode()
        leaves: list[Any] = [np.positive(x) if type(x) is Array else Array(x) for x in operands]
        for x in leaves:
            if x.node is None:
                x.require_grad()
        with switched(True):
            results = function(*leaves)
        ends = [k for k, y in enumerate(results) if type(y) is Array and y.requires_grad]
        if not ends:
            return [None] * len(leaves)
        leaf_gradients: Sequence[Any] = self.backward(
            [results[k] for k in ends], leaves, [gradients[k] for k in ends], create_graph=noted, allow_unused=True
        )
        return leaf_gradients

    def nothing(self, index: int, x: Any) -> Any:
        return np.zeros(x.shape, x.dtype)[()] if self.wanted[index] else None

    def same_shape(self, x: Any, y: Any) -> bool:
        if hasattr(x, "shape") and hasattr(y, "shape"):
            return x.shape == y.shape
        return np.shape(x) == np.shape(y)

    def expanded(self, attrs: Any, g: Any, x: Any) -> Any:
        if type(g) is Array or attrs.get("keepdims") or not x.shape:
            return super().expanded(attrs, g, x)
        sizes, axes = list(x.shape), attrs.get("axes")
        for axis in range(len(sizes)) if axes is None else axes:
            sizes[axis] = 1
        return np.reshape(g, sizes)

    def spread(self, g: Any, x: Any) -> Any:
        if type(g) is Array or not hasattr(g, "strides"):
            return super().spread(g, x)
        return g if g.shape == x.shape else repeated(g, x.shape)

    def absorbing_product(self, g: Any, partial: Any) -> Any:
        if type(g) is Array or type(partial) is Array:
            return self.op("absorbing_mul", g, partial)
        return absorbed(g, partial)
