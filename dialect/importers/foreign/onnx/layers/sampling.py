"""Reading arrays between their elements: the taps of each axis, and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural.layer_inputs import widened
from ...array_values import constant_or_created, taken


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


def arange(count: Any, dtype: Any = np.float64) -> Any:
    """0, 1, … of a dtype."""
    return constant_or_created("arange", count).astype(dtype)


__all__ = ["arange", "cubic_weights", "taps", "weighted"]
