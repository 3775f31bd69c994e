"""Reading arrays between their elements: the taps of each axis, and their weights."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..numpy.neural.layer_inputs import narrowed, widened
from .array_values import constant_or_created, item_of, taken


def cubic_weights(ratio: Any, a: float) -> tuple[Any, Any, Any, Any]:
    """The weights of the four elements around a place that lies ``ratio`` behind the second of them."""

    def near(t: Any) -> Any:
        return ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0

    def far(t: Any) -> Any:
        return ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a

    return far(ratio + 1.0), near(ratio), near(1.0 - ratio), far(2.0 - ratio)


def taps(places: Any, mode: str, cubic: float = -0.75) -> list[tuple[Any, Any]]:
    """For each tap its places, whole numbers as floats, and its weights, of elements that may lie outside."""
    below = np.floor(places)
    ratio = places - below
    if mode == "linear":
        return [(below, 1.0 - ratio), (below + 1.0, ratio)]
    weights = cubic_weights(ratio, cubic)
    return [(below + (k - 1.0), w) for k, w in enumerate(weights)]


def weighted(x: Any, axis: int, sources: list[tuple[Any, Any]], size: Any) -> Any:
    """The sum of elements along an axis, by taps; those outside of the axis are its ends."""
    (wide,) = widened(x)
    shape = [1] * x.ndim
    shape[axis] = -1
    total: Any = None
    for places, weights in sources:
        inside = np.minimum(np.maximum(places, 0), size - 1).astype(np.int64)
        part = taken(wide, inside, axis=axis)
        factor = np.reshape(weights, shape).astype(wide.dtype if wide.dtype.kind == "f" else np.float32)
        part = part * factor
        total = part if total is None else total + part
    return total


def grid_sampled(
    x: Any, grid: Any, mode: str, padding_mode: str, *, align_corners: bool, is_rounded_first: bool = False
) -> Any:
    """The elements of images at places that a grid names, from -1 to 1 along each axis.

    Args:
        x: (batch, channel, axes…).
        grid: (batch, places…, axes), the last axis of ``x`` first.
        mode: "nearest", "linear" or "cubic".
        padding_mode: what is outside of an image: "zeros", its "border", or its "reflection".
        align_corners: -1 and 1 are the middles of the first and the last element, not their outer ends.
        is_rounded_first: the nearest element is looked for before a place outside is taken inside.
    """
    count = x.ndim - 2
    (wide, points) = widened(x, grid)
    sizes = [int(n) for n in x.shape[2:]]
    places = []
    for k, n in enumerate(sizes):
        p = points[..., count - 1 - k]
        p = (p + 1.0) * ((n - 1) / 2.0) if align_corners else ((p + 1.0) * n - 1.0) / 2.0
        if padding_mode != "zeros" and (mode == "linear" or (mode == "nearest" and not is_rounded_first)):
            p = _bounded(p, n, padding_mode, align_corners)
        places.append(p)
    sources = [[(np.rint(p), None)] if mode == "nearest" else taps(p, mode) for p in places]
    batch = np.reshape(np.arange(int(x.shape[0])), (-1, *(1,) * count))
    by_channel = np.moveaxis(wide, 1, -1)
    total: Any = None
    for combination in itertools.product(*sources):
        keys: list[Any] = [batch]
        inside: Any = None
        factor: Any = None
        for (at, weight), n in zip(combination, sizes, strict=True):
            here = (at >= 0) & (at <= n - 1)
            if padding_mode == "zeros":  # what is no number is outside, too
                bounded = np.where(here, at, np.zeros((), at.dtype)[()])
            else:
                bounded = _bounded(at, n, padding_mode, align_corners)
            inside = here if inside is None else inside & here
            if weight is not None:
                factor = weight if factor is None else factor * weight
            keys.append(np.minimum(np.maximum(np.rint(bounded), 0), n - 1).astype(np.int64))
        part = item_of(by_channel, tuple(keys))
        if padding_mode == "zeros":
            part = np.where(inside[..., None], part, np.zeros((), part.dtype)[()])
        if factor is not None:
            part = part * factor[..., None].astype(part.dtype)
        total = part if total is None else total + part
    return narrowed(np.moveaxis(total, -1, 1), x.dtype)


def _bounded(p: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """A place inside the axis: at its end, or reflected there."""
    if padding_mode == "border":
        return np.minimum(np.maximum(p, 0.0), float(n - 1))
    low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
    span = high - low
    if span == 0:
        return p * 0.0
    distance = np.abs(p - low)
    rest = np.remainder(distance, 2.0 * span)
    return np.minimum(np.maximum(np.where(rest > span, 2.0 * span - rest, rest) + low, 0.0), float(n - 1))


def arange(count: Any, dtype: Any = np.float64) -> Any:
    """0, 1, … of a dtype."""
    return constant_or_created("arange", count).astype(dtype)
