"""`np.histogram` of equal bins whose ends are numbers; all others run on the host.

NumPy's own steps, which decide into which bin a number goes that rounding puts beside an edge.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..tracing.handler_tables import CREATION
from ..tracing.operators import op
from ..tracing.traced import Traced
from .index_writes import ufunc_at
from .registry import numpy_function
from .selection import where

MOST_BINS = 1 << 16
_EXACT = 2.0**53  # ints below it are floats of the same value


@numpy_function("histogram", raw=True)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """`np.histogram`, natively where the edges are known before the call."""
    edges = None if density or weights is not None else _edges(a, bins, range)
    if edges is None:
        from . import host

        options = {"range": range, "density": density, "weights": weights}
        return host.call("numpy.histogram", (a, bins), {k: v for k, v in options.items() if v is not None})
    first, last = range
    numbers = op("reshape", a, shape=(-1,))
    if numbers.dtype.kind != "f":
        numbers = numbers.astype(np.float64)
    inside = (numbers >= first) & (numbers <= last)
    numbers = where(inside, numbers, numbers.dtype.type(first))
    width = np.float64(last - first)
    place = ((numbers - first) / width * bins).astype(np.intp)
    place = where(place == bins, place - 1, place)
    place = where(numbers < op("take", edges, place, axis=0), place - 1, place)
    is_next = (numbers >= op("take", edges, place + 1, axis=0)) & (place != bins - 1)
    place = where(is_next, place + 1, place)
    counts = CREATION["zeros"](bins, np.intp)
    ufunc_at(np.add, (counts, place, inside.astype(np.intp)))
    return counts, op("copy", edges)


def _edges(a: Any, bins: Any, ends: Any) -> np.ndarray | None:
    """The edges of all bins; None where NumPy has to find them out, or to raise an error."""
    if not isinstance(a, Traced) or not a.ndim or a.dtype.kind not in "iuf":
        return None
    if type(bins) is not int or not 1 <= bins <= MOST_BINS:
        return None
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:
        return None
    if any(type(x) not in (int, float) or not math.isfinite(x) or abs(x) >= _EXACT for x in ends):
        return None
    first, last = ends
    kind = a.dtype if a.dtype.kind == "f" else np.dtype(np.float64)
    if not first < last or kind.itemsize < 4:
        return None
    edges = np.linspace(first, last, bins + 1, dtype=kind)
    return edges if np.all(edges[:-1] < edges[1:]) else None
