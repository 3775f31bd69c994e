"""Reductions: one class per op, the families supply axes, shapes, dtypes and accumulation.

NumPy semantics. f16 and bf16 accumulate in f32 and are rounded once, which is at least as exact
as NumPy (it accumulates in half along some axes).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import ShapeError
from ...ir.attrs import BOOL, DTYPE, I64, I64_ARRAY
from ...ir.dtypes import BF16, F16, F32, U64, DType, dtype_of
from ...ir.dtypes import BOOL as BOOLEAN
from ...ir.dtypes import I64 as INT64
from ...ir.op import Attrs, Failure, Fusion, Rounding, Values, attr, operand, result
from ...ir.types import Shape, TensorType, Type
from ..sizes import check_axes, check_axis, complete_shape, drop, normalize_axes, product, prove_positive, tensor_type
from ..structural import Proven

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


def wide(dtype: DType) -> DType:
    """The dtype that reductions run in: f32 for the two half formats."""
    return F32 if dtype in (F16, BF16) else dtype


def accumulated(dtype: DType) -> DType:
    """Dtype of sums and products of ``dtype``: 64 bits for bool and integers, else itself."""
    return {"b": INT64, "i": INT64, "u": U64}.get(dtype.kind, dtype)


def reduced_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes of a reduction counted from the front; raises AxisError, ShapeError."""
    if rank == 0 and axes is not None and tuple(axes) in ((0,), (-1,)):
        return ()
    return normalize_axes(axes, rank, "duplicate value in 'axis'")


def axis_argument(axes: Sequence[int] | None) -> tuple[int, ...] | None:
    """``axes`` as NumPy's ``axis``."""
    return None if axes is None else tuple(axes)


class InResultDtype:
    """For families of ops of one operand that compute in the dtype of their result."""

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Attrs) -> DType:
        """Dtype of the result for an operand of ``dtype``; raises DTypeError."""
        raise NotImplementedError

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        dtype = tensor_type(types[0]).dtype
        return None if dtype is None else (cls.result_dtype(dtype, attrs),)


class Reduction(Proven):
    """Family: reduce over ``axes`` (None = all, () = none) to one value per remaining index.

    A 0-d operand may be reduced over axis 0 or -1, as NumPy's ufuncs allow.
    """

    x = operand()
    out = result()
    axes = attr(I64_ARRAY, default=None)
    keepdims = attr(BOOL, default=False)
    fusion = Fusion.REDUCTION
    no_identity: ClassVar[str] = ""  # ufunc whose empty reduction is an error

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Attrs) -> DType:
        """Dtype of the result for an operand of ``dtype``."""
        return dtype

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x = tensor_type(types[0])
        dtype = None if x.dtype is None else cls.result_dtype(x.dtype, attrs)
        return (TensorType(dtype, cls._shape(x, attrs)),)

    @classmethod
    def _shape(cls, x: TensorType, attrs: Attrs) -> Shape | None:
        axes, keepdims = attrs.get("axes"), bool(attrs.get("keepdims"))
        if x.shape is None:
            return () if axes is None and not keepdims else None
        positions = reduced_axes(axes, len(x.shape))
        if cls.no_identity and product(x.shape[a] for a in positions) == 0:
            raise ShapeError(f"zero-size array to reduction operation {cls.no_identity} which has no identity")
        return drop(x.shape, positions, keepdims)

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = complete_shape(tensor_type(types[0]))
        count = product(shape[a] for a in reduced_axes(attrs.get("axes"), len(shape)))
        if cls.no_identity:
            prove_positive(count, f", which has no {cls.name}")

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if tensor_type(types[0]).rank != 0:
            yield from check_axes(attrs.get("axes"), types[0])


class _Fold(Reduction):
    """Family: an associative operation folded over the elements, in the dtype that `wide` gives."""

    ufunc: ClassVar[np.ufunc]
    fold: ClassVar[Callable[..., Scalar]]  # (accumulated so far, next element)
    initial: ClassVar[Any] = 0
    needs_all: ClassVar[bool] = False  # a fold of truths is true if all are, not if one is

    @classmethod
    def of_floats(cls, x: np.ndarray, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
        """The result for an array of f32 or f64, in its own dtype."""
        return cls.ufunc.reduce(x, axes, None, None, keepdims)  # type: ignore[call-arg]

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.ufunc.reduce(args[0], axis=axis_argument(attrs.get("axes")), keepdims=bool(attrs.get("keepdims")))

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.dtype is not None
        inside = wide(out.dtype)
        acc = TensorType(inside, out.shape)
        axes, keepdims = reduced_axes(attrs.get("axes"), x.rank), bool(attrs.get("keepdims"))
        x = b.cast(x, inside)
        if inside is BOOLEAN:
            return cls._of_truths(b, x, axes, acc, keepdims)
        result = b.reduce(cls.fold, cls.initial, x, axes, acc, keepdims=keepdims)
        return b.cast(result, out.dtype)

    @classmethod
    def _of_truths(
        cls, b: Builder, x: TensorValue, axes: Sequence[int], type_: TensorType, keepdims: bool
    ) -> TensorValue:
        """All are true where none is false: LLVM makes vectors of one fold, and of its counterpart branches."""
        if cls.needs_all:
            x = b.pointwise(operator.invert, [x], x.type)
        result = b.reduce(operator.or_, False, x, axes, type_, keepdims=keepdims)
        return b.pointwise(operator.invert, [result], type_) if cls.needs_all else result


class Accumulation(InResultDtype, _Fold, rounding=Rounding.SUMS):
    """Family: sum and product. Small integers accumulate in 64 bits.

    ``dtype`` sets the dtype computed in and returned; ``promote`` = false keeps the operand's.
    """

    failure = Failure.NEVER
    lowers_complex = True
    dtype = attr(DTYPE, default=None)
    promote = attr(BOOL, default=True)

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Attrs) -> DType:
        if attrs.get("dtype") is not None:
            return attrs["dtype"]
        return accumulated(dtype) if attrs.get("promote", True) else dtype

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x = np.asarray(args[0])
        axes, keepdims = axis_argument(attrs.get("axes")), bool(attrs.get("keepdims"))
        if x.dtype.char in "fd" and attrs.get("dtype") is None:  # the usual case
            return cls.of_floats(x, axes, keepdims)
        out = cls.result_dtype(dtype_of(x.dtype), attrs)
        acc = wide(out)
        if acc is not out:
            x = x.astype(out.numpy, copy=False)
        total = cls.ufunc.reduce(x, axis=axes, dtype=acc.numpy, keepdims=keepdims)
        return total if acc is out else total.astype(out.numpy)


class Sum(Accumulation, name="sum"):
    """Sum of elements (0 for none)."""

    ufunc = np.add
    fold = operator.add
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.like(b.spread(b.expanded(attrs, g, xs[0]), xs[0]), xs[0])


class Prod(Accumulation, name="prod"):
    """Product of elements (1 for none)."""

    ufunc = np.multiply
    needs_all = True
    initial = 1
    fold = operator.mul

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        (x,), y, g = xs, b.expanded(attrs, ys[0], xs[0]), b.expanded(attrs, gs[0], xs[0])
        axis, dtype = axis_argument(attrs["axes"]), y.dtype
        zero = x == 0
        others = np.where(zero, 1, x)
        # The product without each element. What is 0 beside others has a derivative of its own.
        product = np.prod(others, axis, dtype=dtype, keepdims=True)
        zeros = np.sum(zero, axis, keepdims=True)
        rest = np.sum(np.where(zero, x, 0), axis, dtype=dtype, keepdims=True) - x
        at_zero = np.where(zeros == 1, product, np.where(zeros == 2, product * rest, 0))
        return (b.like(g * b.conjugate(np.where(zero, at_zero, y / others)), x),)


class _Extremum(_Fold, rounding=Rounding.NONE):
    """Family: max and min. In f32 halves are compared by one operation, which may be reordered."""

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        x = xs[0]
        y, g = b.expanded(attrs, ys[0], x), b.expanded(attrs, gs[0], x)
        hit = (x == y) | (np.isnan(x) & np.isnan(y))
        count = np.sum(hit, axis_argument(attrs["axes"]), dtype=g.dtype, keepdims=True)
        return (np.where(hit, g / count, 0),)


class Max(_Extremum, name="max"):
    """Largest element; NaN if there is one. Raises ShapeError for none."""

    ufunc = np.maximum
    initial = "min"
    no_identity = "maximum"
    fold = staticmethod(lambda acc, element: acc.maximum(element))


class Min(_Extremum, name="min"):
    """Smallest element; NaN if there is one. Raises ShapeError for none."""

    ufunc = np.minimum
    needs_all = True
    initial = "max"
    no_identity = "minimum"
    fold = staticmethod(lambda acc, element: acc.minimum(element))


class _LogicalReduction(_Fold, rounding=Rounding.NONE):
    """Family: any and all. Everything but zero is true, NaN too."""

    failure = Failure.NEVER
    lowers_complex = True
    no_gradient = True

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Attrs) -> DType:
        return BOOLEAN

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        return (BOOLEAN,)


class Any_(_LogicalReduction, name="any"):
    """True if one element is true (false for none)."""

    ufunc = np.logical_or


class All_(_LogicalReduction, name="all"):
    """True if every element is true (true for none)."""

    ufunc = np.logical_and
    needs_all = True


class _ArgExtremum(Proven, rounding=Rounding.NONE):
    """Family: the i64 index of an extremum along ``axis`` (None = of the flat tensor).

    The first of equal ones wins; the first NaN wins over everything.
    """

    x = operand()
    out = result()
    axis = attr(I64, default=None)
    keepdims = attr(BOOL, default=False)
    fusion = Fusion.REDUCTION
    numpy: ClassVar[Any]
    which: ClassVar[str]  # "max" or "min"
    no_gradient = True

    @classmethod
    def axes(cls, rank: int, attrs: Attrs) -> tuple[int, ...]:
        """Axes reduced over; raises AxisError."""
        axis = attrs.get("axis")
        return reduced_axes(None if axis is None else (axis,), rank)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        shape, keepdims = tensor_type(types[0]).shape, bool(attrs.get("keepdims"))
        if shape is None:
            is_scalar = attrs.get("axis") is None and not keepdims
            return (TensorType(INT64, () if is_scalar else None),)
        axes = cls.axes(len(shape), attrs)
        if product(shape[a] for a in axes) == 0:
            raise ShapeError(f"attempt to get {cls.name} of an empty sequence")
        return (TensorType(INT64, drop(shape, axes, keepdims)),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.numpy(args[0], attrs.get("axis"), keepdims=bool(attrs.get("keepdims")))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if tensor_type(types[0]).rank != 0:
            yield from check_axis(attrs.get("axis"), types[0])

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = complete_shape(tensor_type(types[0]))
        count = product(shape[a] for a in cls.axes(len(shape), attrs))
        prove_positive(count, f", which has no {cls.name}")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType)
        axes = cls.axes(x.rank, attrs)
        if len(axes) != 1:
            x = b.reshape(x, TensorType(x.dtype, (product(x.shape),)))
            axes = (0,)
        reduced = TensorType(INT64, drop(x.shape, axes, keepdims=False))
        index = b.index_of_extremum(x, axes[0], cls.which, reduced)
        return b.reshape(index, out)


class ArgMax(_ArgExtremum, name="argmax"):
    """Index of the largest element. Raises ShapeError for none."""

    numpy = staticmethod(np.argmax)
    which = "max"


class ArgMin(_ArgExtremum, name="argmin"):
    """Index of the smallest element. Raises ShapeError for none."""

    numpy = staticmethod(np.argmin)
    which = "min"
