"""Sizes of results that many functions have in common, from the sizes of their arguments."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.types import MaybeDim, Shape
from ..sizes import normalize_axis, product
from .rule import BoundCall, Shapes

ShapeRule = Callable[[BoundCall], "Shapes | None"]


def same(*names: str) -> ShapeRule:
    """A rule: the results have the sizes of these arguments."""
    return lambda call: [call.shape(name) for name in names]


def along(name: str, axis: str = "axis") -> ShapeRule:
    """A rule: one result with the sizes of an array, or as many elements where no axis is given."""

    def shapes(call: BoundCall) -> Shapes | None:
        shape = call.shape(name)
        if shape is None:
            return None
        return [shape if call[axis] is not None else (product(shape),)]

    return shapes


def replaced(shape: Shape | None, axis: int, size: MaybeDim) -> Shape | None:
    """Sizes with another one along an axis; raises AxisError."""
    if shape is None:
        return None
    sizes = list(shape)
    sizes[normalize_axis(axis, len(shape))] = size
    return tuple(sizes)


def reduced(shape: Shape | None, axis: object, keepdims: object) -> Shape | None:
    """Sizes of what a reduction makes of an array; raises AxisError."""
    if shape is None:
        return None
    rank = len(shape)
    if axis is None:
        axes = set(range(rank))
    else:
        listed = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = {normalize_axis(int(a), rank) for a in listed}
    keeps = keepdims is True
    return tuple(1 if k in axes else d for k, d in enumerate(shape) if keeps or k not in axes)
