"""Products with weights: linear maps and convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...ir.attrs import I64, I64_ARRAY
from ...ir.dtypes import dtype_of
from ...ir.op import Attrs, Fusion, Rounding, Values, attr, operand, result
from ...ir.types import Type
from ..indexing.slicing import ABSENT
from .composite import WithOptional, cast, like, widened
from .conv_gradients import depthwise_gradient, image_gradient
from .operand_checks import check_float, check_rank, check_sizes_from, is_open, known_sizes, reshaped, split_sizes

if TYPE_CHECKING:
    from ...ir.gradients import GradientBuilder

# Elements of a window of a depthwise convolution, at most: with these, shifted images are added up, with
# the others, the products of windows and weights.
_SHIFTS, _SUMS = 9, 49


class _Weighted(WithOptional, rounding=Rounding.SUMS):
    """Family: products of ``x`` with a weight, plus a bias."""

    fusion = Fusion.CONTRACTION
    optional = ("bias",)
    x = operand()
    weight = operand()
    parameters = operand(variadic=True)
    out = result()


class LinearMap(_Weighted, name="linear"):
    """``x @ weight.T + bias``; a weight of one axis is a vector, with which ``x`` is multiplied.

    The result has the dtype that NumPy promotes those of the operands to. 16-bit floats are summed
    in f32, and rounded once.
    """

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        x, weight, bias = xs
        check_rank(cls.name, weight, 1, 2)
        dtype = np.result_type(*(each.dtype for each in xs if each is not None))
        x, weight, bias = (widened(b, each) for each in xs)
        if weight.ndim == 2:
            weight = b.op("transpose", weight, perm=(1, 0))
        y = b.op("matmul", x, weight)
        return cast(b, y if bias is None else y + bias, dtype_of(dtype))


class Conv2d(_Weighted, name="conv2d"):
    """The correlation of ``x`` (N, C, H, W) with ``weight`` (O, C / groups, kh, kw), plus ``bias`` (O).

    ``stride``, ``padding`` (zeros) and ``dilation`` are pairs, for rows and columns, as is ``window``: (kh, kw), where
    the graph holds for these alone; () says nothing. 16-bit floats are summed in f32. Raises ShapeError for sizes
    that do not fit.
    """

    stride = attr(I64_ARRAY, default=(1, 1))
    padding = attr(I64_ARRAY, default=(0, 0))
    dilation = attr(I64_ARRAY, default=(1, 1))
    groups = attr(I64, default=1)
    window = attr(I64_ARRAY, default=())

    @classmethod
    def expand(cls, b: Any, attrs: Attrs, *xs: Any) -> Any:
        x, weight, bias = xs
        check_float(cls.name, *xs)
        check_rank(cls.name, x, 4, 4)
        check_rank(cls.name, weight, 4, 4)
        if x.dtype != weight.dtype:
            raise DTypeError(f"conv2d: x is of {x.dtype}, the weight of {weight.dtype}", hint="cast one of them")
        (count, channels, _, _), (outs, members, *window) = x.shape, weight.shape
        groups = attrs["groups"]
        if attrs["window"]:
            check_sizes_from(cls.name, "weight", weight, (outs, members, *attrs["window"]))
            if any(map(is_open, window)):  # which way is taken depends on them, also in kernels for all sizes
                weight = reshaped(b, weight, (outs, members, *attrs["window"]))
            window = list(attrs["window"])
        are_literal = all(type(size) is int for size in (channels, outs, members))
        if are_literal and (outs % groups or channels != members * groups):
            raise ShapeError(
                f"conv2d: a weight of shape {tuple(weight.shape)} in {groups} groups takes {members * groups} channels"
                f" and gives a multiple of {groups}, but there are {channels}"
            )
        patches = cls._patches(b, attrs, widened(b, x), members, window)
        _, _, _, rows, columns, *_ = patches.shape
        if cls._is_depthwise(groups, outs, members, window):
            y = cls._depthwise(b, patches, widened(b, weight), window)
            return like(b, cls._with_bias(b, y, bias, outs), x)
        inner = members * window[0] * window[1]
        # (N, groups, inner, places): each group is one product of matrices.
        parts = b.op("transpose", patches, perm=(0, 1, 2, 5, 6, 3, 4))
        parts = reshaped(b, parts, (count, groups, inner, rows * columns))
        kernels = reshaped(b, widened(b, weight), (groups, outs // groups, inner))
        y = reshaped(b, b.op("matmul", kernels, parts), (count, outs, rows, columns))
        return like(b, cls._with_bias(b, y, bias, outs), x)

    @classmethod
    def _with_bias(cls, b: Any, y: Any, bias: Any, outs: Any) -> Any:
        if bias is None:
            return y
        check_sizes_from(cls.name, "bias", bias, (outs,))
        return y + b.op("expand_dims", widened(b, bias), axes=(0, 2, 3))

    @classmethod
    def _is_depthwise(cls, groups: int, outs: Any, members: Any, window: Sequence[Any]) -> bool:
        """True if each channel has one small window of weights: no product of matrices pays for that."""
        if groups == 1 or any(map(is_open, (outs, members, *window))) or outs != groups or members != 1:
            return False
        sizes = known_sizes(window)
        return sizes is not None and math.prod(sizes) <= _SUMS

    @classmethod
    def _depthwise(cls, b: Any, patches: Any, weight: Any, window: Sequence[int]) -> Any:
        """The sum of the shifted images, each times a number per channel."""
        high, wide = map(int, window)
        if high * wide > _SHIFTS:
            products = patches * b.op("expand_dims", weight, axes=(2, 3))
            return b.op("squeeze", b.op("sum", products, axes=(5, 6)), axes=(2,))
        total = None
        for up in range(high):
            for left in range(wide):
                # (N, C, 1, rows, columns) and (C, 1, 1, 1).
                part = b.op("pick", b.op("pick", patches, axis=6, index=left), axis=5, index=up)
                scale = b.op("pick", b.op("pick", weight, axis=3, index=left), axis=2, index=up)
                term = b.op("squeeze", part, axes=(2,)) * b.op("expand_dims", scale, axes=(2,))
                total = term if total is None else total + term
        return total

    @classmethod
    def _patches(cls, b: Any, attrs: Attrs, x: Any, members: Any, window: Sequence[Any]) -> Any:
        """The parts of ``x`` that results are computed of: (N, groups, members, rows, columns, kh, kw)."""
        (up, left), dilation, stride = attrs["padding"], attrs["dilation"], attrs["stride"]
        if up or left:
            x = b.op("pad", x, x.dtype.type(0), widths=(0, 0, 0, 0, up, up, left, left))
        whole = tuple((size - 1) * step + 1 for size, step in zip(window, dilation, strict=True))
        for size, extent in zip(x.shape[2:], whole, strict=True):
            if type(size) is int and type(extent) is int and size < extent:
                raise ShapeError(f"conv2d: a window of {extent} elements does not fit into {size} padded ones")
        count, _, height, width = x.shape
        x = reshaped(b, x, (count, attrs["groups"], members, height, width))
        static, dynamic = split_sizes(whole)
        patches = b.op("windows", x, *dynamic, shape=static, axes=(3, 4))
        steps = (*stride, *dilation)
        if all(step == 1 for step in steps):
            return patches
        return b.op("slice", patches, starts=(0,) * 4, stops=(ABSENT,) * 4, steps=steps, axes=(3, 4, 5, 6))

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        attrs = cls.full_attrs(attrs)
        (g,), (x, weight) = gs, xs[:2]
        own: dict[int, Any] = {}
        if g is not None and b.wants(0):
            own[0] = image_gradient(b, attrs, x, weight, g)
        if g is not None and b.wants(1) and x.dtype.itemsize > 2:  # sums of 16-bit floats are of f32
            outs, members, *window = weight.shape
            if cls._is_depthwise(attrs["groups"], outs, members, window):
                own[1] = depthwise_gradient(b, attrs, x, weight, g)
        own = {k: gradient for k, gradient in own.items() if gradient is not None}
        rest = [k for k in range(len(xs)) if k not in own]
        others = cls.gradient_of_expansion(b, attrs, xs, ys, gs, rest)
        return [own.get(k, other) for k, other in enumerate(others)]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        for name, least in (("stride", 1), ("padding", 0), ("dilation", 1)):
            pair = attrs[name]
            if len(pair) != 2 or min(pair) < least:
                yield f"{name} = {list(pair)} is no pair of numbers of at least {least}"
        if attrs["window"] and (len(attrs["window"]) != 2 or min(attrs["window"]) < 1):
            yield f"window = {list(attrs['window'])} is no pair of numbers of at least 1"
        if attrs["groups"] < 1:
            yield f"groups = {attrs['groups']} is less than 1"
