"""Sliding windows: a view in which elements stand several times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...ir.attrs import DYNAMIC, I64_ARRAY
from ...ir.op import Attrs, Values, attr, operand, result
from ...ir.types import MaybeDim, Shape, TensorType, Type
from ..sizes import (
    check_axes,
    check_shape,
    complete_shape,
    known_sizes,
    nonnegative,
    normalize_axes,
    runtime_sizes,
    tensor_type,
)
from ..structural import Structural

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder


class Windows(Structural, name="windows"):
    """`numpy.lib.stride_tricks.sliding_window_view`: the windows along different axes of ``x``.

    Axis ``axes[k]`` of the result counts the places of a window, and the axes behind those of
    ``x`` have its elements. DYNAMIC entries of ``shape`` stand for the operands ``sizes``. Raises
    ShapeError for a window that is larger than the array.
    """

    aliases = {0: 0}
    x = operand()
    sizes = operand(variadic=True)
    out = result()
    shape = attr(I64_ARRAY)
    axes = attr(I64_ARRAY)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        rank, axes = np.ndim(xs[0]), normalize_axes(attrs["axes"], np.ndim(xs[0]))
        count = len(axes)
        # The axes of the windows go last, where most are: then nothing moves, and the result is in C order.
        last = tuple(range(rank - count, rank))
        moves = axes != last
        if moves:
            g = np.moveaxis(g, axes, last)
        sizes = np.shape(g)[rank - count :]
        places = []
        for axis in range(count):
            start, offset = _counted(b, sizes[axis]), _counted(b, sizes[count + axis])
            after = tuple(range(1, count - axis))
            start = np.expand_dims(start, tuple(range(1, 2 * count - axis)))
            offset = np.expand_dims(offset, after) if after else offset
            places.append(start + offset)
        moved = np.zeros_like(np.moveaxis(xs[0], axes, last) if moves else xs[0])
        added = b.op("index_add", moved, g, *places, axes=last)
        return np.moveaxis(added, last, axes) if moves else added

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        shape = tensor_type(types[0]).shape
        if shape is None:
            return None
        windows = nonnegative(known_sizes(attrs["shape"], types[1:]))
        sizes: list[MaybeDim] = list(shape)
        for axis, window in zip(normalize_axes(attrs["axes"], len(shape)), windows, strict=True):
            size = sizes[axis]
            room = None if size is None or window is None else size - window
            if isinstance(room, int) and room < 0:
                raise ShapeError("window shape cannot be larger than input array shape")
            sizes[axis] = None if room is None else room + 1
        return (*sizes, *windows)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        sizes = runtime_sizes(attrs["shape"], args[1:])
        return np.lib.stride_tricks.sliding_window_view(args[0], sizes, attrs["axes"])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        axes, shape = attrs["axes"], attrs["shape"]
        if len(axes) != len(shape):
            yield f"{len(axes)} axes but {len(shape)} windows"
        yield from check_shape(shape, len(types) - 1)
        yield from check_axes(axes, types[0])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        assert isinstance(types[0], TensorType)
        x = complete_shape(args[0].type)
        windows = complete_shape(types[0])[len(x) :]
        axes = normalize_axes(attrs["axes"], len(x))
        for axis, window in zip(axes, windows, strict=True):
            b.check_size(x[axis] - window)
        return b.windows(args[0], axes, types[0])


def _counted(b: GradientBuilder, size: Any) -> Any:
    """0, 1, 2, …: as many as a size says, which may be traced."""
    if type(size) is int:  # a traced one passes for an int
        return b.op("iota", shape=(size,))
    return b.op("iota", size, shape=(DYNAMIC,))
