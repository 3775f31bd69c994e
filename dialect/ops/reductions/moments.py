"""Mean, variance and standard deviation.

Integers are averaged in f64; f16 and bf16 in f32, rounded once at the end. Variances are computed
in f32 for bf16 alone: of f16 NumPy keeps each step in f16, which overflows beyond 65504.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import DTypeError
from ...ir.attrs import DTYPE, F64
from ...ir.dtypes import C128, F16, DType, dtype_of
from ...ir.dtypes import F64 as DOUBLE
from ...ir.op import Attrs, Failure, Rounding, Values, attr
from ...ir.symbolic import Sym
from ...ir.types import MaybeDim, TensorType, Type
from ..sizes import drop, product, tensor_type
from .reduce import InResultDtype, Reduction, axis_argument, reduced_axes, wide

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


class Mean(InResultDtype, Reduction, name="mean", rounding=Rounding.SUMS):
    """Arithmetic mean; NaN for none. ``dtype`` (float) sets the dtype computed in and returned."""

    failure = Failure.NEVER
    lowers_complex = True
    dtype = attr(DTYPE, default=None)
    linear: ClassVar[tuple[tuple[int, ...], ...]] = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        (x,) = xs
        whole = b.expanded(attrs, g, x) / b.count(attrs, x)
        return b.like(b.spread(whole, x), x)

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Attrs) -> DType:
        target = attrs.get("dtype")
        if target is None:
            return DOUBLE if dtype.kind in "biu" else dtype
        if target.kind not in "fc" or (dtype.kind == "c" and target.kind != "c"):
            raise DTypeError(
                f"{cls.name} of {dtype} in dtype {target} is not supported",
                hint="give a float dtype, a complex one for complex arrays",
            )
        return target

    @classmethod
    def of_floats(cls, x: np.ndarray, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
        """The mean of an array of f32 or f64, in its own dtype."""
        total: Any = np.add.reduce(x, axes, None, None, keepdims)  # type: ignore[call-overload]
        return total / (x.size if axes is None else _count(x, axes))

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x = np.asarray(args[0])
        if x.dtype.char in "fd" and attrs.get("dtype") is None:  # the usual case
            axes, keepdims = axis_argument(attrs.get("axes")), bool(attrs.get("keepdims"))
            return Mean.of_floats(x, axes, keepdims)
        out = cls.result_dtype(dtype_of(x.dtype), attrs)
        x = x.astype(out.numpy, copy=False)
        mean = _mean(x, attrs.get("axes"), bool(attrs.get("keepdims")), wide(out))
        return mean.astype(out.numpy, copy=False)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.dtype is not None
        axes = reduced_axes(attrs.get("axes"), x.rank)
        mean = lower_mean(b, b.cast(x, wide(out.dtype)), axes, bool(attrs.get("keepdims")))
        return b.cast(mean, out.dtype)


class Var(Mean, name="var"):
    """Variance in two passes; the divisor is the count minus ``ddof``. Complex gives real."""

    lowers_complex = False
    linear: ClassVar[tuple[tuple[int, ...], ...]] = ()
    ddof = attr(F64, default=0.0)

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        (x,) = xs
        return (b.like(cls.slope(b, attrs, x, ys[0], b.expanded(attrs, gs[0], x)), x),)

    @classmethod
    def slope(cls, b: GradientBuilder, attrs: Attrs, x: Any, y: Any, g: Any) -> Any:
        """The gradient of ``x`` from that of the variance; both reduced axes are of size 1."""
        mean = np.mean(x, axis_argument(attrs["axes"]), dtype=attrs["dtype"], keepdims=True)
        return (x - mean) * (g * 2 / (b.count(attrs, x) - attrs["ddof"]))

    @classmethod
    def result_dtype(cls, dtype: DType, attrs: Attrs) -> DType:
        return super().result_dtype(dtype, attrs).part

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        dtype = tensor_type(types[0]).dtype
        return None if dtype is None else (super().result_dtype(dtype, attrs),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.about(attrs, args[0], cls.centre(attrs, args[0]))

    @classmethod
    def centre(cls, attrs: Attrs, x: Any) -> np.ndarray:
        """The mean of ``x``, with the axes that it is taken along as axes of size 1."""
        x, inside = cls._as_inside(attrs, x)
        return np.asarray(_mean(x, attrs.get("axes"), True, _between_steps(inside)))

    @classmethod
    def about(cls, attrs: Attrs, x: Any, centre: np.ndarray) -> Any:
        """The result for ``x`` with ``centre`` as its mean, of the shape and dtype of `centre`."""
        x, inside = cls._as_inside(attrs, x)
        variance = _var(x, centre, attrs, _between_steps(inside))
        return cls.finish(variance).astype(inside.part.numpy, copy=False)

    @classmethod
    def _as_inside(cls, attrs: Attrs, x: Any) -> tuple[np.ndarray, DType]:
        x = np.asarray(x)
        inside = super().result_dtype(dtype_of(x.dtype), attrs)
        return x.astype(inside.numpy, copy=False), inside

    @classmethod
    def finish(cls, variance: Any) -> Any:
        """Compute the result from the variance, on arrays."""
        return variance

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, out = args[0], types[0]
        assert isinstance(out, TensorType) and out.dtype is not None
        variance = lower_var(
            b,
            b.cast(x, _between_steps(out.dtype)),
            reduced_axes(attrs.get("axes"), x.rank),
            bool(attrs.get("keepdims")),
            attrs.get("ddof") or 0.0,
        )
        return b.cast(cls.lower_finish(b, variance), out.dtype)

    @classmethod
    def lower_finish(cls, b: Builder, variance: TensorValue) -> TensorValue:
        """`finish` in a kernel."""
        return variance


class Std(Var, name="std"):
    """Standard deviation: the root of the variance, taken before rounding to bf16."""

    @classmethod
    def slope(cls, b: GradientBuilder, attrs: Attrs, x: Any, y: Any, g: Any) -> Any:
        y = b.expanded(attrs, y, x)
        none = y == 0
        return super().slope(b, attrs, x, y, np.where(none, 0, g * 0.5 / np.where(none, 1, y)))

    @classmethod
    def finish(cls, variance: Any) -> Any:
        return np.sqrt(variance)

    @classmethod
    def lower_finish(cls, b: Builder, variance: TensorValue) -> TensorValue:
        return b.pointwise(lambda v: v.math("sqrt"), [variance], variance.type)


def _between_steps(dtype: DType) -> DType:
    """The dtype in which the steps of a variance hand on what they have computed."""
    return dtype if dtype is F16 else wide(dtype)


# --- tier 0 ------------------------------------------------------------------------------------


def _mean(x: np.ndarray, axes: Sequence[int] | None, keepdims: bool, inside: DType) -> Any:
    """Mean computed in ``inside``."""
    total, count = _sum(x, axes, keepdims, inside), _count(x, axes)
    if inside.kind == "c":  # NumPy divides complex sums in double precision
        return (total / np.complex128(count)).astype(inside.numpy)
    return _over(total, count)


def _var(x: np.ndarray, mean: Any, attrs: Attrs, inside: DType) -> Any:
    axes, keepdims = attrs.get("axes"), bool(attrs.get("keepdims"))
    centred = np.subtract(x, mean, dtype=inside.numpy)
    squares = centred.real * centred.real
    if inside.kind == "c":
        squares += centred.imag * centred.imag
    total = _sum(squares, axes, keepdims, inside.part)
    return _over(total, max(_count(x, axes) - (attrs.get("ddof") or 0.0), 0.0))


def _over(total: Any, count: float) -> Any:
    """``total / count``; the count may be too large for f16."""
    if total.dtype != np.float16:
        return total / count
    return (total / np.float64(count)).astype(np.float16)


def _sum(x: np.ndarray, axes: Sequence[int] | None, keepdims: bool, inside: DType) -> Any:
    axis: Any = axis_argument(axes)
    return np.add.reduce(x, axis, inside.numpy, None, keepdims)  # type: ignore[call-overload]


def _count(x: np.ndarray, axes: Sequence[int] | None) -> int:
    return math.prod(x.shape[a] for a in reduced_axes(axes, x.ndim))


# --- kernels -----------------------------------------------------------------------------------


def lower_mean(b: Builder, x: TensorValue, axes: tuple[int, ...], keepdims: bool) -> TensorValue:
    """Mean of a float tensor in its own dtype."""
    total = _lower_sum(b, x, axes, keepdims)
    return _divided(b, total, product(x.shape[a] for a in axes), 0.0)


def lower_var(b: Builder, x: TensorValue, axes: tuple[int, ...], keepdims: bool, ddof: float) -> TensorValue:
    """Variance of a float tensor in its own dtype, in two passes."""
    mean = lower_mean(b, x, axes, True)

    def square(value: Scalar, centre: Scalar) -> Scalar:
        distance = value - centre
        return distance * distance

    squares = b.pointwise(square, [x, mean], x.type.without_layout())
    total = _lower_sum(b, squares, axes, keepdims)
    return _divided(b, total, product(x.shape[a] for a in axes), ddof)


def _lower_sum(b: Builder, x: TensorValue, axes: tuple[int, ...], keepdims: bool) -> TensorValue:
    inside = wide(x.dtype)
    type_ = TensorType(inside, drop(x.shape, axes, keepdims))
    total = b.reduce(lambda acc, e: acc + e, 0, b.cast(x, inside), axes, type_, keepdims=keepdims)
    return b.cast(total, x.dtype)


def _divided(b: Builder, total: TensorValue, count: MaybeDim, less: float) -> TensorValue:
    """``total / max(count - less, 0)``; the count is a literal or a symbolic size."""
    assert count is not None
    # A count may be too large for f16, so f16 is divided in f32, and rounded once.
    # NumPy divides complex sums in double precision.
    dtype, inside = total.dtype, C128 if total.dtype.is_complex else wide(total.dtype)
    if not isinstance(count, Sym):
        divisor = b.scalar(max(float(count) - less, 0.0)).cast(inside)
    else:
        divisor = b.size(count).cast(inside)
        if less:
            divisor = (divisor - less).maximum(0.0)
    return b.pointwise(lambda v, d: (v.cast(inside) / d).cast(dtype), [total, divisor], total.type)
