"""Indexing by integer arrays: take, gather, index.

Negative indices count from the end. An index out of range raises BoundsError in tier 0. A kernel
cannot raise: it clamps such an index, so that it never reads outside of a buffer, and reports it,
whereupon tier 0 runs in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BoundsError, DTypeError, ShapeError
from ...ir.attrs import I64, I64_ARRAY
from ...ir.dtypes import I64 as INT64
from ...ir.op import Attrs, Failure, Fusion, Values, attr, operand, result
from ...ir.symbolic import Dim
from ...ir.types import Shape, TensorType, Type
from ..broadcast import broadcast_shapes, shape_text
from ..sizes import (
    along,
    as_tensor,
    check_axes,
    check_axis,
    clamped,
    complete_shape,
    forbid_outside,
    normalize_axes,
    normalize_axis,
    product,
    prove_positive,
    tensor_type,
)
from ..structural import Structural

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


class _Indexed(Structural):
    """Family: elements of the first operand at the integers that the others hold."""

    fusion = Fusion.POINTWISE
    failure = Failure.CONTENTS

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        for type_ in types[1:]:
            dtype = tensor_type(type_).dtype
            if dtype is not None and not dtype.is_int:
                raise DTypeError("arrays used as indices must be of integer (or boolean) type")
        return super().infer(types, attrs)

    @classmethod
    def indexed(cls, shape: Shape, attrs: Attrs) -> tuple[int, ...]:
        """The axes that indices run over, counted from the front; raises AxisError."""
        axis = attrs.get("axis")
        return () if axis is None else (normalize_axis(axis, len(shape)),)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_axis(attrs.get("axis"), types[0])

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        # NumPy takes the bits of u64 as i64: the largest counts from the end.
        return (None, *(INT64 for _ in types[1:]))

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = complete_shape(tensor_type(types[0]))
        axes = cls.indexed(shape, attrs) or range(len(shape))
        size = product(shape[a] for a in axes)
        prove_positive(size, ", which has nothing to index")


class Take(_Indexed, name="take"):
    """`numpy.take`: slices along ``axis`` (None = elements of the flat tensor) at ``indices``."""

    x = operand()
    indices = operand()
    out = result()
    axis = attr(I64, default=None)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        (x, indices), axis = xs, attrs["axis"]
        if axis is None:
            return _added_flat(b, x, g, indices)
        return b.op("index_add", np.zeros_like(x), g, indices, axes=(axis,))

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape, indices = (tensor_type(t).shape for t in types)
        if attrs.get("axis") is None:
            return indices
        if shape is None:
            return None
        (axis,) = cls.indexed(shape, attrs)
        return None if indices is None else (*shape[:axis], *indices, *shape[axis + 1 :])

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.take(args[0], integers(args[1]), axis=attrs.get("axis"))

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType)
        indices = as_tensor(b, args[1])
        x, axis = along(b, x, attrs.get("axis"))
        forbid_outside(b, indices, x.shape[axis])

        def load(*at: Scalar) -> Scalar:
            index = indices.at(*at[axis : axis + indices.rank])
            where = clamped(b, index, x.shape[axis])
            return x.at(*at[:axis], where, *at[axis + indices.rank :])

        return b.compute(out, load)


def _added_flat(b: GradientBuilder, x: Any, g: Any, indices: Any) -> Any:
    """``g`` at indices of the flat ``x``, and zeros elsewhere."""
    flat = b.op("index_add", np.zeros_like(x).reshape(-1), g, indices, axes=(0,))
    return flat.reshape(np.shape(x))


def integers(indices: Any) -> Any:
    """Indices as NumPy takes them: the bits of u64 as i64, so that the largest is -1."""
    is_u64 = isinstance(indices, (np.ndarray, np.generic)) and indices.dtype == np.uint64
    return indices.astype(np.int64) if is_u64 else indices


class Gather(_Indexed, name="gather"):
    """`numpy.take_along_axis`; ``axis`` None = of the flat tensor, with 1-d indices.

    Raises ShapeError for indices of another rank, or sizes that do not broadcast.
    """

    x = operand()
    indices = operand()
    out = result()
    axis = attr(I64, default=None)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        (x, indices), axis = xs, attrs["axis"]
        if axis is None:
            return _added_flat(b, x, g, indices)
        return b.op("gather_add", np.zeros_like(x), g, indices, axis=axis)

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape, indices = (tensor_type(t).shape for t in types)
        if attrs.get("axis") is None:
            if indices is not None and len(indices) != 1:
                raise ShapeError("when axis=None, `indices` must have a single dimension.")
            return indices or (None,)
        if shape is None or indices is None:
            return None
        if len(shape) != len(indices):
            raise ShapeError("`indices` and `arr` must have the same number of dimensions")
        (axis,) = cls.indexed(shape, attrs)
        rest = broadcast_shapes(
            tuple(1 if k == axis else d for k, d in enumerate(shape)),
            tuple(1 if k == axis else d for k, d in enumerate(indices)),
        )
        assert rest is not None
        return (*rest[:axis], indices[axis], *rest[axis + 1 :])

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.take_along_axis(args[0], integers(args[1]), attrs.get("axis"))

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, indices, out = args[0], as_tensor(b, args[1]), types[0]
        assert isinstance(out, TensorType)
        x, axis = along(b, x, attrs.get("axis"))
        forbid_outside(b, indices, x.shape[axis])

        def load(*at: Scalar) -> Scalar:
            where = list(_aligned(x.shape, at))
            place = list(_aligned(indices.shape, at))
            place[axis] = at[axis]
            where[axis] = clamped(b, indices.at(*place), x.shape[axis])
            return x.at(*where)

        return b.compute(out, load)


def _aligned(shape: Sequence[Dim], at: Sequence[Scalar]) -> list[Any]:
    """The index at which a tensor of this shape is read for an index of what it broadcasts to."""
    own = at[len(at) - len(shape) :]
    return [0 if size == 1 else index for size, index in zip(shape, own, strict=True)]


class Index(_Indexed, name="index"):
    """``x[…, i, …, j, …]`` with one integer tensor per axis of ``axes``, all others whole.

    NumPy's rule: the indices broadcast, and their axes stand where the indexed axes stood if
    those are consecutive, else in front. Raises ShapeError where the indices do not
    broadcast.
    """

    x = operand()
    indices = operand(variadic=True)
    out = result()
    axes = attr(I64_ARRAY)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.op("index_add", np.zeros_like(xs[0]), g, *xs[1:], axes=attrs["axes"])

    @classmethod
    def indexed(cls, shape: Shape, attrs: Attrs) -> tuple[int, ...]:
        if len(attrs["axes"]) > len(shape):
            raise BoundsError(
                f"too many indices for array: array is {len(shape)}-dimensional, but {len(attrs['axes'])} were indexed"
            )
        return normalize_axes(attrs["axes"], len(shape))

    @classmethod
    def place(cls, axes: Sequence[int]) -> int:
        """The axis of the result at which those of the indices start."""
        low = min(axes)
        return low if sorted(axes) == list(range(low, low + len(axes))) else 0

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        shapes = [tensor_type(t).shape for t in types[1:]]
        try:
            indices = broadcast_shapes(*shapes)
        except ShapeError as error:
            text = " ".join(shape_text(s) for s in shapes if s is not None)
            mismatch = ShapeError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {text}")
            mismatch.sizes = error.sizes
            raise mismatch from None
        if shape is None:
            return None
        axes = cls.indexed(shape, attrs)
        if indices is None:
            return None
        rest = [d for k, d in enumerate(shape) if k not in axes]
        place = cls.place(axes)
        return (*rest[:place], *indices, *rest[place:])

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return args[0][cls.key(args[0], args[1:], attrs)]

    @classmethod
    def key(cls, x: Any, indices: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
        """NumPy's index of the elements."""
        key: list[Any] = [slice(None)] * np.ndim(x)
        for axis, index in zip(cls.indexed(np.shape(x), attrs), indices, strict=True):
            # A Python number would be a basic index, to which another placing rule applies.
            key[axis] = np.asarray(integers(index))
        return tuple(key)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not attrs["axes"] or len(attrs["axes"]) != len(types) - 1:
            yield f"{len(attrs['axes'])} axes for {len(types) - 1} indices"
        yield from check_axes(attrs["axes"], types[0])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.shape is not None
        indices = [as_tensor(b, i) for i in args[1:]]
        axes = cls.indexed(x.shape, attrs)
        place, count = cls.place(axes), len(out.shape) - (x.rank - len(axes))
        for axis, index in zip(axes, indices, strict=True):
            forbid_outside(b, index, x.shape[axis])

        def load(*at: Scalar) -> Scalar:
            own = at[place : place + count]
            rest = iter((*at[:place], *at[place + count :]))
            chosen = {}
            for axis, index in zip(axes, indices, strict=True):
                value = index.at(*_aligned(index.shape, own))
                chosen[axis] = clamped(b, value, x.shape[axis])
            return x.at(*(chosen[k] if k in chosen else next(rest) for k in range(x.rank)))

        return b.compute(out, load)
