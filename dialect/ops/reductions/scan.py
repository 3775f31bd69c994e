"""Running sums and products along an axis."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...ir.attrs import DTYPE, I64
from ...ir.dtypes import DType, dtype_of
from ...ir.op import Attrs, Failure, Fusion, Op, Rounding, Values, attr, operand, result
from ...ir.types import Shape, TensorType, Type
from ..sizes import check_axis, normalize_axis, product, tensor_type
from .reduce import InResultDtype, accumulated, wide

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


class Scan(InResultDtype, Op, rounding=Rounding.SUMS):
    """Family: running fold along ``axis``; None = over the flat tensor, which the result is, too.

    Dtypes are those of the reductions: small integers in 64 bits, f16 and bf16 accumulated in
    f32 and rounded element by element. A 0-d operand gives one element.
    """

    x = operand()
    out = result()
    axis = attr(I64, default=None)
    dtype = attr(DTYPE, default=None)
    fusion = Fusion.REDUCTION
    failure = Failure.NEVER
    ufunc: ClassVar[np.ufunc]
    fold: ClassVar[Callable[..., Scalar]]  # (accumulated so far, next element)

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Attrs) -> DType:
        target = attrs.get("dtype")
        return accumulated(dtype) if target is None else target

    @classmethod
    def result_shape(cls, shape: Shape | None, attrs: Attrs) -> Shape | None:
        """Shape of the result; raises AxisError."""
        if attrs.get("axis") is None:
            return (None if shape is None else product(shape),)
        if shape is None:
            return None
        shape = shape or (1,)
        normalize_axis(attrs["axis"], len(shape))
        return shape

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x = tensor_type(types[0])
        dtype = None if x.dtype is None else cls.result_dtype(x.dtype, attrs)
        return (TensorType(dtype, cls.result_shape(x.shape, attrs)),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x = np.asarray(args[0])
        out, axis = cls.result_dtype(dtype_of(x.dtype), attrs), attrs.get("axis")
        x = (x.reshape(-1) if axis is None or not x.ndim else x).astype(out.numpy, copy=False)
        scan = cls.ufunc.accumulate(x, 0 if axis is None else axis, wide(out).numpy)
        return scan.astype(out.numpy, copy=False)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if tensor_type(types[0]).rank != 0:
            yield from check_axis(attrs.get("axis"), types[0])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.dtype is not None
        axis = 0 if attrs.get("axis") is None or not x.rank else attrs["axis"]
        x = b.reshape(b.cast(x, wide(out.dtype)), TensorType(wide(out.dtype), out.shape))
        return b.cast(b.scan(cls.fold, x, axis, x.type), out.dtype)


class CumSum(Scan, name="cumsum"):
    """`numpy.cumsum`."""

    ufunc = np.add
    fold = operator.add
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        axis = 0 if attrs["axis"] is None else attrs["axis"]
        summed = np.flip(np.cumsum(np.flip(g, axis), axis, dtype=g.dtype), axis)
        return b.like(np.reshape(summed, np.shape(xs[0])), xs[0])


class CumProd(Scan, name="cumprod"):
    """`numpy.cumprod`."""

    ufunc = np.multiply
    fold = operator.mul

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        (x,), y, g = xs, ys[0], gs[0]
        axis = 0 if attrs["axis"] is None else attrs["axis"]
        flat = np.reshape(x, np.shape(y))
        zero = flat == 0
        zeros = np.cumsum(zero, axis)
        first, second = zero & (zeros == 1), zero & (zeros == 2)

        def later(values: Any) -> Any:
            terms = g * b.conjugate(values)
            return np.flip(np.cumsum(np.flip(terms, axis), axis, dtype=g.dtype), axis)

        def without(left_out: Any) -> Any:
            return np.cumprod(np.where(left_out, 1, flat), axis, dtype=y.dtype)

        # What follows the first zero is 0; the first zero itself is left out of its own derivative.
        # That of the second is 0 as well, but has the first as a factor.
        factor = np.cumsum(np.where(first, flat, 0), axis, dtype=y.dtype)
        at_zero = np.where(second, later(without(first | second)) * b.conjugate(factor), 0)
        rest = np.where(zero, at_zero, later(y) / b.conjugate(np.where(zero, 1, flat)))
        return (b.like(np.reshape(np.where(first, later(without(first)), rest), np.shape(x)), x),)
