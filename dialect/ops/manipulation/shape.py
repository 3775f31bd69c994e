"""Ops that rearrange sizes without touching an element: reshape, squeeze, broadcast_to, …

Tier 0 returns NumPy's views.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...ir.attrs import BOOL, DYNAMIC, I64_ARRAY
from ...ir.op import Attrs, Emit, Failure, Values, View, attr, operand, result
from ...ir.types import MaybeDim, Shape, TensorType, Type
from ..broadcast import shape_text
from ..sizes import (
    check_axes,
    check_shape,
    check_sizes,
    complete_shape,
    drop,
    known_sizes,
    nonnegative,
    normalize_axes,
    product,
    prove_equal,
    runtime_sizes,
    tensor_type,
)
from ..structural import Structural, at_key

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder


def reshape_back(emit: Emit, view: View) -> Any:
    """The new elements of a view in the shape of its base, the rank of which must be known."""
    assert view.rank is not None
    sizes = [emit("dim", [view.base], {"axis": axis})[0] for axis in range(view.rank)]
    return emit("reshape", [view.new, *sizes], {"shape": (DYNAMIC,) * view.rank})[0]


class Reshape(Structural, name="reshape"):
    """`numpy.reshape` in C order; one size may be -1. Raises ShapeError if the sizes do not fit."""

    exact = True
    aliases = {0: 0}
    layout_decides = True
    x = operand()
    sizes = operand(variadic=True)
    out = result()
    shape = attr(I64_ARRAY)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return np.reshape(g, np.shape(xs[0]))

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        target = known_sizes(attrs["shape"], types[1:])
        shape = tensor_type(types[0]).shape
        total = None if shape is None else product(shape)
        holes = [k for k, d in enumerate(target) if isinstance(d, int) and d == -1]
        if len(holes) > 1:
            raise ShapeError("can only specify one unknown dimension")
        others = product(d for k, d in enumerate(target) if k not in holes)
        nonnegative([d for k, d in enumerate(target) if k not in holes])
        if isinstance(total, int) and isinstance(others, int):
            fits = (others != 0 and total % others == 0) if holes else total == others
            if not fits:
                text = shape_text(target).replace("-1", "newaxis")
                raise ShapeError(f"cannot reshape array of size {total} into shape {text}")
        if not holes:
            return target
        inferred = None if total is None or others is None or others == 0 else total // others
        return tuple(inferred if k in holes else d for k, d in enumerate(target))

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        return reshape_back(emit, view)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.reshape(args[0], runtime_sizes(attrs["shape"], args[1:]))

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        return None if DYNAMIC in attrs["shape"] else operator.methodcaller("reshape", tuple(attrs["shape"]))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_sizes(attrs["shape"], len(types) - 1)
        if any(d < -1 and d != DYNAMIC for d in attrs["shape"]):
            yield f"shape {list(attrs['shape'])} has a negative size other than -1"

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape, target = tensor_type(types[0]).shape, cls.result_shape(types, attrs)
        assert shape is not None and target is not None
        prove_equal(product(shape), product(target), "reshape keeps the number of elements")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        assert isinstance(types[0], TensorType)
        return b.reshape(args[0], types[0])


class Squeeze(Structural, name="squeeze"):
    """Drop axes of size 1: those given, or all that there are.

    Raises ShapeError for an axis of another size. Without ``axes`` the rank of the result is
    known only where every size is.
    """

    exact = True
    aliases = {0: 0}
    x = operand()
    out = result()
    axes = attr(I64_ARRAY, default=None)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return np.reshape(g, np.shape(xs[0]))

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        axes = attrs.get("axes")
        if axes is None:
            return reshape_back(emit, view)
        return emit("expand_dims", [view.new], {"axes": axes})[0]

    @classmethod
    def dropped(cls, shape: Shape, attrs: Attrs) -> tuple[int, ...]:
        """Axes that go, counted from the front."""
        if attrs.get("axes") is None:
            return tuple(k for k, d in enumerate(shape) if isinstance(d, int) and d == 1)
        axes = normalize_axes(attrs["axes"], len(shape), "duplicate value in 'axis'")
        if any(isinstance(shape[a], int) and shape[a] != 1 for a in axes):
            raise ShapeError("cannot select an axis to squeeze out which has size not equal to one")
        return axes

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        if attrs.get("axes") is None and not all(isinstance(d, int) for d in shape):
            return None
        return drop(shape, cls.dropped(shape, attrs), keepdims=False)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        axes = attrs.get("axes")
        return np.squeeze(args[0], None if axes is None else tuple(axes))

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        axes = attrs.get("axes")
        return operator.methodcaller("squeeze", None if axes is None else tuple(axes))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_axes(attrs.get("axes"), types[0])

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        shape = complete_shape(tensor_type(types[0]))
        for axis in cls.dropped(shape, attrs):
            prove_equal(shape[axis], 1, "squeeze drops axes of size 1")

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        return b.squeeze(args[0], cls.dropped(complete_shape(args[0].type), attrs))


class ExpandDims(Structural, name="expand_dims"):
    """`numpy.expand_dims`: ``axes`` name the new axes of size 1 in the result."""

    exact = True
    aliases = {0: 0}
    failure = Failure.NEVER
    x = operand()
    out = result()
    axes = attr(I64_ARRAY)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return np.squeeze(g, tuple(attrs["axes"]))

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        return emit("squeeze", [view.new], {"axes": attrs["axes"]})[0]

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        return expanded(shape, attrs["axes"])

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.expand_dims(args[0], tuple(attrs["axes"]))

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        count = rank + len(attrs["axes"])
        axes = normalize_axes(attrs["axes"], count)
        return at_key(*(None if k in axes else slice(None) for k in range(count))) if axes else None

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_axes(attrs["axes"], types[0], extra=len(attrs["axes"]))

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        rank = args[0].type.rank + len(attrs["axes"])
        return b.expand_dims(args[0], tuple(sorted(normalize_axes(attrs["axes"], rank))))


def expanded(shape: Shape, axes: Sequence[int]) -> Shape:
    """``shape`` with new sizes of 1, the places of which in the result ``axes`` name. Raises AxisError, ShapeError."""
    rank = len(shape) + len(axes)
    places, rest = normalize_axes(axes, rank), iter(shape)
    return tuple(1 if k in places else next(rest) for k in range(rank))


class BroadcastTo(Structural, name="broadcast_to"):
    """`numpy.broadcast_to`. Raises ShapeError for sizes that do not broadcast.

    ``implicit``: an importer spelt out what elementwise users do themselves (`remove-expand`).
    """

    exact = True
    aliases = {0: 0}
    x = operand()
    sizes = operand(variadic=True)
    out = result()
    shape = attr(I64_ARRAY)
    implicit = attr(BOOL, default=False)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.like(g, xs[0])

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        target = nonnegative(known_sizes(attrs["shape"], types[1:]))
        shape = tensor_type(types[0]).shape
        if shape is None:
            return target
        check_broadcast(shape, target)
        return target

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.broadcast_to(args[0], runtime_sizes(attrs["shape"], args[1:]))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_shape(attrs["shape"], len(types) - 1)

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        target = cls.result_shape(types, attrs)
        assert target is not None
        prove_broadcast(complete_shape(tensor_type(types[0])), target)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        assert isinstance(types[0], TensorType)
        return b.broadcast(args[0], types[0])


def check_broadcast(given: Shape, target: Shape) -> None:
    """Raise ShapeError if a tensor of shape ``given`` can never broadcast to ``target``."""
    if len(given) > len(target):
        raise ShapeError("input operand has more dimensions than allowed by the axis remapping")
    if any(
        isinstance(size, int) and isinstance(expected, int) and size not in (1, expected)
        for size, expected in _aligned(given, target)
    ):
        raise ShapeError(
            "operands could not be broadcast together with remapped shapes "
            f"[original->remapped]: {shape_text(given)}  and requested shape {shape_text(target)}"
        )


def prove_broadcast(given: Shape, target: Shape) -> None:
    """Raise LoweringError unless ``given`` provably broadcasts to ``target``."""
    for size, expected in _aligned(given, target):
        if size != 1:
            prove_equal(size, expected, "only axes of size 1 are repeated")


def _aligned(given: Shape, target: Shape) -> Iterator[tuple[MaybeDim, MaybeDim]]:
    return zip(given, target[len(target) - len(given) :], strict=True)


class Flip(Structural, name="flip"):
    """`numpy.flip`; without ``axes`` all of them."""

    aliases = {0: 0}
    x = operand()
    out = result()
    axes = attr(I64_ARRAY, default=None)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return np.flip(g, attrs["axes"])

    @classmethod
    def put_back(cls, emit: Emit, attrs: Attrs, view: View) -> Any:
        return emit("flip", [view.new], attrs)[0]

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is not None:
            normalize_axes(attrs.get("axes"), len(shape))
        return shape

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.flip(args[0], attrs.get("axes"))

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        axes = normalize_axes(attrs.get("axes"), rank)
        return at_key(*(slice(None, None, -1 if k in axes else None) for k in range(rank)))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_axes(attrs.get("axes"), types[0])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        return b.flip(args[0], normalize_axes(attrs.get("axes"), args[0].type.rank))
