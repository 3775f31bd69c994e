"""ONNX's operators that take elements by index, put them there, search and sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....errors import TraceError
from ...array_values import constant_or_created, grid, is_number, is_size, item_of, owned, sortable, taken
from ...size_values import as_array, as_number, as_size
from ..onnx_table import NodeResults, onnx_op
from .onnx_casts import cast


def _gather_sizes(call: Any, x: Any, indices: Any, /, *, axis: int) -> Any:
    if not isinstance(x, tuple) or axis not in (0, -1):
        return NotImplemented
    if isinstance(indices, tuple):
        return tuple(x[as_number(k)] for k in indices)
    return x[as_number(indices)]


@onnx_op("Gather", sizes=_gather_sizes)
def _gather(call: Any, x: Any, indices: Any, /, *, axis: int = 0) -> Any:
    if is_number(indices):
        # One place that is known is a view.
        return x[(*(slice(None),) * (axis % x.ndim), int(indices))]
    return taken(x, indices, axis=axis)


@onnx_op("GatherElements")
def _gather_elements(call: Any, x: Any, indices: Any, /, *, axis: int = 0) -> Any:
    return _part(x, indices, axis)


def _part(x: Any, indices: Any, axis: int) -> Any:
    return item_of(x, grid(indices, axis % x.ndim))


@onnx_op("GatherND")
def _gather_nd(call: Any, x: Any, indices: Any, /, *, batch_dims: int = 0) -> Any:
    depth = int(indices.shape[-1])
    keys: list[Any] = []
    for k in range(batch_dims):
        shape = [1] * (indices.ndim - 1)
        shape[k] = -1
        keys.append(np.reshape(constant_or_created("arange", indices.shape[k]), shape))
    keys += [indices[..., k] for k in range(depth)]
    return item_of(x, tuple(keys))


def _put(x: Any, keys: tuple[Any, ...], updates: Any, reduction: str) -> Any:
    """``x`` with updates at these places; repeated places are met in order."""
    y = owned(x)
    if reduction == "none":
        y[keys] = updates
        return y
    if reduction == "add":
        np.add.at(y, keys, updates)
        return y
    ufuncs: dict[str, Any] = {"mul": np.multiply, "max": np.maximum, "min": np.minimum}
    if reduction not in ufuncs:
        raise TraceError(f"the reduction {reduction!r} is not supported")
    ufuncs[reduction].at(y, keys, updates)
    return y


@onnx_op("ScatterElements", "Scatter")
def _scatter_elements(
    call: Any, x: Any, indices: Any, updates: Any, /, *, axis: int = 0, reduction: str = "none"
) -> Any:
    return _put(x, grid(indices, axis % x.ndim), updates, reduction)


@onnx_op("ScatterND")
def _scatter_nd(call: Any, x: Any, indices: Any, updates: Any, /, *, reduction: str = "none") -> Any:
    depth = int(indices.shape[-1])
    return _put(x, tuple(indices[..., k] for k in range(depth)), updates, reduction)


@onnx_op("TensorScatter")
def _tensor_scatter(
    call: Any, past: Any, update: Any, write_indices: Any = None, /, *, axis: int = -2, mode: str = "linear"
) -> Any:
    at = axis % past.ndim
    steps = constant_or_created("arange", update.shape[at])
    starts = np.zeros((past.shape[0],), np.int64) if write_indices is None else write_indices
    places = np.reshape(starts, (-1, 1)) + steps
    if mode == "circular":
        places = np.remainder(places, past.shape[at])
    shape = [1] * past.ndim
    shape[0], shape[at] = past.shape[0], update.shape[at]
    keys = list(grid(update, at))
    keys[at] = np.reshape(places, tuple(shape))
    return _put(past, tuple(keys), update, "none")


@onnx_op("OneHot", whole=True)
def _one_hot(call: Any, indices: Any, depth: Any, values: Any, /, *, axis: int = -1) -> Any:
    indices, values = as_array(indices), as_array(values)
    size = as_size(depth) if is_size(depth) else as_size(np.reshape(cast(depth, np.dtype(np.int64)), (-1,)))
    at = axis % (indices.ndim + 1)
    whole = indices if indices.dtype.kind == "i" else indices.astype(np.int64)
    whole = np.expand_dims(np.where(whole < 0, whole + size, whole), at)
    shape = [1] * (indices.ndim + 1)
    shape[at] = -1
    hot = np.equal(whole, np.reshape(constant_or_created("arange", size), shape))
    return np.where(hot, values[1], values[0])


@onnx_op("Compress")
def _compress(call: Any, x: Any, condition: Any, /, *, axis: int | None = None) -> Any:
    places = np.nonzero(condition)[0]
    if axis is None:
        return taken(np.reshape(x, (-1,)), places, axis=0)
    return taken(x, places, axis=axis)


@onnx_op("NonZero")
def _non_zero(call: Any, x: Any, /) -> Any:
    if x.ndim == 0:
        x = np.reshape(x, (1,))
    return np.stack(np.nonzero(x))


@onnx_op("TopK", kept=(1,))
def _top_k(
    call: Any, x: Any, count: Any = None, /, *, axis: int = -1, k: int | None = None, largest: int = 1, sorted: int = 1
) -> Any:
    at = axis % x.ndim
    number = as_size(count) if k is None else k
    keys = sortable(x)
    # Equal elements come in the order of their indices.
    if largest:
        order = np.flip(x.shape[at] - 1 - np.argsort(np.flip(keys, at), axis=at, stable=True), at)
    else:
        order = np.argsort(keys, axis=at, stable=True)
    order = order[(*(slice(None),) * at, slice(0, number))]
    return NodeResults((np.take_along_axis(x, order, at), order))


@onnx_op("Unique")
def _unique(call: Any, x: Any, /, *, axis: int | None = None, sorted: int = 1) -> Any:
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = np.reshape(inverse, (-1,))
    if not sorted:
        order = np.argsort(first, stable=True)
        ranks = np.argsort(order, stable=True)
        values = taken(values, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], ranks[inverse]
    return NodeResults((values, first, inverse, counts))


@onnx_op("ai.onnx.ml.ArrayFeatureExtractor")
def _array_feature_extractor(call: Any, x: Any, indices: Any, /) -> Any:
    columns = taken(x, np.reshape(indices, (-1,)), axis=-1)
    return np.reshape(columns, (1, -1)) if x.ndim == 1 else columns
