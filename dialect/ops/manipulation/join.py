"""Larger tensors from several, or from one and a border: concatenate, stack, pad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import ShapeError
from ...ir.attrs import I64, I64_ARRAY
from ...ir.op import EACH, Attrs, Fusion, Values, attr, operand, result
from ...ir.symbolic import Dim
from ...ir.types import MaybeDim, Shape, TensorType, Type
from ..sizes import (
    check_axis,
    complete_shape,
    normalize_axis,
    promote,
    prove_equal,
    prove_positive,
    same_size,
    tensor_type,
)
from ..structural import Structural

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


class _Join(Structural):
    """Family: several tensors, promoted to their common dtype, one after the other.

    ``new_axes``: how many axes the result has that the tensors do not have.
    """

    new_axes: ClassVar[int] = 0
    tensors = operand(variadic=True)
    out = result()
    axis = attr(I64, default=0)
    fusion = Fusion.POINTWISE

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        shape = cls.result_shape(types, attrs)
        return (TensorType(promote([tensor_type(t).dtype for t in types]), shape),)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        dtype = promote([tensor_type(t).dtype for t in types])
        return None if dtype is None else (dtype,) * len(types)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not types:
            yield f"need at least one array to {cls.name}"
        for type_ in types[:1]:
            yield from check_axis(attrs.get("axis", 0), type_, cls.new_axes)


class Concatenate(_Join, name="concatenate"):
    """`numpy.concatenate`. Raises ShapeError for sizes that differ along other axes."""

    linear = EACH

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        axis = normalize_axis(attrs["axis"], np.ndim(y))
        first: Any = 0
        for x in xs[:k]:
            first = first + np.shape(x)[axis]
        part = (*[slice(None)] * axis, slice(first, first + np.shape(xs[k])[axis]))
        return b.like(g[part], xs[k])

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shapes = [(k, tensor_type(t).shape) for k, t in enumerate(types)]
        if not shapes:
            raise ShapeError("need at least one array to concatenate")
        tuples = [(k, s) for k, s in shapes if s is not None]
        if not tuples:
            return None
        first, reference = tuples[0]
        if not reference:
            raise ShapeError("zero-dimensional arrays cannot be concatenated")
        axis = normalize_axis(attrs.get("axis", 0), len(reference))
        sizes: list[MaybeDim] = list(reference)
        for k, shape in tuples[1:]:
            if len(shape) != len(reference):
                raise ShapeError(
                    "all the input arrays must have same number of dimensions, but the array at "
                    f"index {first} has {len(reference)} dimension(s) and the array at index {k} "
                    f"has {len(shape)} dimension(s)"
                )
            for dim, size in enumerate(shape):
                if dim != axis:
                    sizes[dim] = same_size(
                        sizes[dim],
                        size,
                        "all the input array dimensions except for the concatenation axis must "
                        f"match exactly, but along dimension {dim}, the array at index {first} "
                        f"has size {reference[dim]} and the array at index {k} has size {size}",
                    )
        sizes[axis] = _total([s[axis] for _, s in tuples], len(tuples) == len(shapes))
        return tuple(sizes)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.concatenate(args, axis=attrs.get("axis", 0))

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shapes = [complete_shape(tensor_type(t)) for t in types]
        axis = normalize_axis(attrs.get("axis", 0), len(shapes[0]))
        for shape in shapes:
            for dim, (size, expected) in enumerate(zip(shape, shapes[0], strict=True)):
                if dim != axis:
                    prove_equal(size, expected, "concatenate joins along one axis only")
            if shape[axis] != 0:
                prove_positive(shape[axis])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        axis = normalize_axis(attrs.get("axis", 0), args[0].rank)
        return _lower_concatenate(b, [x for x in args if x.shape[axis] != 0], axis, types[0])


def _total(sizes: Sequence[MaybeDim], all_known: bool) -> MaybeDim:
    total: MaybeDim = 0 if all_known else None
    for size in sizes:
        total = None if total is None or size is None else total + size
    return total


def _lower_concatenate(b: Builder, parts: Sequence[TensorValue], axis: int, type_: Type) -> TensorValue:
    """Each element from the part it lies in; parts have at least one element along ``axis``."""
    assert isinstance(type_, TensorType)
    if len(parts) == 1:
        return b.broadcast(parts[0], type_)
    if not parts:
        return b.fill(0, type_)
    ends: list[Dim] = []
    for part in parts:
        ends.append((ends[-1] if ends else 0) + part.shape[axis])
    limits = [b.size(end) for end in ends]

    def pick(*at: Scalar) -> Scalar:
        here = at[axis]

        def load(k: int) -> Scalar:
            # Every part is read for every index, so the index is moved into the part.
            inside = here if k == 0 else here - limits[k - 1]
            last = b.size(parts[k].shape[axis]) - 1
            return parts[k].at(*at[:axis], inside.maximum(0).minimum(last), *at[axis + 1 :])

        value = load(len(parts) - 1)
        for k in reversed(range(len(parts) - 1)):
            value = (here < limits[k]).select(load(k), value)
        return value

    return b.compute(type_, pick)


class Stack(_Join, name="stack"):
    """`numpy.stack`: tensors of one shape along a new axis. Raises ShapeError for others."""

    new_axes = 1
    linear = EACH

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        axis = normalize_axis(attrs["axis"], np.ndim(y))
        return b.like(b.op("pick", g, axis=axis, index=k), xs[k])

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        if not types:
            raise ShapeError("need at least one array to stack")
        shapes = [s for t in types if (s := tensor_type(t).shape) is not None]
        if not shapes:
            return None
        message = "all input arrays must have the same shape"
        if len({len(s) for s in shapes}) > 1:
            raise ShapeError(message)
        sizes = shapes[0]
        for shape in shapes[1:]:
            sizes = tuple(same_size(a, d, message) for a, d in zip(sizes, shape, strict=True))
        axis = normalize_axis(attrs.get("axis", 0), len(sizes) + 1)
        return (*sizes[:axis], len(types), *sizes[axis:])

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.stack(args, axis=attrs.get("axis", 0))

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shapes = [complete_shape(tensor_type(t)) for t in types]
        for shape in shapes:
            for size, expected in zip(shape, shapes[0], strict=True):
                prove_equal(size, expected, "stack joins tensors of one shape")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        axis = normalize_axis(attrs.get("axis", 0), args[0].rank + 1)
        parts = [b.expand_dims(x, (axis,)) for x in args]
        return _lower_concatenate(b, parts, axis, types[0])


class Pad(Structural, name="pad"):
    """`numpy.pad` in constant mode: ``value`` (a number or 0-d tensor) around ``x``.

    ``widths`` holds the counts before and after, axis by axis, or one such pair for every axis.
    """

    x = operand()
    value = operand()
    out = result()
    widths = attr(I64_ARRAY)
    fusion = Fusion.POINTWISE
    linear = ((0, 1),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        x, value = xs
        inside = tuple(
            slice(low, low + size) for size, (low, _) in zip(np.shape(x), cls.pairs(np.ndim(x), attrs), strict=True)
        )
        part = g[inside]
        return part if k == 0 else b.like(np.sum(g) - np.sum(part), value)

    @classmethod
    def pairs(cls, rank: int, attrs: Attrs) -> list[tuple[int, int]]:
        """(before, after) per axis; raises ShapeError."""
        widths = attrs["widths"]
        pairs = list(zip(widths[::2], widths[1::2], strict=True))
        if len(pairs) == 1:
            pairs *= rank
        if len(pairs) != rank:
            raise ShapeError(
                "operands could not be broadcast together with remapped shapes "
                f"[original->remapped]: ({len(pairs)},2) and requested shape ({rank},2)"
            )
        if any(w < 0 for w in widths):
            raise ShapeError("index can't contain negative values")
        return pairs

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        pairs = cls.pairs(len(shape), attrs)
        return tuple(None if d is None else d + (low + high) for d, (low, high) in zip(shape, pairs, strict=True))

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        return None, tensor_type(types[0]).dtype

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x = np.asarray(args[0])
        return np.pad(x, cls.pairs(x.ndim, attrs), constant_values=args[1]) if x.ndim else x

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if len(attrs["widths"]) % 2:
            yield "widths come in pairs"
        elif any(w < 0 for w in attrs["widths"]):
            yield "index can't contain negative values"
        elif tensor_type(types[1]).rank not in (0, None):
            yield "the value must be a number or a 0-d tensor"

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        for size in complete_shape(tensor_type(types[0])):
            if size != 0:
                prove_positive(size)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType)
        pairs = cls.pairs(x.rank, attrs)
        value = b.scalar(args[1]).cast(x.dtype)
        if 0 in x.shape:
            return b.fill(value, out)

        def pick(*at: Scalar) -> Scalar:
            where, is_inside = [], None
            for index, size, (low, high) in zip(at, x.shape, pairs, strict=True):
                if low == high == 0:
                    where.append(index)
                    continue
                inside = index - low
                fits = (inside >= 0) & (inside < b.size(size))
                is_inside = fits if is_inside is None else is_inside & fits
                # ``x`` is read for every index, so the index is moved into it.
                where.append(inside.maximum(0).minimum(b.size(size) - 1))
            element = x.at(*where)
            return element if is_inside is None else is_inside.select(element, value)

        return b.compute(out, pick)
