"""Tensors made from nothing: constant, full, iota."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.attrs import DTYPE, I64, I64_ARRAY, VALUE
from ..ir.dtypes import I64 as INT64
from ..ir.op import Attrs, Failure, Fusion, Op, Rounding, Values, attr, operand, result
from ..ir.types import ListedType, ScalarType, TensorType, Type, type_of
from ..reasons import Kind, Reason
from .manipulation.shape import check_broadcast, prove_broadcast
from .sizes import check_shape, complete_shape, known_sizes, nonnegative, normalize_axis, runtime_sizes, tensor_type
from .structural import Proven

if TYPE_CHECKING:
    from ...lowering.linalg.tensor_builder import Builder, TensorValue
    from ..ir.gradients import GradientBuilder


class Constant(Op, name="constant", rounding=Rounding.MOVES):
    """A Python number (a scalar whose value is known), an array (not to be written to), or a value of
    a `ListedType`: a tuple of ints or of bools, a string, or None.

    With the operand ``depends``, the result of an observer, it is a conditional constant: ``value`` is
    what the observer has seen (R3.6). Types are inferred from that, but until a guard has compared the
    two it is evaluated as its operand, and is no constant to passes: it is neither merged with others
    nor moved, so that the observer can be told from it.
    """

    exact = True
    depends = operand(variadic=True)
    out = result()
    value = attr(VALUE)
    fusion = Fusion.QUERY
    lowers_complex = True
    failure = Failure.NEVER
    no_gradient = True

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        value = attrs["value"]
        type_ = type_of(value)
        if isinstance(type_, (ScalarType, ListedType)):
            return (replace(type_, value=value),)
        assert isinstance(type_, TensorType)
        return (type_.without_layout(),)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if len(types) > 1:
            yield f"depends on one value at most, not on {len(types)}"
        elif types and isinstance(types[0], TensorType):
            yield "cannot stand for a tensor"
        elif types and str(types[0]) != str(type_of(attrs["value"])):
            yield f"is of type {type_of(attrs['value'])}, but stands for a value of type {types[0]}"

    @classmethod
    def can_lower_types(cls, types: Sequence[Type], attrs: Attrs) -> Reason | None:
        return Reason(Kind.SPECULATED) if types else super().can_lower_types(types, attrs)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        if args:
            return args[0]  # right without a guard, too
        value = attrs["value"]
        # A view shows that the memory is another's, so that it is copied before it leaves.
        return value.view() if isinstance(value, np.ndarray) else value

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> Any:
        if isinstance(types[0], TensorType):
            return b.constant(attrs["value"], types[0])
        return b.scalar(attrs["value"])


class _Sized(Proven):
    """Family of ops whose result has the shape that ``shape`` and ``sizes`` give."""

    fusion = Fusion.POINTWISE
    lowers_complex = True

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        before = len(cls.operands) - 1  # operands that come before the sizes
        yield from check_shape(attrs["shape"], len(types) - before)


class Full(_Sized, name="full", rounding=Rounding.MOVES):
    """`numpy.full`: ``value`` (a number, or a tensor that broadcasts) in every element.

    ``dtype`` absent = the dtype of the value.
    """

    exact = True
    value = operand()
    sizes = operand(variadic=True)
    out = result()
    shape = attr(I64_ARRAY)
    dtype = attr(DTYPE, default=None)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.like(g, xs[0])

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        shape = nonnegative(known_sizes(attrs["shape"], types[1:]))
        value = tensor_type(types[0])
        if value.shape is not None:
            check_broadcast(value.shape, shape)
        dtype = value.dtype if attrs.get("dtype") is None else attrs["dtype"]
        return (TensorType(dtype, shape),)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        dtype = tensor_type(types[0]).dtype if attrs.get("dtype") is None else attrs["dtype"]
        return dtype, *(None,) * (len(types) - 1)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        dtype = attrs.get("dtype")
        shape = runtime_sizes(attrs["shape"], args[1:])
        return np.full(shape, args[0], None if dtype is None else dtype.numpy)

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = known_sizes(attrs["shape"], types[1:])
        prove_broadcast(complete_shape(tensor_type(types[0])), shape)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        value, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.dtype is not None
        if hasattr(value, "at") and value.rank:
            return b.broadcast(b.cast(value, out.dtype), out)
        return b.fill(value, out)


class Iota(_Sized, name="iota"):
    """0, 1, 2, … along ``axis``, the same along all others. `numpy.arange` is built on it."""

    sizes = operand(variadic=True)
    out = result()
    shape = attr(I64_ARRAY)
    dtype = attr(DTYPE, default=INT64)
    axis = attr(I64, default=0)
    no_gradient = True

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        shape = nonnegative(known_sizes(attrs["shape"], types))
        normalize_axis(attrs.get("axis", 0), len(shape))
        return (TensorType(attrs.get("dtype", INT64), shape),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        shape = runtime_sizes(attrs["shape"], args)
        nonnegative(shape)
        axis = normalize_axis(attrs.get("axis", 0), len(shape))
        row = np.arange(shape[axis]).astype(attrs.get("dtype", INT64).numpy, copy=False)
        if len(shape) == 1:
            return row
        # A copy, as the result is memory like any other, which a graph may write.
        return np.broadcast_to(row.reshape(-1, *(1,) * (len(shape) - 1 - axis)), shape).copy()

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        rank, axis = len(attrs["shape"]), attrs.get("axis", 0)
        if not -rank <= axis < rank:
            yield f"axis {axis} is out of bounds for array of dimension {rank}"

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        out = types[0]
        assert isinstance(out, TensorType) and out.shape is not None and out.dtype is not None
        dtype, axis = out.dtype, normalize_axis(attrs.get("axis", 0), len(out.shape))
        return b.compute(out, lambda *at: at[axis].cast(dtype))
