"""Activations and softmaxes. 16-bit floats are computed in f32, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import DTypeError
from ...ir.attrs import DTYPE, I64, STR
from ...ir.dtypes import dtype_of
from ...ir.op import Attrs, Fusion, Rounding, Values, attr, operand, result
from ...ir.types import Type
from ..sizes import check_axis, normalize_axis
from .composite import Composite, cast, like, widened
from .operand_checks import check_float

if TYPE_CHECKING:
    from ...ir.gradients import GradientBuilder


class Gelu(Composite, name="gelu"):
    """``x * Φ(x)``, Φ the standard normal distribution; ``approximate="tanh"``: by a hyperbolic tangent."""

    fusion = Fusion.POINTWISE
    x = operand()
    out = result()
    approximate = attr(STR, default="none")

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        check_float(cls.name, *xs)
        x = widened(b, xs[0])
        if attrs["approximate"] == "tanh":
            inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
            shares = b.op("tanh", inner)
        else:
            shares = b.op("erf", x * math.sqrt(0.5))
        return like(b, x * 0.5 * (shares + 1.0), xs[0])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        if attrs["approximate"] not in ("none", "tanh"):
            yield f"approximate = {attrs['approximate']!r} is neither 'none' nor 'tanh'"


class Silu(Composite, name="silu"):
    """``x * sigmoid(x)``."""

    fusion = Fusion.POINTWISE
    x = operand()
    out = result()

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        check_float(cls.name, *xs)
        x = widened(b, xs[0])
        return like(b, x * b.op("sigmoid", x), xs[0])


class AlongAxis(Composite, rounding=Rounding.SUMS):
    """Family of ops that normalise along an axis."""

    fusion = Fusion.REDUCTION
    axis = attr(I64, default=-1)
    dtype = attr(DTYPE, default=None)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        yield from check_axis(attrs["axis"], types[0])
        if attrs["dtype"] is not None and attrs["dtype"].kind != "f":
            yield f"dtype = {attrs['dtype']} is no real float"

    @classmethod
    def along(cls, x: Any, attrs: Attrs) -> dict[str, Any]:
        """The attributes of a reduction along the axis; raises AxisError."""
        return {"axes": (normalize_axis(attrs["axis"], x.ndim),), "keepdims": True}


class _OfLogits(AlongAxis):
    """Family of ops on logits, of which the largest is subtracted; ``dtype``: what these are cast to first."""

    x = operand()
    out = result()
    backward = ""

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        x = xs[0] if attrs["dtype"] is None else cast(b, xs[0], attrs["dtype"])
        check_float(cls.name, x)
        logits = widened(b, x)
        along = cls.along(x, attrs)
        shifted = logits - b.op("max", logits, **along)
        return like(b, cls.normalised(b, shifted, along), x)

    @classmethod
    def normalised(cls, b: Any, x: Any, along: dict[str, Any]) -> Any:
        """The result for logits of which the largest is 0."""
        raise NotImplementedError

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        dtype = dtype_of(xs[0].dtype)
        if dtype.kind != "f":
            return (None,)
        return (b.op(cls.backward, gs[0], ys[0], axis=attrs["axis"], dtype=dtype),)


class Softmax(_OfLogits, name="softmax"):
    """``exp(x) / sum(exp(x))`` along ``axis``, without overflow."""

    backward = "softmax_backward"

    @classmethod
    def normalised(cls, b: Any, x: Any, along: dict[str, Any]) -> Any:
        weights = b.op("exp", x)
        return weights / b.op("sum", weights, **along)


class LogSoftmax(_OfLogits, name="log_softmax"):
    """``x - log(sum(exp(x)))`` along ``axis``, without overflow."""

    backward = "log_softmax_backward"

    @classmethod
    def normalised(cls, b: Any, x: Any, along: dict[str, Any]) -> Any:
        return x - b.op("log", b.op("sum", b.op("exp", x), **along))


class _OfShares(AlongAxis):
    """Family of gradients of `_OfLogits` from the results; ``dtype``: that of the logits, else the gradient's."""

    grad = operand()
    y = operand()
    out = result()

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        check_float(cls.name, *xs)
        if xs[0].dtype != xs[1].dtype:
            raise DTypeError(f"{cls.name}: the gradient is of {xs[0].dtype}, the result of {xs[1].dtype}")
        g, y = (widened(b, x) for x in xs)
        out = cls.gradient(b, g, y, cls.along(g, attrs))
        return cast(b, out, attrs["dtype"] or dtype_of(xs[0].dtype))

    @classmethod
    def gradient(cls, b: Any, g: Any, y: Any, along: dict[str, Any]) -> Any:
        """The gradient of the logits."""
        raise NotImplementedError


class SoftmaxBackward(_OfShares, name="softmax_backward"):
    """The gradient of the logits of a softmax with the result ``y``."""

    @classmethod
    def gradient(cls, b: Any, g: Any, y: Any, along: dict[str, Any]) -> Any:
        return y * (g - b.op("sum", g * y, **along))


class LogSoftmaxBackward(_OfShares, name="log_softmax_backward"):
    """The gradient of the logits of a log-softmax with the result ``y``."""

    @classmethod
    def gradient(cls, b: Any, g: Any, y: Any, along: dict[str, Any]) -> Any:
        return g - b.op("exp", y) * b.op("sum", g, **along)
