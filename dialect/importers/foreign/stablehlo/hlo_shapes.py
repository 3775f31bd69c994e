"""Shapes, slices, joins and padding in StableHLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import TraceError
from ..array_values import constant_or_created, is_size, owned, taken
from ..interpreter import NodeContext
from ..size_values import as_array
from .hlo_elementwise import STABLEHLO
from .hlo_values import arrays, in_trace, settled_size, settled_sizes, sizes_of

_WIDE = np.dtype(np.int64)


def shape_of(call: NodeContext, sizes: Any = None) -> tuple:
    """The sizes of the result: the given ones, or those of its type; raises TraceError for unknown ones."""
    if sizes is not None:
        return settled_sizes(sizes)
    assert call.type is not None and call.type.shape is not None
    if None in call.type.shape:
        raise TraceError(f"{call.node.op} gives sizes that its type does not tell")
    return call.type.shape


def _as_array(call: NodeContext, x: Any) -> Any:
    """An operand as an array; sizes get the dtype of the result."""
    assert call.type is not None and call.type.dtype is not None
    return as_array(x, call.type.dtype)


@STABLEHLO.register("stablehlo.broadcast_in_dim")
def _broadcast_in_dim(call: NodeContext, x: Any, *, broadcast_dimensions: tuple[int, ...]) -> Any:
    shape = shape_of(call)
    if is_size(x) and type(x) is not tuple and shape == (1,):
        return (x,)
    return broadcast_in_dim(_as_array(call, x), shape, broadcast_dimensions)


@STABLEHLO.register("stablehlo.dynamic_broadcast_in_dim")
def _dynamic_broadcast_in_dim(
    call: NodeContext, x: Any, sizes: Any, *, broadcast_dimensions: tuple[int, ...], **_: Any
) -> Any:
    return broadcast_in_dim(_as_array(call, x), settled_sizes(sizes), broadcast_dimensions)


def broadcast_in_dim(x: Any, shape: Sequence[Any], axes: Sequence[int]) -> Any:
    """``x``, whose axes are these of the result, repeated along the others."""
    between = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        between[axis] = size
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    x = in_trace(x, tuple(shape))
    ordered = np.transpose(x, order) if order != list(range(len(axes))) else x
    return np.broadcast_to(np.reshape(ordered, tuple(between)), tuple(shape))


@STABLEHLO.register("stablehlo.reshape")
def _reshape(call: NodeContext, x: Any) -> Any:
    shape = shape_of(call)
    if is_size(x) and shape in ((), (1,)):
        scalar = x[0] if type(x) is tuple else x
        return (scalar,) if shape else scalar
    return np.reshape(_as_array(call, x), shape)


@STABLEHLO.register("stablehlo.dynamic_reshape")
def _dynamic_reshape(call: NodeContext, x: Any, sizes: Any) -> Any:
    shape = settled_sizes(sizes)
    return np.reshape(in_trace(_as_array(call, x), shape), shape)


@STABLEHLO.register("stablehlo.get_dimension_size")
def _get_dimension_size(call: NodeContext, x: Any, *, dimension: int) -> Any:
    return x.shape[dimension]


@STABLEHLO.register("stablehlo.transpose")
def _transpose(call: NodeContext, x: Any, *, permutation: tuple[int, ...], **_: Any) -> Any:
    return np.transpose(_as_array(call, x), permutation)


@STABLEHLO.register("stablehlo.reverse")
def _reverse(call: NodeContext, x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return np.flip(_as_array(call, x), dimensions) if dimensions else x


@STABLEHLO.register("stablehlo.slice")
def _slice(
    call: NodeContext,
    x: Any,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...],
) -> Any:
    if type(x) is tuple:
        return x[start_indices[0] : limit_indices[0] : strides[0]]
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


@STABLEHLO.register("stablehlo.real_dynamic_slice")
def _real_dynamic_slice(call: NodeContext, x: Any, starts: Any, limits: Any, strides: Any) -> Any:
    bounds = zip(settled_sizes(starts), settled_sizes(limits), settled_sizes(strides), strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


@STABLEHLO.register("stablehlo.concatenate")
def _concatenate(call: NodeContext, *parts: Any, dimension: int) -> Any:
    if any(type(part) is tuple for part in parts):
        return tuple(size for part in parts for size in settled_sizes(part))
    return np.concatenate(arrays(parts), dimension)


@STABLEHLO.register("stablehlo.pad")
def _pad(
    call: NodeContext,
    x: Any,
    value: Any,
    *,
    edge_padding_low: tuple[int, ...],
    edge_padding_high: tuple[int, ...],
    interior_padding: tuple[int, ...],
) -> Any:
    return padded(_as_array(call, x), value, edge_padding_low, edge_padding_high, interior_padding)


@STABLEHLO.register("stablehlo.dynamic_pad")
def _dynamic_pad(call: NodeContext, x: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
    return padded(x, value, settled_sizes(low), settled_sizes(high), settled_sizes(interior))


def padded(x: Any, value: Any, low: Sequence[Any], high: Sequence[Any], interior: Sequence[Any]) -> Any:
    """``x`` with a value between its elements and around them; widths below 0 cut elements off."""
    for axis, count in enumerate(interior):
        if count:
            x = _spread(x, value, axis, count)
    for widths in (low, high):
        if not all(type(width) is int for width in widths):
            raise TraceError("padding by widths that depend on sizes of arguments is not supported")
    outer = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    if any(map(any, outer)):
        x = np.pad(x, outer, constant_values=value)
    if any(a < 0 or b < 0 for a, b in zip(low, high, strict=True)):
        x = x[tuple(slice(max(-a, 0), x.shape[d] - max(-b, 0)) for d, (a, b) in enumerate(zip(low, high, strict=True)))]
    return x


def _spread(x: Any, value: Any, axis: int, count: int) -> Any:
    """``x`` with ``count`` elements of a value between neighbours along an axis."""
    size = x.shape[axis]
    if size < 2:
        return x
    widths = [(0, 0)] * (x.ndim + 1)
    widths[axis + 1] = (0, count)
    wide = np.pad(np.expand_dims(x, axis + 1), widths, constant_values=value)
    merged = np.reshape(wide, (*x.shape[:axis], size * (count + 1), *x.shape[axis + 1 :]))
    return merged[(slice(None),) * axis + (slice(0, size * (count + 1) - count),)]


@STABLEHLO.register("stablehlo.dynamic_slice")
def _dynamic_slice(call: NodeContext, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    """A part that begins where it still lies inside."""
    for axis, (size, start, count) in enumerate(zip(sizes_of(call, 0, x), starts, slice_sizes, strict=True)):
        if size == count:
            continue
        if count == 1:  # of one index, which has no axis, loops know the place
            x = np.expand_dims(taken(x, place_of(size, start, 1), axis), axis)
        else:
            x = taken(x, window_of(size, start, count), axis)
    return x


@STABLEHLO.register("stablehlo.dynamic_update_slice")
def _dynamic_update_slice(call: NodeContext, x: Any, update: Any, *starts: Any) -> Any:
    """A copy with another part, which begins where it still lies inside."""
    x, update = arrays((x, update))
    key, shape = window_key(sizes_of(call, 0, x), sizes_of(call, 1, update), starts)
    if not key:
        return update
    result = owned(x)
    result[key] = np.reshape(update, shape)
    return result


def window_key(shape: Sequence[Any], counts: Sequence[Any], starts: Sequence[Any]) -> tuple[tuple, tuple]:
    """The key of a window of an array, and the shape of what it picks.

    Axes of which the window has one index are not in that shape, and axes of which it has all have no index in the
    key: loops replace such rows where they are. Nothing is left of a key for the whole array.

    Args:
        shape: of the array.
        counts: of the window, for each axis.
        starts: where it begins on each axis; one that reaches outside is moved inside.
    """
    parts = [axis for axis in range(len(shape)) if shape[axis] != counts[axis]]
    if not parts:
        return (), tuple(counts)
    first, last = parts[0], parts[-1]  # index arrays stand side by side, so that axes stay in their order
    wide = [axis for axis in range(first, last + 1) if not _is_one(counts[axis])]
    key: list[Any] = [slice(None)] * first
    for axis in range(first, last + 1):
        size, count = shape[axis], counts[axis]
        if axis not in wide:
            key.append(place_of(size, starts[axis], 1))
            continue
        window = window_of(size, starts[axis], count) if axis in parts else constant_or_created("arange", size)
        key.append(np.reshape(window, tuple(-1 if k == axis else 1 for k in wide)))
    return tuple(key), tuple(counts[k] for k in range(len(shape)) if not first <= k <= last or k in wide)


def _is_one(count: Any) -> bool:
    return type(count) is int and count == 1


def place_of(size: Any, start: Any, count: Any) -> Any:
    """The first position of a window in an axis, as an array without axes; one that reaches outside is moved inside."""
    first = np.minimum(np.maximum(_position(start), 0), size - count)
    return as_array(first, _WIDE) if is_size(first) else first.astype(_WIDE)


def window_of(size: Any, start: Any, count: Any) -> Any:
    """The positions of a window in an axis; windows that would reach outside are moved inside."""
    return place_of(size, start, count) + constant_or_created("arange", count)


def _position(start: Any) -> Any:
    return settled_size(start) if is_size(start) else start
