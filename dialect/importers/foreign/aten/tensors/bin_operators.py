"""Elements counted in bins, and sums over segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...array_values import owned, sortable
from ..aten_table import aten, refuse
from ..demands import demanded
from ..dimensions import axis_of
from ..promotion import INT64, cast, is_float, together
from .creation_operators import linspace


def _bounds(flat: Any, low: Any, high: Any, half: float) -> tuple[Any, Any]:
    """The outer edges of all bins: those that are given, the extrema for None, or ``half`` around the only number."""
    dtype = flat.dtype
    if low is None:
        is_any = bool(int(flat.shape[0]))
        first, last = (np.min(flat), np.max(flat)) if is_any else (cast(0, dtype), cast(1, dtype))
    else:
        first, last = cast(low, dtype), cast(high, dtype)
    reason = f"the range of elements in bins is not finite, or begins behind its end: {low} to {high}"
    first = demanded(first, np.isfinite(first) & np.isfinite(last) & (first <= last), reason)
    is_point, step = first == last, cast(half, dtype)
    return np.where(is_point, first - step, first), np.where(is_point, last + step, last)


def _counted(places: Any, is_inside: Any, weights: Any, count: int, dtype: np.dtype) -> Any:
    """The sums of weights, or the numbers, of the elements of each bin."""
    one = cast(1, dtype) if weights is None else weights
    new = np.where(is_inside, one, cast(0, dtype))
    out = owned(np.zeros((count,), dtype))
    np.add.at(out, np.where(is_inside, places, 0), new)
    return out


@aten("histc")
def histc(self: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    flat = np.reshape(self, (-1,))
    if not is_float(self.dtype) or bins <= 0 or min > max:
        raise refuse("histc", f"of {self.dtype}, with {bins} bins from {min} to {max}")
    first, last = (None, None) if min == max else (min, max)
    low, high = _bounds(flat, first, last, 1.0)
    is_inside = (flat >= low) & (flat <= high)
    scaled = np.where(is_inside, flat - low, cast(0, flat.dtype)) * cast(bins, flat.dtype) / (high - low)
    return _counted(np.minimum(cast(scaled, INT64), bins - 1), is_inside, None, bins, flat.dtype)


@aten("histogram.bin_ct")
def histogram(self: Any, bins: int, *, range: Any = None, weight: Any = None, density: bool = False) -> tuple[Any, Any]:
    (edges,) = edges_of_bins(np.reshape(self, (-1, 1)), (bins,), range=range)
    return histogram_of_edges(self, edges, weight=weight, density=density)


@aten("histogram.bins_tensor")
def histogram_of_edges(self: Any, bins: Any, *, weight: Any = None, density: bool = False) -> tuple[Any, Any]:
    return points_in_bins(np.reshape(self, (-1, 1)), (bins,), weight=weight, density=density), bins


@aten("_histogramdd_bin_edges")
def edges_of_bins(
    self: Any, bins: Sequence[int], *, range: Any = None, weight: Any = None, density: bool = False
) -> tuple[Any, ...]:
    """The edges of bins of equal sizes along each coordinate of points, from the least to the largest or in a range."""
    points = np.reshape(self, (-1, self.shape[-1]))
    edges = []
    for k, count in enumerate(bins):
        low, high = (None, None) if range is None else (range[2 * k], range[2 * k + 1])
        if count < 1 or (low is not None and not low <= high):
            raise refuse("histogram", f"with {count} bins from {low} to {high}")
        first, last = _bounds(points[:, k], low, high, 0.5)
        edges.append(linspace(first, last, count + 1, dtype=points.dtype))
    return tuple(edges)


@aten("_histogramdd_from_bin_cts")
def points_in_equal_bins(
    self: Any, bins: Sequence[int], *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    return points_in_bins(self, edges_of_bins(self, bins, range=range), weight=weight, density=density)


@aten("_histogramdd_from_bin_tensors")
def points_in_bins(self: Any, bins: Sequence[Any], *, weight: Any = None, density: bool = False) -> Any:
    """How many points (..., D), or what weights of them, are in each bin; one tensor of edges for each of D axes."""
    points = np.reshape(self, (-1, self.shape[-1]))
    counts = [int(edges.shape[0]) - 1 for edges in bins]
    if min(counts) < 1:
        raise refuse("histogram", "without a bin")
    place: Any = 0
    is_inside: Any = True
    for k, (edges, count) in enumerate(zip(bins, counts, strict=True)):
        x = points[:, k]
        edges = demanded(edges, edges[1:] >= edges[:-1], "the edges of bins are not in order")
        is_inside = is_inside & (x >= edges[0]) & (x <= edges[-1])
        place = place * count + np.minimum(np.searchsorted(edges, x, side="right") - 1, count - 1)
    weights = None if weight is None else np.reshape(weight, (-1,))
    sums = np.reshape(_counted(place, is_inside, weights, math.prod(counts), points.dtype), tuple(counts))
    if not density:
        return sums
    sums = sums / np.sum(sums)
    for k, edges in enumerate(bins):
        sums = sums / np.reshape(edges[1:] - edges[:-1], (-1, *(1,) * (len(counts) - k - 1)))
    return sums


_EMPTY = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1.0}
_COMBINED: dict[str, Any] = {
    "sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply,
}  # fmt: skip


@aten("segment_reduce")
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    bounds = offsets if lengths is None else lengths
    if bounds is None or bounds.ndim != 1 or axis_of(axis, data.ndim) or reduce not in _EMPTY:
        raise refuse("segment_reduce", "but for segments of the first axis")
    size = int(data.shape[0])
    count = int(bounds.shape[0]) - (lengths is None)
    if lengths is None:
        starts, sizes = cast(offsets, INT64)[:-1], cast(offsets, INT64)[1:] - cast(offsets, INT64)[:-1]
    else:
        sizes = cast(lengths, INT64)
        starts = np.cumsum(sizes) - sizes
    holds = np.all(sizes >= 0) & (np.sum(sizes) == size) & np.all(starts[:1] == 0)
    sizes = demanded(sizes, holds, "segments do not part the axis")
    segment = np.searchsorted(np.cumsum(sizes), np.arange(size), side="right")
    shape, rest = (count, *data.shape[1:]), (-1, *(1,) * (data.ndim - 1))
    start = _EMPTY[reduce] if initial is None else initial
    out = owned(np.full(shape, 0.0 if reduce == "mean" and initial is None else start, data.dtype))
    _COMBINED[reduce].at(out, segment, data)
    if reduce != "mean":
        return out
    numbers = np.reshape(sizes, rest)
    means = out / cast(np.maximum(numbers, 1), data.dtype)
    return np.where(numbers == 0, cast(start, data.dtype), means)


@aten("searchsorted")
def searchsorted(
    sorted_sequence: Any,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    is_right = right or side == "right"
    sequence, values = map(sortable, together(sorted_sequence, self))
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.ndim == 1:
        place = np.searchsorted(sequence, values, side="right" if is_right else "left")
    else:
        rows, each = sequence[..., None, :], values[..., :, None]
        place = np.sum(rows <= each if is_right else rows < each, axis=-1, dtype=np.int64)
    return cast(place, np.dtype(np.int32) if out_int32 else INT64)


@aten("bucketize")
def bucketize(self: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


__all__: list[str] = []
