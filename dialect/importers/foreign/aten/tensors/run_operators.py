"""Runs of equal elements, elements that are not zero, and bags of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural.projections import in_range
from ...array_values import constant_or_created, owned
from ..aten_table import aten, refuse
from ..dimensions import axis_of
from ..promotion import BOOL, INT64, cast
from .index_operators import sort


@aten("mode")
def mode(self: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """The smallest of the most frequent elements, with a place of it."""
    if not self.ndim:
        return np.copy(self), np.zeros_like(self, dtype=np.int64)
    axis = axis_of(dim, self.ndim)
    values, order = sort(self, axis)
    front = (slice(None),) * axis
    starts = values[(*front, slice(1, None))] != values[(*front, slice(None, -1))]
    first = np.zeros_like(values[(*front, slice(0, 1))], dtype=np.int64)
    shape = (-1, *(1,) * (self.ndim - axis - 1))
    places = np.reshape(constant_or_created("arange", self.shape[axis]), shape)
    later = np.where(starts, places[1:], cast(0, INT64))
    begins = np.maximum.accumulate(np.concatenate([first, later], axis=axis), axis=axis)
    chosen = np.argmax(places - begins, axis=axis, keepdims=True)
    value, place = np.take_along_axis(values, chosen, axis), np.take_along_axis(order, chosen, axis)
    return (value, place) if keepdim else (np.squeeze(value, axis=axis), np.squeeze(place, axis=axis))


@aten("unique_consecutive")
def unique_consecutive(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, Any, Any]:
    axis = None if dim is None else axis_of(dim, self.ndim)
    if axis is None or not self.ndim:
        rows = np.reshape(self, (-1,))
    else:
        rows = np.moveaxis(self, axis, 0)
    count = int(rows.shape[0])
    if 0 in tuple(map(int, rows.shape[1:])):
        raise refuse("unique_consecutive", "along an axis of a tensor without elements")
    if not count:
        nothing = np.zeros((0,), np.int64)
        return (
            np.copy(self),
            np.reshape(nothing, tuple(self.shape)) if return_inverse and axis is None else nothing,
            nothing,
        )
    differs = rows[1:] != rows[:-1]
    if rows.ndim > 1:
        differs = np.any(np.reshape(differs, (count - 1, -1)), axis=1) if count > 1 else np.zeros((0,), BOOL)
    is_first = np.concatenate([np.ones((1,), BOOL), differs])
    values = np.copy(rows)[is_first]
    nothing = np.zeros((0,), np.int64)
    inverse = counts = nothing
    if return_inverse:
        inverse = np.cumsum(is_first, dtype=np.int64) - 1
        inverse = np.reshape(inverse, tuple(self.shape)) if axis is None else inverse
    if return_counts:
        begins = np.argwhere(is_first)[:, 0]
        counts = np.concatenate([begins[1:], np.full((1,), count, np.int64)]) - begins
    return values if axis is None or not self.ndim else np.moveaxis(values, 0, axis), inverse, counts


@aten("nonzero_static")
def nonzero_static(self: Any, *, size: int, fill_value: int = -1) -> Any:
    """The first places of elements that are not zero, as many as there is room for."""
    flat = np.reshape(cast(self, BOOL), (-1,))
    length = min(size, int(flat.shape[0]))
    order = np.argsort(~flat, kind="stable")[:length]
    is_there = np.arange(length) < np.sum(flat, dtype=np.int64)
    columns = []
    for axis in range(self.ndim):
        inner = int(np.prod([int(n) for n in self.shape[axis + 1 :]], dtype=np.int64))
        column = np.where(is_there, order // max(inner, 1) % max(int(self.shape[axis]), 1), cast(fill_value, INT64))
        columns.append(np.concatenate([column, np.full((size - length,), fill_value, np.int64)]))
    return np.stack(columns, axis=1) if columns else np.zeros((size, 0), np.int64)


def _register_bags(name: str, is_inside: bool) -> None:
    """Bags of rows; as torch calls them inside, a negative row of padding is none, and does not count from the end."""

    @aten(name)
    def embedding_bag(
        weight: Any,
        indices: Any,
        offsets: Any,
        scale_grad_by_freq: bool = False,
        mode: int = 0,
        sparse: bool = False,
        per_sample_weights: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> tuple[Any, None, None, None]:
        if scale_grad_by_freq:
            raise refuse("embedding_bag", "with gradients scaled by frequency")
        row = padding_idx
        if row is not None and row < 0:
            row = None if is_inside else row + int(weight.shape[0])
        return _bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, row)


for _name in ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"):
    _register_bags(_name, _name.startswith("_"))


def _bags(
    weight: Any, indices: Any, offsets: Any, mode: int, factors: Any, include_last_offset: bool, row: int | None
) -> tuple[Any, None, None, None]:
    """Sums, means or maxima of the rows of each bag; what torch keeps for its own gradients is left out."""
    count, bags = int(indices.shape[0]), int(offsets.shape[0]) - bool(include_last_offset)
    at = in_range("embedding_bag", "indices", cast(indices, INT64), int(weight.shape[0]))
    begins = in_range("embedding_bag", "offsets", cast(offsets, INT64)[:bags], count + 1)
    bag = np.searchsorted(begins, np.arange(count), side="right") - 1
    # Elements before the first bag are an error of torch's, as an index is that no bag has.
    bag = in_range("embedding_bag", "offsets", bag, bags)
    rows = np.take(weight, at, axis=0)
    is_in = np.ones((count,), BOOL)
    if include_last_offset:  # where the last bag ends
        is_in = np.arange(count) < cast(offsets, INT64)[-1]
    if row is not None:
        is_in = is_in & (at != row)
    if factors is not None:
        rows = rows * cast(factors, rows.dtype)[:, None]
    neutral = cast(-np.inf if mode == 2 else 0, rows.dtype)
    out = owned(np.full((bags, int(weight.shape[1])), neutral, rows.dtype))
    (np.maximum if mode == 2 else np.add).at(out, bag, np.where(is_in[:, None], rows, neutral))
    if mode == 0:
        return out, None, None, None
    sizes = owned(np.zeros((bags,), np.int64))
    np.add.at(sizes, bag, cast(is_in, INT64))
    if mode == 2:
        return np.where(sizes[:, None] == 0, cast(0, out.dtype), out), None, None, None
    return out / cast(np.maximum(sizes, 1), out.dtype)[:, None], None, None, None
