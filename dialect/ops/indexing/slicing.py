"""Basic indexing: slices and integers.

Bounds follow Python's ``slice``: negative ones count from the end, all are clamped to the axis.
In attributes `ABSENT` stands for a bound left out; other literals must lie closer to zero.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BoundsError, ShapeError
from ...ir.attrs import DYNAMIC, I64, I64_ARRAY
from ...ir.op import Attrs, Emit, Values, View, attr, operand, result
from ...ir.size_algebra import sym_max, sym_min
from ...ir.symbolic import Dim, Sym
from ...ir.types import MaybeDim, Shape, TensorType, Type
from ..sizes import (
    check_axes,
    check_axis,
    check_sizes,
    clamped,
    complete_shape,
    drop,
    forbid_outside,
    is_nonnegative,
    known_scalar,
    known_sizes,
    normalize_axes,
    normalize_axis,
    position_within,
    prove_positive,
    runtime_sizes,
    tensor_type,
)
from ..structural import Structural, at_key

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder

ABSENT = DYNAMIC + 1  # as a start or stop: the bound is left out


def encode_bound(bound: int | None) -> int:
    """A literal start or stop as the attribute spells it."""
    return ABSENT if bound is None else max(min(bound, 2**62), -(2**62))


def clamps_nothing(start: int, stop: int, step: int) -> tuple[bool, bool]:
    """Whether the start, and the stop, of a slice lie so far outside that they are as good as left out, on any axis.

    Exporters write ``x[a : sys.maxsize]`` for ``x[a:]``: a size that follows from the bound would be a minimum with it.
    """
    farthest = sys.maxsize  # the size of an axis is not above that
    if step > 0:
        return start <= -farthest, stop >= farthest
    return start >= farthest, stop < -farthest


def sliced(size: MaybeDim, start: MaybeDim, stop: MaybeDim, step: MaybeDim) -> tuple[MaybeDim, MaybeDim]:
    """First index and number of indices of ``start:stop:step`` on an axis; None = not known.

    Symbolic sizes are taken to be non-negative. The first index is meaningful only where the
    number of indices is positive. Raises ShapeError for step 0.
    """
    if step == 0:
        raise ShapeError("slice step cannot be zero")
    if not isinstance(step, int) or size is None:
        whole = (start, stop, step) in ((ABSENT, ABSENT, 1), (0, ABSENT, 1))
        return (0, size) if whole else (None, None)
    bounds = [b if not isinstance(b, int) or b != ABSENT else None for b in (start, stop)]
    if any(b is None for b in (start, stop)) or not all(map(_sign_known, bounds)):
        return None, None
    if isinstance(size, int) and not any(isinstance(b, Sym) for b in bounds):
        indices: range = range(size)[slice(*bounds, step)]  # type: ignore[assignment, call-overload]
        return indices.start, len(indices)
    first, span = (_forward if step > 0 else _backward)(size, *bounds)
    return first, _count(span, abs(step))


def _count(span: Dim, stride: int) -> Dim:
    """The number of indices at a stride on an extent; 0 on one that is not positive."""
    # An extent that is not smaller than that rounds to none by itself.
    span = span if _nonnegative(span + (stride - 1)) else sym_max(span, 0)
    return span if stride == 1 else (span + (stride - 1)) // stride


def _forward(size: Dim, start: Dim | None, stop: Dim | None) -> tuple[Dim, Dim]:
    """First index and extent, which may be negative, of a slice with positive step.

    Spelled so that the same part of an axis gets the same normal form: ``x[1:]`` and ``x[:-1]``
    both have ``max(n - 1, 0)`` elements.
    """
    start = 0 if start is None else start
    if not _negative(start):
        if stop is None:
            return start, size - start
        if _negative(stop):
            return start, size + stop - start
        return start, sym_min(stop, size) - start
    first = _count(size + start, 1)
    if stop is None:
        return first, sym_min(-start, size)
    if _negative(stop):
        return first, sym_min(-start, size) + stop
    return first, sym_min(stop, size) - first


def _backward(size: Dim, start: Dim | None, stop: Dim | None) -> tuple[Dim, Dim]:
    """First index and extent, which may be negative, of a slice with negative step."""

    def clamp(bound: Dim) -> Dim:
        return sym_max(size + bound, -1) if _negative(bound) else sym_min(bound, size - 1)

    first = size - 1 if start is None else clamp(start)
    last = -1 if stop is None else clamp(stop)
    return first, first - last


def _negative(bound: Dim) -> bool:
    return _nonnegative(-1 - bound)


def _sign_known(bound: Dim | None) -> bool:
    return bound is None or _nonnegative(bound) or _negative(bound)


def _nonnegative(size: Dim) -> bool:
    """True if the expression cannot be negative; axes may have no elements."""
    return is_nonnegative(size, least=0)


def _key_of(rank: int, starts: Any, stops: Any, steps: Any, axes: Any, bounds: Sequence[Any] = ()) -> tuple[slice, ...]:
    """The key of a slice by its attributes, with run-time bounds; views behind kernels ask for it at each call."""
    attrs = {"starts": starts, "stops": stops, "steps": steps, "axes": axes}
    values, count = runtime_sizes(Slice.triples(attrs), bounds), len(starts)
    key = [slice(None)] * rank
    for k, axis in enumerate(Slice.sliced_axes(rank, attrs)):
        start, stop = (None if v == ABSENT else v for v in values[k : 2 * count : count])
        key[axis] = slice(start, stop, values[2 * count + k])
    return tuple(key)


_key = functools.lru_cache(maxsize=4096)(_key_of)


class Slice(Structural, name="slice"):
    """Basic slicing ``x[start:stop:step, …]`` of the given axes (default: the leading ones).

    DYNAMIC entries of ``starts``, then ``stops``, then ``steps`` stand for the operands
    ``bounds`` (i64 scalars), in this order. Raises ShapeError for step 0.
    """

    aliases = {0: 0}
    x = operand()
    bounds = operand(variadic=True)
    out = result()
    starts = attr(I64_ARRAY)
    stops = attr(I64_ARRAY)
    steps = attr(I64_ARRAY, default=None)
    axes = attr(I64_ARRAY, default=None)
    dynamic = ("starts", "stops")
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.op("slice_scatter", np.zeros_like(xs[0]), g, *xs[1:], **attrs)

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        return emit("slice_scatter", [view.base, view.new, *view.operands], attrs)[0]

    @classmethod
    def triples(cls, attrs: Attrs) -> tuple[int, ...]:
        """All starts, then all stops, then all steps."""
        steps = attrs.get("steps")
        return (*attrs["starts"], *attrs["stops"], *(steps or (1,) * len(attrs["starts"])))

    @classmethod
    def sliced_axes(cls, rank: int, attrs: Attrs) -> tuple[int, ...]:
        """Axes counted from the front; raises ShapeError, BoundsError."""
        if attrs.get("axes") is not None:
            return normalize_axes(attrs["axes"], rank)
        if len(attrs["starts"]) > rank:
            raise BoundsError(
                f"too many indices for array: array is {rank}-dimensional, but {len(attrs['starts'])} were indexed"
            )
        return tuple(range(len(attrs["starts"])))

    @classmethod
    def parts(cls, types: Sequence[Type], attrs: Attrs) -> list[tuple[int, MaybeDim, MaybeDim, MaybeDim]]:
        """(axis, first index, number of indices, step) per sliced axis; the rank is known."""
        shape = tensor_type(types[0]).shape or ()
        values = known_sizes(cls.triples(attrs), types[1:])
        count = len(attrs["starts"])
        axes = cls.sliced_axes(len(shape), attrs)
        out = []
        for axis, start, stop, step in zip(
            axes, values[:count], values[count : 2 * count], values[2 * count :], strict=True
        ):
            out.append((axis, *sliced(shape[axis], start, stop, step), step))
        return out

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        sizes = list(shape)
        for axis, _, size, _ in cls.parts(types, attrs):
            sizes[axis] = size
        return tuple(sizes)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x = np.asarray(args[0])
        steps, axes = attrs.get("steps"), attrs.get("axes")
        written = tuple(attrs["starts"]), tuple(attrs["stops"]), steps and tuple(steps), axes and tuple(axes)
        return x[_key(x.ndim, *written) if len(args) == 1 else _key_of(x.ndim, *written, args[1:])]

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        values, count = cls.triples(attrs), len(attrs["starts"])
        if DYNAMIC in values:
            return None
        key = [slice(None)] * rank
        for k, axis in enumerate(cls.sliced_axes(rank, attrs)):
            start, stop = (None if v == ABSENT else v for v in values[k : 2 * count : count])
            key[axis] = slice(start, stop, values[2 * count + k])
        return at_key(*key)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        steps, axes, count = attrs.get("steps"), attrs.get("axes"), len(attrs["starts"])
        for word, values in (("stops", attrs["stops"]), ("steps", steps), ("axes", axes)):
            if values is not None and len(values) != count:
                yield f"{count} starts but {len(values)} {word}"
        if steps is not None and 0 in steps:
            yield "a step is 0"
        yield from check_sizes(cls.triples(attrs), len(types) - 1)
        yield from check_axes(axes, types[0])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, bounds = args[0], [known_scalar(v) for v in args[1:]]
        starts: list[Dim] = [0] * x.type.rank
        steps = [1] * x.type.rank
        for axis, first, _, step in cls.parts((x.type, *bounds), attrs):
            # The size of the result is known, hence so are the bounds it follows from.
            assert first is not None and isinstance(step, int)
            starts[axis], steps[axis] = first, step
        assert isinstance(types[0], TensorType)
        return b.slice(x, starts, steps, types[0])


class Pick(Structural, name="pick"):
    """``x[…, index, …]``: one integer index on one axis, which the result does not have.

    ``index`` DYNAMIC stands for the operand ``position`` (an i64 scalar). Raises BoundsError for
    an index out of range.
    """

    aliases = {0: 0}
    x = operand()
    position = operand(variadic=True)
    out = result()
    axis = attr(I64, default=0)
    index = attr(I64)
    dynamic = ("index",)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.op("pick_scatter", np.zeros_like(xs[0]), g, *xs[1:], **attrs)

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        return emit("pick_scatter", [view.base, view.new, *view.operands], attrs)[0]

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        if not shape:
            raise BoundsError("too many indices for array: array is 0-dimensional, but 1 were indexed")
        axis = normalize_axis(attrs["axis"], len(shape))
        (index,) = known_sizes((attrs["index"],), types[1:])
        size = shape[axis]
        if isinstance(index, int) and isinstance(size, int) and not -size <= index < size:
            raise BoundsError(f"index {index} is out of bounds for axis {axis} with size {size}")
        return drop(shape, (axis,), keepdims=False)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        index = attrs["index"] if len(args) == 1 else operator.index(args[1])
        axis = attrs["axis"]
        if axis == 0:
            return args[0][index]
        return args[0][(*(slice(None),) * normalize_axis(axis, np.ndim(args[0])), index)]

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        if attrs["index"] == DYNAMIC:
            return None
        return at_key(*(slice(None),) * normalize_axis(attrs["axis"], rank), attrs["index"])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_sizes((attrs["index"],), len(types) - 1)
        yield from check_axis(attrs["axis"], types[0])

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = complete_shape(tensor_type(types[0]))
        size = shape[normalize_axis(attrs["axis"], len(shape))]
        prove_positive(size)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, index = args[0], attrs["index"]
        axis = normalize_axis(attrs["axis"], x.type.rank)
        size = complete_shape(x.type)[axis]
        starts: list[Any] = [0] * x.type.rank
        if index == DYNAMIC:
            position = b.scalar(args[1])
            forbid_outside(b, position, size)
            starts[axis] = clamped(b, position, size)
        else:
            starts[axis] = position_within(b, index, size)
        shape = tuple(1 if k == axis else d for k, d in enumerate(x.type.shape))
        row = b.slice(x, starts, (1,) * x.type.rank, TensorType(x.dtype, shape))
        return b.squeeze(row, (axis,))
