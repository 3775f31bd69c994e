"""Gather and scatter of StableHLO, as NumPy's index arrays.

For each axis of the operand an array of positions is made, such that the arrays broadcast to the
shape of the result (of the updates): an axis that is collapsed has the start that was given, another
one adds its position in the window.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import TraceError
from ..array_values import captured, constant_or_created, is_constant, owned
from ..foreign_graph import ValueRef
from ..interpreter import NodeContext
from .hlo_elementwise import STABLEHLO
from .hlo_reductions import combination
from .hlo_shapes import window_key
from .hlo_values import arrays, settled_sizes, sizes_of

_WIDE = np.int64


@STABLEHLO.register("stablehlo.gather", "stablehlo.dynamic_gather")
def _gather(
    call: NodeContext,
    x: Any,
    starts: Any,
    sizes: Any = None,
    *,
    dimension_numbers: dict[str, Any],
    slice_sizes: tuple[int, ...] = (),
    **_: Any,
) -> Any:
    if sizes is not None:
        slice_sizes = settled_sizes(sizes)
    numbers = dimension_numbers
    offset = numbers.get("offset_dims", ())
    positions = _positions(
        x.shape,
        starts,
        slice_sizes,
        numbers.get("index_vector_dim", 0),
        offset,
        (*numbers.get("collapsed_slice_dims", ()), *numbers.get("operand_batching_dims", ())),
        numbers.get("start_index_map", ()),
        numbers.get("operand_batching_dims", ()),
        numbers.get("start_indices_batching_dims", ()),
        clamps=True,
    )
    axis = _only_axis(x, numbers, slice_sizes, offset, starts)
    if axis is not None:
        return np.take(x, np.clip(starts[..., 0].astype(_WIDE), 0, x.shape[axis] - 1), axis=axis)
    return x[tuple(positions)]


def _only_axis(x: Any, numbers: dict[str, Any], sizes: Sequence[int], offset: Sequence[int], starts: Any) -> int | None:
    """The axis of a `numpy.take` that the gather is; None = it is none."""
    mapped = numbers.get("start_index_map", ())
    if len(mapped) != 1 or numbers.get("collapsed_slice_dims", ()) != mapped or numbers.get("operand_batching_dims"):
        return None
    if numbers.get("index_vector_dim", 0) != starts.ndim - 1 or starts.shape[-1] != 1:
        return None
    (axis,) = mapped
    others = [d for d in range(x.ndim) if d != axis]
    is_whole = all(sizes[d] == x.shape[d] for d in others)
    count = starts.ndim - 1
    wanted = [d if d < axis else d - 1 + count for d in others]
    return axis if is_whole and list(offset) == wanted else None


def _positions(
    shape: Sequence[Any],
    starts: Any,
    sizes: Sequence[Any],
    vector_axis: int,
    window_axes: Sequence[int],
    dropped: Sequence[int],
    mapped: Sequence[int],
    batched: Sequence[int],
    batched_starts: Sequence[int],
    *,
    clamps: bool,
) -> list[Any]:
    """For each axis of the operand its positions, broadcasting to the result.

    Args:
        shape: of the operand.
        starts: the array of start positions.
        sizes: of the window, one for each axis of the operand.
        vector_axis: the axis of ``starts`` along which the starts of several axes lie.
        window_axes: the axes of the result that are axes of the window.
        dropped: the axes of the operand that the result does not have.
        mapped: the axis of the operand for each item along ``vector_axis``.
        batched, batched_starts: axes of the operand and of ``starts`` that go together.
        clamps: windows that reach outside are moved inside.
    """
    if vector_axis == starts.ndim:
        starts = np.expand_dims(starts, vector_axis)
    line = np.moveaxis(starts, vector_axis, -1).astype(_WIDE)
    rank = line.ndim - 1 + len(window_axes)
    batch_axes = [d for d in range(rank) if d not in window_axes]
    kept = [d for d in range(len(shape)) if d not in dropped]
    result = []
    for axis in range(len(shape)):
        position: Any = None
        if axis in mapped:
            start = line[..., list(mapped).index(axis)]
            if clamps:
                start = np.clip(start, 0, shape[axis] - sizes[axis])
            position = _placed(start, batch_axes, rank)
        elif axis in batched:
            of_starts = batched_starts[list(batched).index(axis)]
            of_starts -= of_starts > vector_axis
            position = _placed(constant_or_created("arange", shape[axis]), [batch_axes[of_starts]], rank)
        if axis in kept:
            inside = _placed(constant_or_created("arange", sizes[axis]), [window_axes[kept.index(axis)]], rank)
            position = inside if position is None else position + inside
        result.append(np.zeros((1,) * rank, _WIDE) if position is None else position)
    return result


def _placed(x: Any, axes: Sequence[int], rank: int) -> Any:
    """``x`` with its axes at these ones of an array of a rank, and axes of one element elsewhere."""
    shape: list[Any] = [1] * rank
    for axis, size in zip(axes, x.shape, strict=True):
        shape[axis] = size
    return np.reshape(x, tuple(shape))


@STABLEHLO.register("stablehlo.scatter")
def _scatter(call: NodeContext, *operands: Any, scatter_dimension_numbers: dict[str, Any], **_: Any) -> Any:
    """Updates at positions; those of windows that reach outside are left out."""
    if len(operands) != 3:
        raise TraceError("stablehlo.scatter into several arrays is not supported")
    numbers = scatter_dimension_numbers
    x, updates = arrays((operands[0], operands[2]))
    shape, of_updates = sizes_of(call, 0, x), sizes_of(call, 2, updates)
    (starts,) = arrays((operands[1],))
    window_axes = numbers.get("update_window_dims", ())
    dropped = (*numbers.get("inserted_window_dims", ()), *numbers.get("input_batching_dims", ()))
    kept = [d for d in range(x.ndim) if d not in dropped]
    sizes: list[Any] = [1] * x.ndim
    for axis, of_window in zip(kept, window_axes, strict=True):
        sizes[axis] = of_updates[of_window]
    mapped = numbers.get("scatter_dims_to_operand_dims", ())
    if not x.ndim:
        return _at_positions(call, np.reshape(x, (1,)), (np.zeros((1,), _WIDE),), np.reshape(updates, (1,)))[0]
    if len(window_axes) == updates.ndim:
        line = np.reshape(starts, (-1,))
        return _with_window(call, x, shape, sizes, {axis: line[k] for k, axis in enumerate(mapped)}, updates)

    def positions_of(head: int) -> tuple[list[Any], Any]:
        """The positions on the first axes, and which windows lie inside; None = all."""
        count = sum(d < head for d in kept)
        axes = _positions(
            shape[:head],
            starts,
            sizes[:head],
            numbers.get("index_vector_dim", 0),
            window_axes[:count],
            dropped,
            mapped,
            numbers.get("input_batching_dims", ()),
            numbers.get("scatter_indices_batching_dims", ()),
            clamps=False,
        )
        inside = [(axes[axis] >= 0) & (axes[axis] < shape[axis]) for axis in mapped]
        is_inside = functools.reduce(operator.and_, inside) if inside else None
        if is_inside is not None and any(sizes[d] != 1 for d in kept if d in mapped):
            whole = np.broadcast_to(is_inside, of_updates[: is_inside.ndim])
            is_inside = np.all(whole, axis=tuple(window_axes[:count]), keepdims=True)
        return axes, is_inside

    # Rows of the array stay rows, where those of the updates are.
    head = x.ndim
    while kept and head - 1 in kept and head - 1 not in mapped and sizes[head - 1] == shape[head - 1]:
        if window_axes[sum(d < head for d in kept) - 1] != updates.ndim - 1 - (x.ndim - head):
            break
        head -= 1
    positions, is_inside = positions_of(max(head, 1) if mapped else x.ndim)
    region = _region(call)
    is_known = is_inside is None or (is_constant(is_inside) and is_inside.all())
    if not is_known and region is None:
        count, tail = len(positions), shape[len(positions) :]
        flat: Any = 0
        for axis in range(count):
            flat = flat * shape[axis] + positions[axis]
        rows = functools.reduce(operator.mul, shape[:count])
        before = of_updates[: updates.ndim - len(tail)]
        flat = np.reshape(np.broadcast_to(np.where(is_inside, flat, rows), before), (-1,))
        left_out = constant_or_created("zeros", (1, *tail), x.dtype)
        line = np.concatenate([np.reshape(x, (rows, *tail)), left_out])
        updates = np.reshape(updates, (functools.reduce(operator.mul, before), *tail))
        result = _at_positions(call, line, (flat,), updates)
        return np.reshape(result[:rows], shape)
    if not is_known:
        assert region is not None
        columns = tuple(range(is_inside.ndim, updates.ndim))
        is_inside = np.expand_dims(is_inside, columns) if columns else is_inside
        updates = np.where(is_inside, updates, _neutral(region, x.dtype))
        positions = [np.clip(p, 0, shape[d] - 1) if d in mapped else p for d, p in enumerate(positions)]
    if not mapped:
        positions[0] = np.broadcast_to(positions[0], of_updates)
    return _at_positions(call, x, tuple(positions), updates)


def _with_window(
    call: NodeContext, x: Any, shape: Sequence[Any], sizes: Sequence[Any], places: dict[int, Any], updates: Any
) -> Any:
    """``x`` with one window combined in, which loops do in place; without, where it reaches outside.

    Args:
        call: the node, whose region combines.
        x: the array.
        shape: of ``x``.
        sizes: of the window, for each axis of ``x``.
        places: axis -> where the window begins, an array without axes; 0 on other axes.
        updates: the elements of the window, in the order of its axes.
    """
    region = _region(call)
    starts = [places.get(axis, np.zeros((), _WIDE)).astype(_WIDE) for axis in range(x.ndim)]
    key, part = window_key(shape, sizes, starts)
    new = np.reshape(updates, part)
    old = captured(x)[key] if key else x
    if region is not None:
        new = _UFUNCS[region](old, new)
    inside = [(starts[axis] >= 0) & (starts[axis] <= shape[axis] - sizes[axis]) for axis in places]
    if inside:
        is_inside = functools.reduce(operator.and_, inside)
        if not is_constant(is_inside) or not is_inside:
            new = np.where(is_inside, new, old)
    if not key:
        return new
    result = owned(x)
    result[key] = new
    return result


_UFUNCS: dict[str, np.ufunc] = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def _region(call: NodeContext) -> str | None:
    """The operation that combines an element with an update; None = the update replaces it.

    Raises TraceError for other regions.
    """
    block = call.node.blocks[0]
    if not block.nodes and block.outputs == (ValueRef(block.inputs[1]),):
        return None
    name, type_ = combination(block), call.type
    if name not in _UFUNCS or type_ is None or type_.dtype == np.bool_:
        raise TraceError("stablehlo.scatter with this region is not supported")
    return name


def _neutral(region: str, dtype: np.dtype) -> Any:
    """The update that changes no element, not even the sign of a zero."""
    if region == "add":
        return np.zeros((), dtype) if dtype.kind in "iu" else np.negative(np.zeros((), dtype))
    if region == "multiply":
        return np.ones((), dtype)
    if dtype.kind in "iu":
        return np.asarray(getattr(np.iinfo(dtype), "min" if region == "maximum" else "max"), dtype)
    return np.asarray(-np.inf if region == "maximum" else np.inf, dtype)


def _at_positions(call: NodeContext, x: Any, positions: tuple[Any, ...], updates: Any) -> Any:
    """A copy of ``x`` with the updates combined in at these positions, all of which are inside."""
    region = _region(call)
    result = owned(x)
    if region is None:
        result[positions] = updates
    else:
        _UFUNCS[region].at(result, positions, updates)
    return result
