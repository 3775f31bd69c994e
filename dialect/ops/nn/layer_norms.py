"""Layer and group normalisation with their statistics, and the gradients of layer normalisation.

Statistics of 16-bit floats are f32, those of other arrays have their dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError
from ...ir.attrs import BOOL_ARRAY, F64, I64, I64_ARRAY
from ...ir.op import Attrs, Fusion, Rounding, Values, attr, operand, result
from ...ir.types import Type
from .composite import WithOptional, like, widened
from .operand_checks import check_float, check_rank, check_sizes_from, reshaped, with_last_sizes

if TYPE_CHECKING:
    from ...ir.gradients import GradientBuilder


def normalised(b: Any, x: Any, axes: Sequence[int], eps: float) -> tuple[Any, Any, Any]:
    """``x`` less its mean, over its standard deviation; then the mean, and one over the deviation.

    The statistics have the axes that they are taken along as axes of size 1.
    """
    along = {"axes": tuple(axes), "keepdims": True}
    mean = b.op("mean", x, **along)
    distance = x - mean
    rstd = b.op("rsqrt", b.op("mean", distance * distance, **along) + eps)
    return distance * rstd, mean, rstd


class _NormWithStatistics(WithOptional, rounding=Rounding.SUMS):
    """Family: ``x`` normalised, times ``weight``, plus ``bias``; the mean, and one over the standard deviation."""

    fusion = Fusion.REDUCTION
    optional = ("weight", "bias")
    x = operand()
    parameters = operand(variadic=True)
    out = result()
    mean = result()
    rstd = result()
    eps = attr(F64, default=1e-5)


class NormBackward(WithOptional, rounding=Rounding.SUMS):
    """Family: the gradients of a norm: of ``x``, the weight, the bias.

    Results that ``mask`` leaves out, and those of parameters that are not given, are undefined.
    """

    fusion = Fusion.REDUCTION
    of_x = result()
    of_weight = result()
    of_bias = result()
    mask = attr(BOOL_ARRAY, default=(True, True, True))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        if len(attrs["mask"]) != 3:
            yield f"mask names {len(attrs['mask'])} of 3 gradients"


class NativeLayerNorm(_NormWithStatistics, name="native_layer_norm"):
    """``x`` normalised over its last axes, the sizes of which are ``shape``, times ``weight``, plus ``bias``.

    Also gives the mean and one over the standard deviation, with axes of size 1 in place of those.
    """

    shape = attr(I64_ARRAY)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        check_float(cls.name, *xs)
        shape = attrs["shape"]
        x = with_last_sizes(b, cls.name, xs[0], shape)
        weight, bias = (of_shape(b, cls.name, name, x, shape) for name, x in zip(cls.optional, xs[1:], strict=True))
        y, mean, rstd = normalised(b, widened(b, x), range(x.ndim - len(shape), x.ndim), attrs["eps"])
        if weight is not None:
            y = y * widened(b, weight)
        if bias is not None:
            y = y + widened(b, bias)
        return like(b, y, x), mean, rstd

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        yield from check_shape_of_norm(attrs)

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        gradients: Values = [None] * len(xs)
        if gs[0] is not None:
            x, weight, bias = cls.unpacked(attrs, xs)
            wanted = cls.unpacked(attrs, [b.wants(k) for k in range(len(xs))])
            operands, present = NativeLayerNormBackward.packed([gs[0], x, ys[1], ys[2], weight, bias])
            mask = tuple(bool(flag) for flag in wanted)
            results = b.op(NativeLayerNormBackward.name, *operands, shape=attrs["shape"], mask=mask, **present)
            gradients = [g if flag else None for g, flag in zip(results, wanted, strict=True) if flag is not None]
        return cls.with_others(gradients, b, attrs, xs, ys, gs)


class NativeLayerNormBackward(NormBackward, name="native_layer_norm_backward"):
    """The gradients of `native_layer_norm`."""

    optional = ("weight", "bias")
    grad = operand()
    x = operand()
    mean = operand()
    rstd = operand()
    parameters = operand(variadic=True)
    shape = attr(I64_ARRAY)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        check_float(cls.name, *xs)
        shape, (of_x, of_weight, of_bias) = attrs["shape"], attrs["mask"]
        _, _, mean, rstd, weight, bias = xs
        grad, x = (with_last_sizes(b, cls.name, x, shape) for x in xs[:2])
        check_sizes_from(cls.name, "grad", grad, x.shape)
        weight = of_shape(b, cls.name, "weight", weight, shape)
        lead = x.ndim - len(shape)
        inner = {"axes": tuple(range(lead, x.ndim)), "keepdims": True}
        outer = {"axes": tuple(range(lead)), "promote": False}
        g, rstd = widened(b, grad), widened(b, rstd)
        places = (widened(b, x) - widened(b, mean)) * rstd if of_x or of_weight else None
        gx = gw = gb = None
        if of_x:
            h = g if weight is None else g * widened(b, weight)
            gx = like(b, rstd * (h - b.op("mean", h, **inner) - places * b.op("mean", h * places, **inner)), x)
        if of_weight and weight is not None:
            gw = like(b, b.op("sum", g * places, **outer), weight)
        if of_bias and bias is not None:
            gb = like(b, b.op("sum", g, **outer), bias)
        return gx, gw, gb

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        yield from check_shape_of_norm(attrs)


class NativeGroupNorm(_NormWithStatistics, name="native_group_norm"):
    """``x`` (N, C, …) normalised over the channels of each group and all axes behind, then scaled by channel.

    Also gives the mean and one over the standard deviation of each group, of shape (N, groups).
    """

    groups = attr(I64)

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        check_float(cls.name, *xs)
        x, weight, bias = xs
        check_rank(cls.name, x, 2)
        groups, (count, channels, *rest) = attrs["groups"], x.shape
        if type(channels) is int and (groups < 1 or channels % groups):
            raise ShapeError(f"{channels} channels do not divide into {groups} groups")
        members = channels // groups
        parts = reshaped(b, widened(b, x), (count, groups, members, *rest))
        y, mean, rstd = normalised(b, parts, range(2, parts.ndim), attrs["eps"])
        for name, parameter in (("weight", weight), ("bias", bias)):
            if parameter is not None:
                check_sizes_from(cls.name, name, parameter, (channels,))
                wide = reshaped(b, widened(b, parameter), (groups, members, *[1] * len(rest)))
                y = y * wide if name == "weight" else y + wide
        y = like(b, reshaped(b, y, x.shape), x)
        return y, *(b.op("squeeze", s, axes=tuple(range(2, parts.ndim))) for s in (mean, rstd))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        if attrs["groups"] < 1:
            yield f"groups = {attrs['groups']} is less than 1"


def of_shape(b: Any, function: str, name: str, x: Any, shape: Sequence[int]) -> Any:
    """A parameter, which may be None, of a norm over axes of these sizes; raises ShapeError for other sizes."""
    if x is None:
        return None
    check_sizes_from(function, name, x, shape)
    return with_last_sizes(b, function, x, shape)


def check_shape_of_norm(attrs: Attrs) -> Iterator[str]:
    """Complaint about a ``shape`` attribute that is empty or has a negative size."""
    if not attrs["shape"] or any(d < 0 for d in attrs["shape"]):
        yield f"shape {list(attrs['shape'])} does not give the sizes of at least one axis"
