"""Medians and quantiles as compositions: reads from sorted rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import TraceError
from .moves import rows_of

_MIDDLE = {
    "linear": lambda share: share,
    "lower": lambda share: 0 * share,
    "higher": lambda share: np.ceil(share),
    "midpoint": lambda share: np.where(share == 0, 0.0, 0.5),
}


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    rows, axes = rows_of(a, axis)
    count = int(np.shape(rows)[-1])
    ordered = np.sort(rows, axis=-1)
    middle = (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2
    return np.expand_dims(middle, tuple(axes)) if keepdims else middle


def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    rows, axes = rows_of(a, axis)
    count = np.sum(~np.isnan(rows), axis=-1, keepdims=True)
    ordered = np.sort(rows, axis=-1)  # what is no number is behind all others
    low, high = (np.take_along_axis(ordered, np.maximum(k // 2, 0), -1)[..., 0] for k in (count - 1, count))
    middle = (low + high) / 2
    return np.expand_dims(middle, tuple(axes)) if keepdims else middle


def quantile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    if method not in _MIDDLE:
        raise TraceError(f"a quantile by method={method!r} has no gradient yet")
    rows, axes = rows_of(a, axis)
    last = int(np.shape(rows)[-1]) - 1
    places = np.reshape(q, (-1,)) * float(last)
    below = np.floor(places)
    share = _MIDDLE[method](places - below)
    below = below.astype(np.int64)
    ordered = np.sort(rows, axis=-1)
    low = np.take(ordered, below, axis=-1)
    high = np.take(ordered, np.minimum(below + 1, last), axis=-1)
    quantiles = np.moveaxis(low + (high - low) * share, -1, 0)
    if keepdims:
        quantiles = np.expand_dims(quantiles, tuple(k + 1 for k in axes))
    return np.reshape(quantiles, (*np.shape(q), *np.shape(quantiles)[1:]))


def percentile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    shares = np.reshape(q, (-1,)) / 100
    quantiles = quantile(a, shares, axis, method=method, keepdims=keepdims)
    return np.reshape(quantiles, (*np.shape(q), *np.shape(quantiles)[1:]))


COMPOSITIONS: dict[str, Callable[..., Any]] = {
    f"numpy.{f.__name__}": f for f in (median, nanmedian, percentile, quantile)
}
