"""Indexing, gathering and scattering, and what sorts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....numpy.neural.layer_inputs import detached
from ....numpy.neural.projections import embedding as nn_embedding
from ....numpy.neural.projections import in_range
from ....numpy.tracing.handler_tables import created
from ...array_values import grid, sortable
from ...on_host import on_host
from ..aten_table import aten, refuse
from ..dimensions import axis_of
from ..promotion import BOOL, INT64, cast, is_float, is_integral, is_tensor


def _key(indices: Any) -> tuple[Any, ...]:
    """The index of NumPy; None takes a whole axis, bytes are masks."""
    return tuple(
        slice(None) if i is None else cast(i, BOOL) if i.dtype == np.uint8 else i if i.dtype == BOOL else cast(i, INT64)
        for i in indices
    )


@aten("index", "_unsafe_index")
def index(self: Any, indices: Any) -> Any:
    return self[_key(indices)]


@aten("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(self: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    if accumulate and any(i is not None and i.dtype in (BOOL, np.uint8) for i in indices):
        if len(indices) == 1 and not values.ndim and self.dtype != BOOL:
            mask = cast(indices[0], BOOL)
            return np.where(np.reshape(mask, (*mask.shape, *(1,) * (self.ndim - mask.ndim))), self + values, self)
        raise refuse("index_put", "with accumulate and a mask", "use where")
    return _combined(self, _key(indices), cast(values, self.dtype), "add" if accumulate else None)


@aten("index_select")
def index_select(self: Any, dim: int, index: Any) -> Any:
    if not self.ndim:
        return np.reshape(np.reshape(self, (1,))[cast(index, INT64)], index.shape and ())
    where_ = cast(index if index.ndim else np.reshape(index, (1,)), INT64)
    axis = axis_of(dim, self.ndim)
    return np.take(self, in_range("index_select", "index", where_, self.shape[axis]), axis=axis)


@aten("take")
def take(self: Any, index: Any) -> Any:
    return np.reshape(self, (-1,))[index]


@aten("embedding")
def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    if scale_grad_by_freq:
        raise refuse("embedding", "with gradients scaled by frequency")
    return nn_embedding(cast(indices, INT64), weight, padding_idx if padding_idx >= 0 else None)


def _with_axis(*arrays: Any) -> tuple[Any, ...]:
    """Tensors without axes as such with one of size 1."""
    return tuple(np.reshape(x, (1,)) if is_tensor(x) and not x.ndim else x for x in arrays)


@aten("gather")
def gather(self: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    x, at = _with_axis(self, index)
    if _is_empty(at):
        return np.zeros_like(index, dtype=self.dtype)
    axis = axis_of(dim, x.ndim)
    at = in_range("gather", "index", cast(at, INT64), x.shape[axis])
    cut = tuple(
        slice(None) if k == axis or _are_equal(x.shape[k], at.shape[k]) else slice(0, at.shape[k])
        for k in range(x.ndim)
    )
    y = np.take_along_axis(x if all(c == slice(None) for c in cut) else x[cut], at, axis)
    return y if index.ndim else np.reshape(y, ())


def _is_empty(x: Any) -> bool:
    """True for a tensor that is known to have no elements; of one whose sizes only a run tells that is not known."""
    return not getattr(x.size, "is_open", False) and not int(x.size)


def _are_equal(a: Any, b: Any) -> bool:
    """True for sizes that are known to be equal."""
    equal = a == b
    return not getattr(equal, "is_open", False) and bool(equal)


def _source(src: Any, index: Any, dtype: Any) -> Any:
    """The part of ``src`` that ``index`` has a place for; a number as a tensor."""
    if not is_tensor(src) or not src.ndim:
        return np.broadcast_to(cast(src, dtype), tuple(index.shape))
    return cast(src[tuple(slice(0, size) for size in index.shape)], dtype)


_COMBINED: dict[str, Any] = {
    "add": np.add,
    "sum": np.add,
    "mean": np.add,
    "multiply": np.multiply,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _combined(self: Any, key: tuple[Any, ...], new: Any, reduce: str | None, *, include_self: bool = True) -> Any:
    """A copy of ``self`` with ``new`` at the places of an index, written or combined with what is there."""
    if reduce is None:
        out = np.copy(self)
        out[key] = new
        return out
    if self.dtype == BOOL:  # as numbers, of which those that are not 0 are true
        numbers = _combined(cast(self, INT64), key, cast(new, INT64), reduce, include_self=include_self)
        return numbers != 0
    out = np.copy(self)
    if not include_self:
        out[key] = _identity(reduce, self.dtype)
    _COMBINED[reduce].at(out, key, new)
    if reduce != "mean":
        return out
    counts = np.zeros_like(self)
    np.add.at(counts, key, np.ones_like(new))
    if include_self:
        counts = counts + cast(1, counts.dtype)
    counts = np.maximum(counts, cast(1, counts.dtype))
    return np.floor_divide(out, counts) if is_integral(out.dtype) else out / counts


def _identity(reduce: str, dtype: np.dtype) -> Any:
    """What a combination leaves as it is."""
    if reduce not in ("amax", "amin"):
        return cast(1 if _COMBINED[reduce] is np.multiply else 0, dtype)
    if is_integral(dtype):
        limits = np.iinfo(dtype)
        return cast(limits.min if reduce == "amax" else limits.max, dtype)
    return cast(-np.inf if reduce == "amax" else np.inf, dtype)


def scattered(
    self: Any, dim: int, index: Any, src: Any, reduce: str | None = None, *, include_self: bool = True
) -> Any:
    """A copy of ``self`` with elements of ``src`` at the places of ``index``, written or combined."""
    x, at = _with_axis(self, index)
    if _is_empty(at):
        return np.copy(self)
    axis = axis_of(dim, x.ndim)
    key = grid(in_range("scatter", "index", cast(at, INT64), x.shape[axis]), axis)
    out = _combined(x, key, _source(src, at, self.dtype), reduce, include_self=include_self)
    return out if self.ndim else np.reshape(out, ())


@aten("scatter")
def scatter(self: Any, dim: int, index: Any, src: Any = None, value: Any = None, *, reduce: str | None = None) -> Any:
    return scattered(self, dim, index, value if src is None else src, reduce)


@aten("scatter_add")
def scatter_add(self: Any, dim: int, index: Any, src: Any) -> Any:
    return scattered(self, dim, index, src, "add")


@aten("scatter_reduce")
def scatter_reduce(self: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    return scattered(self, dim, index, src, reduce, include_self=include_self)


def _indexed(self: Any, dim: int, index: Any, new: Any, reduce: str | None = None, *, include_self: bool = True) -> Any:
    (x,) = _with_axis(self)
    axis, source = axis_of(dim, x.ndim), cast(new, self.dtype)
    if source.ndim and not index.ndim and self.ndim:
        source = np.reshape(source, (*self.shape[:axis], 1, *self.shape[axis + 1 :]))
    at = np.reshape(index, (1,)) if not index.ndim else index
    shape = (*x.shape[:axis], at.shape[0], *x.shape[axis + 1 :])
    key = (*(slice(None),) * axis, in_range("index", "index", cast(at, INT64), x.shape[axis]))
    out = _combined(x, key, np.broadcast_to(source, tuple(shape)), reduce, include_self=include_self)
    return out if self.ndim else np.reshape(out, ())


@aten("index_add")
def index_add(self: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    scaled = source if type(alpha) is int and alpha == 1 else source * cast(alpha, source.dtype)
    return _indexed(self, dim, index, scaled, "add")


@aten("index_reduce")
def index_reduce(self: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    return _indexed(self, dim, index, source, reduce, include_self=include_self)


@aten("index_copy")
def index_copy(self: Any, dim: int, index: Any, source: Any) -> Any:
    return _indexed(self, dim, index, source)


@aten("index_fill")
def index_fill(self: Any, dim: int, index: Any, value: Any) -> Any:
    return _indexed(self, dim, index, np.reshape(cast(value, self.dtype), ()))


@aten("put")
def put(self: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    flat, new = np.reshape(self, (-1,)), np.reshape(cast(source, self.dtype), (-1,))
    out = _combined(flat, (np.reshape(cast(index, INT64), (-1,)),), new, "add" if accumulate else None)
    return np.reshape(out, tuple(self.shape))


@aten("masked_fill")
def masked_fill(self: Any, mask: Any, value: Any) -> Any:
    if mask.dtype != BOOL:
        raise refuse("masked_fill", f"with a mask of {mask.dtype}", "make it one of bools: mask != 0")
    return np.where(mask, cast(value, self.dtype), self)


@aten("masked_scatter")
def masked_scatter(self: Any, mask: Any, source: Any) -> Any:
    x, chosen = np.broadcast_arrays(self, cast(mask, BOOL))
    place = np.cumsum(np.reshape(chosen, (-1,)), dtype=np.int64) - 1
    new = np.take(np.reshape(source, (-1,)), np.maximum(place, 0))
    return np.where(chosen, np.reshape(new, x.shape), x)


@aten("masked_select")
def masked_select(self: Any, mask: Any) -> Any:
    x, chosen = np.broadcast_arrays(self, cast(mask, BOOL))
    return np.copy(x)[chosen]


@aten("one_hot")
def one_hot(self: Any, num_classes: int = -1) -> Any:
    if num_classes < 0:
        raise refuse("one_hot", "without the number of classes", "pass num_classes")
    return cast(self[..., None] == created("arange", num_classes), INT64)


# --- sorting, on the host -------------------------------------------------------------------------------------


def _order(x: Any, axis: int, descending: bool) -> Any:
    """The places of the elements in stable order, NaN as the largest."""
    x = sortable(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


@aten("argsort")
def argsort(self: Any, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Any:
    return sort(self, dim, descending)[1]


@aten("sort")
def sort(self: Any, *options: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> tuple[Any, Any]:
    numbers = [option for option in options if type(option) is int]
    flags = [option for option in options if type(option) is bool]
    dim, descending = numbers[0] if numbers else dim, flags[-1] if flags else descending
    if not self.ndim:
        return np.copy(self), np.zeros_like(self, dtype=np.int64)
    axis = axis_of(dim, self.ndim)
    order = _order(self, axis, bool(descending))
    return np.take_along_axis(self, order, axis), order


@aten("msort")
def msort(self: Any) -> Any:
    return sort(self, 0)[0]


@aten("topk")
def topk(self: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    if not self.ndim:
        return np.copy(self), np.zeros_like(self, dtype=np.int64)
    axis = axis_of(dim, self.ndim)
    order = np.copy(_order(self, axis, bool(largest))[(*(slice(None),) * axis, slice(0, k))])
    return np.take_along_axis(self, order, axis), order


@aten("kthvalue")
def kthvalue(self: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    if not self.ndim:
        return np.copy(self), np.zeros_like(self, dtype=np.int64)
    axis = axis_of(dim, self.ndim)
    values, order = sort(self, axis)
    front = (slice(None),) * axis
    key = (*front, slice(k - 1, k)) if keepdim else (*front, k - 1)
    return np.copy(values[key]), np.copy(order[key])


@aten("median")
def median(self: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    if dim is None:
        flat = np.reshape(self, (-1,))
        return _shared(flat, _median(flat, 0, False)[0])
    return _median(self, dim, keepdim) if self.ndim else (np.copy(self), np.zeros_like(self, dtype=np.int64))


def _shared(flat: Any, value: Any) -> Any:
    """An element of an array, the gradient of which all elements that are equal to it share."""
    if not is_float(flat.dtype):
        return value
    value = detached(value)
    is_equal = (flat == value) | ((flat != flat) & (value != value))
    return np.max(np.where(is_equal, flat, cast(-math.inf, flat.dtype)))


def _median(self: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    axis = axis_of(dim, self.ndim)
    length = int(self.shape[axis])
    values, order = sort(self, axis)
    front = (slice(None),) * axis
    middle = (*front, slice((length - 1) // 2, (length - 1) // 2 + 1))
    value, place = values[middle], order[middle]
    if is_float(self.dtype):
        last = (*front, slice(length - 1, None))
        has_nan = values[last] != values[last]
        first_nan = np.argmax(self != self, axis=axis, keepdims=True)
        value, place = np.where(has_nan, values[last], value), np.where(has_nan, first_nan, place)
    return (value, place) if keepdim else (np.squeeze(value, axis=axis), np.squeeze(place, axis=axis))


@aten("nanmedian")
def nanmedian(self: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    if not is_float(self.dtype):
        return median(self, dim, keepdim)
    if dim is None:
        flat = np.reshape(self, (-1,))
        return _shared(flat, _nanmedian(flat, 0, False)[0])
    return _nanmedian(self, dim, keepdim) if self.ndim else (np.copy(self), np.zeros_like(self, dtype=np.int64))


def _nanmedian(self: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    axis = axis_of(dim, self.ndim)
    values, order = sort(self, axis)
    counts = np.sum(self == self, axis=axis, keepdims=True, dtype=np.int64)
    middle = np.maximum((counts - 1) // 2, 0)
    value, place = np.take_along_axis(values, middle, axis), np.take_along_axis(order, middle, axis)
    return (value, place) if keepdim else (np.squeeze(value, axis=axis), np.squeeze(place, axis=axis))


@aten("_unique2")
def unique(
    self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Any, Any, Any]:
    options = {"return_inverse": True, "return_counts": True, "equal_nan": False}
    values, inverse, counts = on_host("numpy.unique", sortable(self), **options)
    nothing = np.zeros((0,), np.int64)
    return (
        cast(values, self.dtype),
        np.reshape(inverse, tuple(self.shape)) if return_inverse else nothing,
        counts if return_counts else nothing,
    )


@aten("nonzero", "argwhere")
def nonzero(self: Any) -> Any:
    return np.argwhere(self)


@aten("bincount")
def bincount(self: Any, weights: Any = None, minlength: int = 0) -> Any:
    counts = np.bincount(self, weights, minlength)
    return cast(counts, INT64 if weights is None else np.dtype(np.float64))
