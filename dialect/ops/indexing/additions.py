"""Updating elements at indices, in the order of the indices.

Gradients of `take`, `gather` and `index` add; assignments through index arrays replace.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import BoundsError, DTypeError, LoweringError
from ...guards.checks import devices_of
from ...ir.attrs import I64, I64_ARRAY
from ...ir.device import HOST
from ...ir.dtypes import I64 as INT64
from ...ir.op import Attrs, Failure, Fusion, Rounding, Values, attr, operand, result
from ...ir.types import TensorType, Type
from ..broadcast import broadcast_shapes
from ..sizes import (
    as_tensor,
    clamped,
    complete_shape,
    forbid_outside,
    normalize_axis,
    product,
    prove_equal,
    tensor_type,
)
from ..structural import Proven
from .index import Gather, Index, integers

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


class Adding(Proven, rounding=Rounding.SUMS):
    """Family: ``x`` with ``value`` added to its elements at some indices, in their order.

    An element that is named several times has all of their values added. Families and ops that are
    derived from this update elements in another way.
    """

    fusion = Fusion.REDUCTION
    failure = Failure.CONTENTS
    linear: ClassVar[tuple[tuple[int, ...], ...]] = ((0, 1),)
    x = operand()
    value = operand()
    out = result()
    picking: type[Index] | type[Gather]
    ufunc: ClassVar[np.ufunc] = np.add

    @staticmethod
    def combine(old: Scalar, new: Scalar) -> Scalar:
        """An element after one update."""
        return old + new

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return g if k == 0 else b.op(cls.picking.name, g, *xs[2:], **attrs)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x, value = tensor_type(types[0]), tensor_type(types[1])
        cls.picking.infer((types[0], *types[2:]), attrs)
        if None not in (x.dtype, value.dtype) and x.dtype is not value.dtype:
            raise DTypeError(f"elements of {value.dtype} cannot be added to elements of {x.dtype}")
        return (x.without_layout(),)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        return (None, *cls.picking.operand_dtypes(types[1:], attrs))  # type: ignore[misc]

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        cls.picking.prove((types[0], *types[2:]), attrs)
        value = complete_shape(tensor_type(types[1]))
        (picked,) = cls.picking.infer((types[0], *types[2:]), attrs)
        target = complete_shape(tensor_type(picked))
        if len(value) != len(target):
            raise LoweringError(f"{len(value)} axes are broadcast to {len(target)}")
        for size, other in zip(value, target, strict=True):
            prove_equal(size, other, "each place has one number to add")

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.overwrite(attrs, np.array(args[0]), *args[1:])

    @classmethod
    def overwrite(cls, attrs: Attrs, *args: Any) -> Any:
        out, value, *indices = args
        try:
            cls.update(out, cls.key(out, indices, attrs), value)
        except IndexError as error:
            raise BoundsError(str(error)) from None
        return out

    @classmethod
    def update(cls, x: np.ndarray, key: tuple[Any, ...], value: Any) -> None:
        """Update the elements of an array that an index of NumPy's picks."""
        cls.ufunc.at(x, key, value)

    @classmethod
    def key(cls, x: np.ndarray, indices: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
        """NumPy's index of the elements that are updated."""
        raise NotImplementedError


class AtIndices(Adding):
    """Family: update what `index` picks.

    A kernel for CPUs goes through the indices. One for GPUs has a thread for each row of the
    result, because atomic additions have no order. Each thread goes through all indices, so there
    may be `MOST` of them.
    """

    MOST: ClassVar[int] = 1024
    indices = operand(variadic=True)
    axes = attr(I64_ARRAY)
    picking = Index

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        super().prove(types, attrs)
        if devices_of(types) <= {HOST}:
            return
        shape = broadcast_shapes(*(complete_shape(tensor_type(t)) for t in types[2:]))
        count = product(shape or ())
        if not isinstance(count, int) or count > cls.MOST:
            raise LoweringError(f"{count} indices are more than {cls.MOST} for each row on a GPU")

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from Index.verify((types[0], *types[2:]), attrs)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, value = args[0], as_tensor(b, args[1])
        axes = Index.indexed(x.shape, attrs)
        start = Index.place(axes)
        places = []
        for axis, arg in zip(axes, args[2:], strict=True):
            index, size = as_tensor(b, arg), x.shape[axis]
            forbid_outside(b, index, size)
            inside = TensorType(INT64, index.shape)
            places.append(b.pointwise(lambda i, n=size: clamped(b, i, n), (index,), inside))
        if value.rank == x.rank - len(axes):
            value = b.expand_dims(value, (start,))
            places = [b.expand_dims(p, (0,)) for p in places]
        return b.update_at(cls.combine, x, value, dict(zip(axes, places, strict=True)), start)

    @classmethod
    def key(cls, x: np.ndarray, indices: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
        return Index.key(x, indices, attrs)


class IndexAdd(AtIndices, name="index_add"):
    """Add to what `index` picks."""


class IndexPut(AtIndices, name="index_put", rounding=Rounding.MOVES):
    """Replace what `index` picks; of several values for one element, the last."""

    @staticmethod
    def combine(old: Scalar, new: Scalar) -> Scalar:
        return new

    @classmethod
    def update(cls, x: np.ndarray, key: tuple[Any, ...], value: Any) -> None:
        x[key] = value

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        x, value, *indices = xs
        if k == 0:
            return b.op("index_put", g, np.zeros_like(value), *indices, **attrs)
        # A value has a gradient if no later one has replaced it.
        number = functools.reduce(operator.add, [index * 0 for index in indices]) + 1
        number = np.cumsum(number.reshape(-1)).reshape(np.shape(number))
        start = Index.place(Index.indexed(np.shape(x), attrs))
        after = tuple(range(start + np.ndim(number), np.ndim(value)))
        counted = np.zeros_like(value, np.int64)
        if np.ndim(number) + start <= np.ndim(value):
            counted = counted + np.expand_dims(number, tuple(a - start for a in after))
        last = b.op("index_put", np.zeros_like(x, np.int64), counted, *indices, **attrs)
        is_last = b.op("index", last, *indices, **attrs) == counted
        return np.where(is_last, b.op("index", g, *indices, **attrs), 0)


class IndexMultiply(AtIndices, name="index_multiply"):
    """Multiply what `index` picks."""

    ufunc = np.multiply
    linear = ()
    undifferentiable = (
        "products at repeated indices have no gradient here; where no index is repeated, x[i] = x[i] * v has one"
    )

    @staticmethod
    def combine(old: Scalar, new: Scalar) -> Scalar:
        return old * new


class _Extremal(AtIndices, rounding=Rounding.NONE):
    """Family: an extremum of what `index` picks. Equal elements share the gradient."""

    linear = ()

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        (x, value, *indices), (y,), (g,) = xs, ys, gs
        own = x == y
        is_extreme = b.op("index", y, *indices, **attrs) == value
        ones = np.where(is_extreme, np.ones_like(value), 0)
        count = b.op("index_add", np.where(own, np.ones_like(x), 0), ones, *indices, **attrs)
        share = g / count
        picked = b.op("index", share, *indices, **attrs)
        return (np.where(own, share, 0), np.where(is_extreme, picked, 0), *[None] * len(indices))


class IndexMaximum(_Extremal, name="index_maximum"):
    """The maximum of what `index` picks and of the values."""

    ufunc = np.maximum

    @staticmethod
    def combine(old: Scalar, new: Scalar) -> Scalar:
        return old.maximum(new)


class IndexMinimum(_Extremal, name="index_minimum"):
    """The minimum of what `index` picks and of the values."""

    ufunc = np.minimum

    @staticmethod
    def combine(old: Scalar, new: Scalar) -> Scalar:
        return old.minimum(new)


class GatherAdd(Adding, name="gather_add"):
    """Add to what `gather` picks along an axis.

    A kernel compares the place of each element with the few indices of its row; of more than
    `MOST` indices it would take longer than tier 0 does.
    """

    MOST: ClassVar[int] = 4
    indices = operand()
    axis = attr(I64)
    picking = Gather

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        super().prove(types, attrs)
        indices = complete_shape(tensor_type(types[2]))
        count = indices[normalize_axis(attrs["axis"], len(indices))]
        if not isinstance(count, int) or count > cls.MOST:
            raise LoweringError(f"{count} indices are more than {cls.MOST}")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        (x, value, indices), out = args, types[0]
        assert isinstance(out, TensorType)
        axis = normalize_axis(attrs["axis"], x.rank)
        forbid_outside(b, indices, x.shape[axis])

        def element(*at: Scalar) -> Scalar:
            total = x.at(*at)
            for k in range(int(indices.shape[axis])):
                place = [k if d == axis else i for d, i in enumerate(at)]
                own = [0 if n == 1 else i for n, i in zip(indices.shape, place, strict=True)]
                index = clamped(b, indices.at(*own), x.shape[axis])
                total = index.eq(at[axis]).select(total + value.at(*place), total)
            return total

        return b.compute(out, element)

    @classmethod
    def key(cls, x: np.ndarray, indices: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
        index = np.asarray(integers(indices[0]))
        axis = attrs["axis"] % x.ndim
        return tuple(
            index if k == axis else np.arange(n).reshape([-1 if j == k else 1 for j in range(x.ndim)])
            for k, n in enumerate(x.shape)
        )
