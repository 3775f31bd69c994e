"""Reductions: one class per op, the families supply axes, shapes, dtypes and accumulation.

NumPy semantics. f16 and bf16 accumulate in f32 and are rounded once, which is at least as exact
as NumPy (it accumulates in half along some axes). A symbolic size is taken to be non-zero where
an empty reduction is an error: guards of dynamic kernels do not admit empty tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..attrs import BOOL, DTYPE, F64, I64, I64_ARRAY
from ..base import Fusion, Op, attr, operand, result
from ..dtypes import BF16, C64, C128, F16, F32, I64 as INT64, U64 as UINT64, DType
from ..dtypes import BOOL as BOOLEAN
from ..dtypes import F64 as FLOAT64
from ..errors import DTypeError, ShapeError
from ..symbolic import Sym
from ..types import Shape, TensorType, Type
from .sizes import check_axes, complete_shape, drop, normalize_axes, product, tensor_type

if TYPE_CHECKING:
    from ...lowering.builder import Builder, Tensor
    from ...lowering.scalar import Scalar

_TWICE = "duplicate value in 'axis'"


def _wide(dtype: DType) -> DType:
    """The dtype sums run in: f32 for the two half formats."""
    return F32 if dtype in (F16, BF16) else dtype


def _axis(axes: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if axes is None else tuple(axes)


class Reduction(Op):
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
    def result_dtype(cls, dtype: DType, attrs: Mapping[str, Any]) -> DType:
        """Dtype of the result for an operand of ``dtype``."""
        return dtype

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
        x = tensor_type(types[0])
        dtype = None if x.dtype is None else cls.result_dtype(x.dtype, attrs)
        return (TensorType(dtype, cls._shape(x, attrs)),)

    @classmethod
    def _shape(cls, x: TensorType, attrs: Mapping[str, Any]) -> Shape | None:
        axes, keepdims = attrs.get("axes"), bool(attrs.get("keepdims"))
        if x.shape is None:
            return () if axes is None and not keepdims else None
        found = reduced_axes(axes, len(x.shape))
        if cls.no_identity and product(x.shape[a] for a in found) == 0:
            raise ShapeError(
                f"zero-size array to reduction operation {cls.no_identity} which has no identity"
            )
        return drop(x.shape, found, keepdims)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> Iterator[str]:
        if tensor_type(types[0]).rank != 0:
            yield from check_axes(attrs.get("axes"), types[0])


def reduced_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes of a reduction counted from the front; raises AxisError, ShapeError."""
    if rank == 0 and axes is not None and tuple(axes) in ((0,), (-1,)):
        return ()
    return normalize_axes(axes, rank, _TWICE)


class _Fold(Reduction):
    """Family: an associative operation folded over the elements."""

    ufunc: ClassVar[Callable[..., Any]]
    initial: ClassVar[Any] = 0

    @classmethod
    def fold(cls, acc: Scalar, element: Scalar) -> Scalar:
        """One step, on scalars of one dtype."""
        raise NotImplementedError

    @classmethod
    def accumulator(cls, dtype: DType) -> DType:
        """Dtype the fold runs in, for a result of ``dtype``."""
        return dtype

    @classmethod
    def evaluate(cls, attrs: Mapping[str, Any], *args: Any) -> Any:
        return cls.ufunc.reduce(
            args[0], axis=_axis(attrs.get("axes")), keepdims=bool(attrs.get("keepdims"))
        )

    @classmethod
    def lower(
        cls, b: Builder, attrs: Mapping[str, Any], types: tuple[Type, ...], *args: Any
    ) -> Tensor:
        x, out = args[0], types[0]
        wide = cls.accumulator(out.dtype)
        axes = reduced_axes(attrs.get("axes"), x.type.rank)
        acc = b.reduce(
            cls.fold, cls.initial, b.cast(x, wide), axes, TensorType(wide, out.shape),
            keepdims=bool(attrs.get("keepdims")),
        )  # fmt: skip
        return b.cast(acc, out.dtype)


class Accumulation(_Fold):
    """Family: sum and product. Small integers accumulate in 64 bits.

    ``dtype`` sets the dtype computed in and returned; ``promote`` = false keeps the operand's.
    """

    dtype = attr(DTYPE, default=None)
    promote = attr(BOOL, default=True)

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Mapping[str, Any]) -> DType:
        if attrs.get("dtype") is not None:
            return attrs["dtype"]
        return accumulated(dtype) if attrs.get("promote", True) else dtype

    @classmethod
    def accumulator(cls, dtype: DType) -> DType:
        return _wide(dtype)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple | None:
        dtype = tensor_type(types[0]).dtype
        return None if dtype is None else (cls.result_dtype(dtype, attrs),)

    @classmethod
    def evaluate(cls, attrs: Mapping[str, Any], *args: Any) -> Any:
        x = np.asarray(args[0])
        out = cls.result_dtype(_dtype(x), attrs)
        wide = _wide(out)
        if wide is not out:
            x = x.astype(out.numpy, copy=False)
        found = cls.ufunc.reduce(
            x, axis=_axis(attrs.get("axes")), dtype=wide.numpy,
            keepdims=bool(attrs.get("keepdims")),
        )  # fmt: skip
        return found if wide is out else found.astype(out.numpy)


def accumulated(dtype: DType) -> DType:
    """Dtype of sums and products of ``dtype``: 64 bits for bool and integers, else itself."""
    return {"b": INT64, "i": INT64, "u": UINT64}.get(dtype.kind, dtype)


def _dtype(x: np.ndarray) -> DType:
    from ..dtypes import dtype_of

    return dtype_of(x.dtype)


class Sum(Accumulation, name="sum"):
    """Sum of elements (0 for none)."""

    ufunc = np.add

    @classmethod
    def fold(cls, acc: Scalar, element: Scalar) -> Scalar:
        return acc | element if acc.dtype is BOOLEAN else acc + element


class Prod(Accumulation, name="prod"):
    """Product of elements (1 for none)."""

    ufunc = np.multiply
    initial = 1

    @classmethod
    def fold(cls, acc: Scalar, element: Scalar) -> Scalar:
        return acc & element if acc.dtype is BOOLEAN else acc * element


class Max(_Fold, name="max"):
    """Largest element; NaN if there is one. Raises ShapeError for none."""

    ufunc = np.maximum
    initial = "min"
    no_identity = "maximum"

    @classmethod
    def fold(cls, acc: Scalar, element: Scalar) -> Scalar:
        return acc | element if acc.dtype is BOOLEAN else acc.maximum(element)


class Min(_Fold, name="min"):
    """Smallest element; NaN if there is one. Raises ShapeError for none."""

    ufunc = np.minimum
    initial = "max"
    no_identity = "minimum"

    @classmethod
    def fold(cls, acc: Scalar, element: Scalar) -> Scalar:
        return acc & element if acc.dtype is BOOLEAN else acc.minimum(element)


class _Logical(_Fold):
    """Family: any and all. Everything but zero is true, NaN too."""

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Mapping[str, Any]) -> DType:
        return BOOLEAN

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple | None:
        return (BOOLEAN,)


class Any_(_Logical, name="any"):
    """True if one element is true (false for none)."""

    ufunc = np.logical_or
    initial = False

    @classmethod
    def fold(cls, acc: Scalar, element: Scalar) -> Scalar:
        return acc | element


class All_(_Logical, name="all"):
    """True if every element is true (true for none)."""

    ufunc = np.logical_and
    initial = True

    @classmethod
    def fold(cls, acc: Scalar, element: Scalar) -> Scalar:
        return acc & element


class Mean(Reduction, name="mean"):
    """Arithmetic mean: integers in f64, f16 and bf16 in f32 and rounded once; NaN for none.

    ``dtype`` (float or complex) sets the dtype computed in and returned.
    """

    dtype = attr(DTYPE, default=None)

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Mapping[str, Any]) -> DType:
        wanted = attrs.get("dtype")
        if wanted is not None and wanted.kind not in "fc":
            raise DTypeError(f"{cls.name} in dtype {wanted} is not supported, use a float dtype")
        if wanted is not None:
            return wanted
        return FLOAT64 if dtype.kind in "biu" else dtype

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple | None:
        dtype = tensor_type(types[0]).dtype
        return None if dtype is None else (cls.result_dtype(dtype, attrs),)

    @classmethod
    def evaluate(cls, attrs: Mapping[str, Any], *args: Any) -> Any:
        x = np.asarray(args[0])
        out = cls.result_dtype(_dtype(x), attrs).numpy
        keepdims = bool(attrs.get("keepdims"))
        return _mean(x, attrs.get("axes"), keepdims, out).astype(out, copy=False)

    @classmethod
    def lower(
        cls, b: Builder, attrs: Mapping[str, Any], types: tuple[Type, ...], *args: Any
    ) -> Tensor:
        x, out = args[0], types[0]
        axes = reduced_axes(attrs.get("axes"), x.type.rank)
        found = lower_mean(b, b.cast(x, _wide(out.dtype)), axes, bool(attrs.get("keepdims")))
        return b.cast(found, out.dtype)


def _mean(x: np.ndarray, axes: Sequence[int] | None, keepdims: bool, out: np.dtype) -> Any:
    """Mean in the dtype that ``out`` accumulates in."""
    wide = _wide(_dtype(np.empty(0, out))).numpy
    if wide != out:
        x = x.astype(out, copy=False)
    total = np.add.reduce(x, axis=_axis(axes), dtype=wide, keepdims=keepdims)
    return _over(total, _count(x, axes))


def _count(x: np.ndarray, axes: Sequence[int] | None) -> int:
    count = 1
    for axis in reduced_axes(axes, x.ndim):
        count *= x.shape[axis]
    return count


def _over(total: Any, count: float) -> Any:
    return np.true_divide(total, count, dtype=total.dtype)


def lower_mean(b: Builder, x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Mean of a float tensor in its own dtype."""
    shape = complete_shape(x.type)
    type_ = TensorType(x.dtype, drop(shape, axes, keepdims))
    total = b.reduce(lambda acc, e: acc + e, 0, x, axes, type_, keepdims=keepdims)
    return _divided(b, total, product(shape[a] for a in axes), 0.0)


def _divided(b: Builder, total: Tensor, count: Any, less: float) -> Tensor:
    """``total / max(count - less, 0)``; the count is a literal or a symbolic size."""

    def divide(value: Scalar) -> Scalar:
        if not isinstance(count, Sym):
            return value / value.const(max(float(count) - less, 0.0))
        divisor = b.size(count).cast(value.dtype)
        if less:
            divisor = (divisor - value.const(less)).maximum(value.const(0.0))
        return value / divisor

    return b.pointwise(divide, [total], total.type)


class Var(Mean, name="var"):
    """Variance in two passes; the divisor is the count minus ``ddof``. Complex gives real."""

    ddof = attr(F64, default=0.0)

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Mapping[str, Any]) -> DType:
        found = super().result_dtype(dtype, attrs)
        return {C64: F32, C128: FLOAT64}.get(found, found)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple | None:
        dtype = tensor_type(types[0]).dtype
        return None if dtype is None or dtype.kind == "c" else (cls.result_dtype(dtype, attrs),)

    @classmethod
    def evaluate(cls, attrs: Mapping[str, Any], *args: Any) -> Any:
        x = np.asarray(args[0])
        out = cls.result_dtype(_dtype(x), attrs).numpy
        return cls.finish(_var(x, attrs, out)).astype(out, copy=False)

    @classmethod
    def finish(cls, variance: Any) -> Any:
        """From the variance to the result, on arrays."""
        return variance

    @classmethod
    def lower(
        cls, b: Builder, attrs: Mapping[str, Any], types: tuple[Type, ...], *args: Any
    ) -> Tensor:
        x, out = args[0], types[0]
        axes = reduced_axes(attrs.get("axes"), x.type.rank)
        wide = b.cast(x, _wide(out.dtype))
        found = lower_var(b, wide, axes, bool(attrs.get("keepdims")), attrs.get("ddof") or 0.0)
        return b.cast(found, out.dtype)


def _var(x: np.ndarray, attrs: Mapping[str, Any], out: np.dtype) -> Any:
    axes, keepdims = attrs.get("axes"), bool(attrs.get("keepdims"))
    computed = x.dtype if x.dtype.kind == "c" else out
    wide = _wide(_dtype(np.empty(0, computed))).numpy
    centred = x.astype(computed, copy=False).astype(wide, copy=False)
    centred = np.subtract(centred, _mean(x, axes, True, computed))
    squares = (centred * centred.conj()).real if wide.kind == "c" else centred * centred
    total = np.add.reduce(squares, axis=_axis(axes), keepdims=keepdims)
    return _over(total, max(_count(x, axes) - (attrs.get("ddof") or 0.0), 0.0))


def lower_var(
    b: Builder, x: Tensor, axes: tuple[int, ...], keepdims: bool, ddof: float
) -> Tensor:
    """Variance of a float tensor in its own dtype, in two passes."""
    shape = complete_shape(x.type)
    mean = lower_mean(b, x, axes, True)

    def square(value: Scalar, centre: Scalar) -> Scalar:
        distance = value - centre
        return distance * distance

    squares = b.pointwise(square, [x, mean], x.type.without_layout())
    type_ = TensorType(x.dtype, drop(shape, axes, keepdims))
    total = b.reduce(lambda acc, e: acc + e, 0, squares, axes, type_, keepdims=keepdims)
    return _divided(b, total, product(shape[a] for a in axes), ddof)


class Std(Var, name="std"):
    """Standard deviation: the root of `var`, taken before rounding f16 and bf16."""

    @classmethod
    def finish(cls, variance: Any) -> Any:
        return np.sqrt(variance)

    @classmethod
    def lower(
        cls, b: Builder, attrs: Mapping[str, Any], types: tuple[Type, ...], *args: Any
    ) -> Tensor:
        x, out = args[0], types[0]
        wide = b.cast(x, _wide(out.dtype))
        axes = reduced_axes(attrs.get("axes"), x.type.rank)
        found = lower_var(b, wide, axes, bool(attrs.get("keepdims")), attrs.get("ddof") or 0.0)
        return b.cast(b.pointwise(lambda v: v.math("sqrt"), [found], found.type), out.dtype)


