"""The pure forms of in-place ops (R3.8): fresh tensors with some elements replaced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError, LoweringError, ShapeError
from ...ir.attrs import BOOL, I64, I64_ARRAY
from ...ir.dtypes import BF16, F64, DType
from ...ir.dtypes import I64 as INT64
from ...ir.op import Attrs, Failure, Fusion, Rounding, Values, attr, operand, result
from ...ir.types import ListType, ScalarType, Shape, TensorType, Type
from ...reasons import Reason
from ..broadcast import shape_of, shape_text
from ..elementwise.select import loses_imaginary
from ..sizes import (
    complete_shape,
    known_scalar,
    known_sizes,
    normalize_axis,
    position_within,
    prove_equal,
    prove_positive,
    tensor_type,
)
from ..structural import Proven
from .slicing import Pick, Slice

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, Scalar, TensorValue
    from ...ir.gradients import GradientBuilder


def _is_truncated(given: DType | None, wanted: DType | None) -> bool:
    """True if floats of the dtype ``given`` are stored as integers of the dtype ``wanted``."""
    return given is not None and wanted is not None and given.is_float and wanted.is_int


def _may_not_fit(given: DType | None, wanted: DType | None) -> bool:
    """True if NumPy raises for some numbers of a dtype that are assigned to elements of another.

    These are floats that are stored as integers, and NumPy's scalars that are out of range of a
    signed integer; NumPy wraps those that are stored as unsigned ones, and elements of arrays.
    A bf16 number becomes an i64, whatever it is, and that has to fit.
    """
    if given is BF16 and wanted is INT64:
        return False
    if given is None or wanted is None or not (given.is_int and wanted.is_int):
        return _is_truncated(given, wanted)
    return not np.can_cast(given.numpy, wanted.numpy)


def _fits(dtype: DType) -> Callable[[Scalar], Scalar]:
    """True where a number, truncated, is one of an integer dtype; NaN is not."""
    limits = np.iinfo(dtype.numpy)
    low, high = float(limits.min) - 1, float(limits.max) + 1
    exact = low < limits.min  # f64 does not tell the least i64 from what is less by 1

    def fits(x: Scalar) -> Scalar:
        if x.dtype.is_int:
            above = x <= min(limits.max, np.iinfo(x.dtype.numpy).max)
            return above & (x >= max(limits.min, np.iinfo(x.dtype.numpy).min))
        wide = x.cast(F64)
        return (wide > low if exact else wide >= low) & (wide < high)

    return fits


class Copy(Proven, name="copy", rounding=Rounding.MOVES):
    """`ndarray.copy` in C order: the elements in memory of their own, of numbers too."""

    exact = True
    fusion = Fusion.POINTWISE
    lowers_complex = True
    failure = Failure.NEVER
    x = operand()
    out = result()
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return g

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (tensor_type(types[0]).without_layout(),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.array(args[0], order="C")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        return b.pointwise(lambda x: x, args, types[0])


class Conform(Proven, name="conform", rounding=Rounding.MOVES):
    """``value`` as it would be stored in ``like``: its dtype, its shape; fresh memory.

    Raises ShapeError and DTypeError as an in-place op would; ``assign``: as assignment does,
    which broadcasts and casts freely.
    """

    exact = True
    fusion = Fusion.POINTWISE
    lowers_complex = True
    value = operand()
    like = operand()
    out = result()
    assign = attr(BOOL, default=False)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        extra = np.ndim(xs[0]) - np.ndim(g)  # leading axes of size 1, which assignment drops
        return b.like(np.expand_dims(g, tuple(range(extra))) if extra > 0 else g, xs[0])

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        target = tensor_type(types[1]).without_layout()
        check_stored(types[0], target, strict=not attrs.get("assign"))
        return (target,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        value, like = args
        out = np.empty(np.shape(like), like.dtype)
        return store(out, value, strict=not attrs.get("assign"))

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        # Python numbers are cast beforehand, so that those out of range are left to NumPy; floats
        # that are stored as integers are checked by the kernel.
        number, dtype = types[0], tensor_type(types[1]).dtype
        if not isinstance(number, ScalarType):
            return (None, None)
        return (None if _is_truncated(number.dtype, dtype) else dtype, None)

    @classmethod
    def can_lower_types(cls, types: Sequence[Type], attrs: Attrs) -> Reason | None:
        return super().can_lower_types(types, attrs) or loses_imaginary(types[0], tensor_type(types[1]).dtype)

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        target = complete_shape(tensor_type(types[1]))
        shape = () if isinstance(types[0], ScalarType) else complete_shape(tensor_type(types[0]))
        shape = shape[max(len(shape) - len(target), 0) :]
        for size, expected in zip(shape, target[len(target) - len(shape) :], strict=True):
            if not attrs.get("assign") or size != 1:
                prove_equal(size, expected, "the value fits the memory it would be stored in")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        out = types[0]
        assert isinstance(out, TensorType) and out.dtype is not None
        dtype = out.dtype
        value: Any = args[0] if hasattr(args[0], "dtype") else b.scalar(args[0])  # a constant
        number = True
        if hasattr(value, "rank"):
            # A NumPy scalar or an array of no axes, which wraps: the caller finds out which.
            number = bool(attrs.get("assign")) and not value.rank and dtype.kind == "i"
        if number and _may_not_fit(value.dtype, dtype):
            fits = _fits(dtype)
            b.forbid(lambda x: ~fits(x), value)
        extra = value.type.rank - len(complete_shape(out)) if hasattr(value, "rank") else 0
        if extra > 0:
            value = b.squeeze(value, tuple(range(extra)))
        return b.pointwise(lambda x: x.cast(dtype), (value,), out)


class Scatter(Proven, rounding=Rounding.MOVES):
    """Family: ``x`` with the elements that a view op would give replaced by ``value``."""

    fusion = Fusion.POINTWISE
    lowers_complex = True
    view: type[Slice] | type[Pick]
    x = operand()
    value = operand()
    linear = ((0, 1),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        if k == 1:
            return b.op(cls.view.name, g, *xs[2:], **attrs)
        return b.op(cls.name, g, np.zeros_like(xs[1]), *xs[2:], **attrs)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x, value = tensor_type(types[0]), tensor_type(types[1])
        check_output(value.shape, cls.view.result_shape((x, *types[2:]), attrs))
        if None not in (x.dtype, value.dtype) and x.dtype is not value.dtype:
            raise DTypeError(f"elements of {value.dtype} cannot replace elements of {x.dtype}")
        return (x.without_layout(),)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from cls.view.verify((types[0], *types[2:]), attrs)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.overwrite(attrs, np.array(args[0]), *args[1:])

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        x, value = tensor_type(types[0]), tensor_type(types[1])
        shape = cls.view.result_shape((x, *types[2:]), attrs) or ()
        for size, part in zip(complete_shape(value), shape, strict=True):
            if part is None:
                raise LoweringError("which elements are replaced is known only at run time")
            prove_equal(size, part, "the new elements fit those that they replace")
            if size != 0:
                prove_positive(size)


class SliceScatter(Scatter, name="slice_scatter"):
    """``x`` with the elements of a slice, given as to `slice`, replaced. Raises ShapeError."""

    view = Slice
    bounds = operand(variadic=True)
    out = result()
    starts = attr(I64_ARRAY)
    stops = attr(I64_ARRAY)
    steps = attr(I64_ARRAY, default=None)
    axes = attr(I64_ARRAY, default=None)
    dynamic = Slice.dynamic

    @classmethod
    def overwrite(cls, attrs: Attrs, *args: Any) -> Any:
        out, value, *bounds = args
        store(Slice.evaluate(attrs, out, *bounds), value, strict=True)
        return out

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, value = args[0], args[1]
        bounds = [known_scalar(v) for v in args[2:]]
        out = types[0]
        assert isinstance(out, TensorType)
        parts = Slice.parts((x.type, *bounds), attrs)
        if any(size == 0 for size in value.type.shape):
            return b.pointwise(lambda e: e, (x,), out)

        window = all(step == 1 for *_, step in parts)

        def element(old: Scalar, *at: Scalar) -> Scalar:
            inside, where = None, list(at)
            for axis, first, size, step in parts:
                assert isinstance(step, int) and first is not None and size is not None
                begin, last = b.size(first), b.size(size) - 1
                if step == 1:
                    # Comparisons of the index itself, at which loops are split.
                    here, end = at[axis], first + size
                    behind = None if first == 0 else ~(here < begin)
                    before = None if end == x.shape[axis] else here < b.size(end)
                    inside = _both(inside, _both(behind, before))
                    where[axis] = (here - begin).maximum(0).minimum(last)
                    continue
                distance = at[axis] - begin if step > 0 else begin - at[axis]
                index = distance // abs(step) if abs(step) > 1 else distance
                hit = (distance >= 0) & (index <= last)
                if abs(step) > 1:
                    hit = hit & (distance % abs(step)).eq(0)
                inside = _both(inside, hit)
                # The new elements are read whether they are wanted or not.
                where[axis] = index.maximum(0).minimum(last)
            new = value.at(*where, window=window)
            return new if inside is None else inside.select(new, old)

        if x.scalar is not None:
            return b.compute(out, lambda *at: element(x.at(*at), *at))
        part = [
            (axis, first, size) for axis, first, size, _ in parts if window and first is not None and size is not None
        ]
        return b.compute(out, element, [(x, range(x.rank))], part)


def _both(a: Scalar | None, b: Scalar | None) -> Scalar | None:
    return b if a is None else a if b is None else a & b


class PickScatter(Scatter, name="pick_scatter"):
    """``x`` with the elements at one index of an axis, given as to `pick`, replaced.

    Raises ShapeError, and BoundsError for an index out of range.
    """

    view = Pick
    position = operand(variadic=True)
    out = result()
    axis = attr(I64, default=0)
    index = attr(I64)
    dynamic = Pick.dynamic

    @classmethod
    def overwrite(cls, attrs: Attrs, *args: Any) -> Any:
        out, value, *position = args
        index = operator.index(position[0]) if position else attrs["index"]
        axis = normalize_axis(attrs.get("axis", 0), out.ndim)
        store(out[(*(slice(None),) * axis, index, ...)], value, strict=True)
        return out

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        super().prove(types, attrs)
        x = tensor_type(types[0])
        size = complete_shape(x)[normalize_axis(attrs.get("axis", 0), x.rank or 0)]
        (index,) = known_sizes((attrs["index"],), types[2:])
        if not isinstance(index, int):
            raise LoweringError("the index is known only at run time")
        prove_positive(size)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, value, out = args[0], args[1], types[0]
        assert isinstance(out, TensorType)
        axis = normalize_axis(attrs.get("axis", 0), x.type.rank)
        (index,) = known_sizes((attrs["index"],), [known_scalar(v) for v in args[2:]])
        assert isinstance(index, int)
        position = position_within(b, index, x.type.shape[axis])
        begin, after = b.size(position), b.size(position + 1)

        def element(old: Scalar, new: Scalar, *at: Scalar) -> Scalar:
            hit = (at[axis] < after) & ~(at[axis] < begin)
            return hit.select(new, old)

        def of_number(*at: Scalar) -> Scalar:
            return element(x.at(*at), value.at(*at[:axis], *at[axis + 1 :]), *at)

        if x.scalar is not None or value.scalar is not None:
            return b.compute(out, of_number)
        axes = range(x.rank)
        reads = [(x, axes), (value, [k for k in axes if k != axis])]
        return b.compute(out, element, reads, [(axis, position, 1)])


def store(target: np.ndarray, value: Any, *, strict: bool) -> np.ndarray:
    """Write ``value`` to ``target``, which is returned; ``strict``: as a ufunc would."""
    if strict:
        check_output(np.shape(value), target.shape)
        np.copyto(target, value, casting="same_kind")
    else:
        target[...] = value
    return target


def check_stored(given: Type, target: TensorType, *, strict: bool) -> None:
    """Raise ShapeError or DTypeError if `store` certainly would."""
    if isinstance(given, ListType):
        raise DTypeError("a list of tensors cannot be stored")
    if strict:
        dtype = given.dtype if isinstance(given, TensorType) else None
        check_casting(dtype, target.dtype)
        check_output(shape_of(given), target.shape)
    else:
        check_assignment(shape_of(given), target.shape)


def check_casting(dtype: DType | None, target: DType | None) -> None:
    """Raise DTypeError unless a ufunc may write ``dtype`` to an output of dtype ``target``."""
    if dtype is None or target is None or dtype is target:
        return
    if not np.can_cast(dtype.numpy, target.numpy, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc output from {dtype.numpy!r} to {target.numpy!r} with casting rule 'same_kind'"
        )


def check_output(shape: Shape | None, target: Shape | None) -> None:
    """Raise ShapeError if a result of shape ``shape`` is certainly not of shape ``target``."""
    if shape is None or target is None:
        return
    if len(shape) == len(target) and not any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(shape, target, strict=True)
    ):
        return
    raise ShapeError(
        f"non-broadcastable output operand with shape {shape_text(target)} doesn't match the "
        f"broadcast shape {shape_text(shape)}"
    )


def check_assignment(given: Shape | None, target: Shape | None) -> None:
    """Raise ShapeError if a value of shape ``given`` can certainly not be assigned."""
    if given is None or target is None:
        return
    extra = max(len(given) - len(target), 0)
    kept = given[extra:]
    pairs = zip(kept, target[len(target) - len(kept) :], strict=True)
    if any(isinstance(d, int) and d != 1 for d in given[:extra]) or any(
        isinstance(a, int) and isinstance(b, int) and a not in (1, b) for a, b in pairs
    ):
        raise ShapeError(
            f"could not broadcast input array from shape {shape_text(given)} into shape {shape_text(target)}"
        )
