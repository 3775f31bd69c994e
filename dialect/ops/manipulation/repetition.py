"""Tensors whose elements stand several times: tile, repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...ir.attrs import I64, I64_ARRAY
from ...ir.op import Attrs, Fusion, Values, attr, operand, result
from ...ir.types import Shape, TensorType, Type
from ..sizes import along, check_axis, normalize_axis, product, tensor_type
from ..structural import Structural

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


class Tile(Structural, name="tile"):
    """`numpy.tile`."""

    x = operand()
    out = result()
    reps = attr(I64_ARRAY)
    fusion = Fusion.POINTWISE
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        reps, shape = attrs["reps"], np.shape(xs[0])
        rank = max(len(shape), len(reps))
        counts = (1,) * (rank - len(reps)) + tuple(reps)
        sizes = (1,) * (rank - len(shape)) + tuple(shape)
        split = [n for pair in zip(counts, sizes, strict=True) for n in pair]
        summed = np.sum(np.reshape(g, split), tuple(range(0, 2 * rank, 2)), dtype=g.dtype)
        return np.reshape(summed, shape)

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape, reps = tensor_type(types[0]).shape, attrs["reps"]
        if shape is None:
            return None
        if any(r < 0 for r in reps):
            raise ShapeError("negative dimensions are not allowed")
        rank = max(len(shape), len(reps))
        sizes = (1,) * (rank - len(shape)) + shape
        counts = (1,) * (rank - len(reps)) + tuple(reps)
        return tuple(product((d, r)) for d, r in zip(sizes, counts, strict=True))

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.tile(args[0], tuple(attrs["reps"]))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if any(r < 0 for r in attrs["reps"]):
            yield f"reps {list(attrs['reps'])} has a negative count"

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.shape is not None
        shape = out.shape[len(out.shape) - x.rank :]

        def pick(*at: Scalar) -> Scalar:
            own = at[len(at) - x.rank :]
            return x.at(
                *(
                    index if size == total else index % b.size(size)
                    for index, size, total in zip(own, x.shape, shape, strict=True)
                )
            )

        return b.compute(out, pick)


class Repeat(Structural, name="repeat"):
    """`numpy.repeat` of every element ``repeats`` times; ``axis`` None = of the flat tensor."""

    x = operand()
    out = result()
    repeats = attr(I64)
    axis = attr(I64, default=None)
    fusion = Fusion.POINTWISE
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        shape, count = np.shape(xs[0]), attrs["repeats"]
        if attrs["axis"] is None:
            return np.reshape(np.sum(np.reshape(g, (-1, count)), 1, dtype=g.dtype), shape)
        after = normalize_axis(attrs["axis"], len(shape)) + 1
        apart = np.reshape(g, (*shape[:after], count, *shape[after:]))
        return np.sum(apart, after, dtype=g.dtype)

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape, axis, repeats = tensor_type(types[0]).shape, attrs.get("axis"), attrs["repeats"]
        if repeats < 0:
            raise ShapeError("repeats may not contain negative values.")
        if axis is None:
            return (None if shape is None else product((*shape, repeats)),)
        if shape is None:
            return None
        axis = normalize_axis(axis, len(shape))
        return tuple(product((d, repeats)) if k == axis else d for k, d in enumerate(shape))

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.repeat(args[0], attrs["repeats"], attrs.get("axis"))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if attrs["repeats"] < 0:
            yield "repeats may not contain negative values."
        yield from check_axis(attrs.get("axis"), types[0])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out, repeats = args[0], types[0], attrs["repeats"]
        assert isinstance(out, TensorType)
        x, axis = along(b, x, attrs.get("axis"))
        return b.compute(out, lambda *at: x.at(*(i // repeats if k == axis else i for k, i in enumerate(at))))
