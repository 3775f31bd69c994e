"""Gather and scatter of StableHLO, as NumPy's index arrays.

For each axis of the operand an array of positions is made, such that the arrays broadcast to the
shape of the result (of the updates): an axis that is collapsed has the start that was given, another
one adds its position in the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import TraceError
from ..array_values import constant_or_created, owned
from ..interpreter import NodeContext
from .hlo_elementwise import STABLEHLO
from .hlo_reductions import combination
from .hlo_values import arrays, settled_sizes

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
    starts = operands[1]
    window_axes = numbers.get("update_window_dims", ())
    dropped = (*numbers.get("inserted_window_dims", ()), *numbers.get("input_batching_dims", ()))
    kept = [d for d in range(x.ndim) if d not in dropped]
    sizes: list[Any] = [1] * x.ndim
    for axis, of_updates in zip(kept, window_axes, strict=True):
        sizes[axis] = updates.shape[of_updates]
    mapped = numbers.get("scatter_dims_to_operand_dims", ())
    if not x.ndim:
        return _combined(call, np.reshape(x, (1,)), np.zeros((1,), _WIDE), np.reshape(updates, (1,)))[0]
    positions = _positions(
        x.shape,
        starts,
        sizes,
        numbers.get("index_vector_dim", 0),
        window_axes,
        dropped,
        mapped,
        numbers.get("input_batching_dims", ()),
        numbers.get("scatter_indices_batching_dims", ()),
        clamps=False,
    )
    flat: Any = 0
    is_inside: Any = None
    for axis in range(x.ndim):
        flat = flat * x.shape[axis] + positions[axis]
        if axis in mapped:
            inside = (positions[axis] >= 0) & (positions[axis] < x.shape[axis])
            is_inside = inside if is_inside is None else is_inside & inside
    if is_inside is not None:
        window = tuple(window_axes)
        whole = is_inside
        if any(sizes[d] != 1 for d in kept if d in mapped):
            whole = np.all(np.broadcast_to(is_inside, updates.shape), axis=window, keepdims=True)
        flat = np.where(whole, flat, x.size)
    flat = np.reshape(np.broadcast_to(flat, updates.shape), (-1,))
    line = np.concatenate([np.reshape(x, (-1,)), np.zeros((1,), x.dtype)])  # the last takes what is left out
    result = _combined(call, line, flat, np.reshape(updates, (-1,)))
    return np.reshape(result[: x.size], x.shape)


def _combined(call: NodeContext, line: Any, indices: Any, updates: Any) -> Any:
    """A copy of ``line`` with the updates combined in, as the region says."""
    block = call.node.blocks[0]
    name = combination(block)
    result = owned(line)
    if not block.nodes and block.outputs[0].number == block.inputs[1]:
        result[indices] = updates
        return result
    ufuncs = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
    if name not in ufuncs or line.dtype == np.bool_:
        raise TraceError("stablehlo.scatter with this region is not supported")
    ufuncs[name].at(result, indices, updates)
    return result
