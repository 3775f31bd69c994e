"""Order statistics, histograms, covariances, interpolation, convolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..sizes import product
from .rule import BoundCall, Rule, Shapes, shape_of
from .shapes import reduced, same


def _median(call: BoundCall) -> Shapes | None:
    return [reduced(call.shape("a"), call["axis"], call["keepdims"])]


def _quantile(call: BoundCall) -> Shapes | None:
    rest = reduced(call.shape("a"), call["axis"], call["keepdims"])
    q = shape_of(call["q"])
    return None if rest is None or q is None else [(*q, *rest)]


def _histogram(call: BoundCall) -> Shapes | None:
    bins = call["bins"]
    return [(bins,), (bins + 1,)] if type(bins) is int else None


def _bins(call: BoundCall) -> Shapes | None:
    bins = call["bins"]
    return [(bins + 1,)] if type(bins) is int else None


def _histogram2d(call: BoundCall) -> Shapes | None:
    bins = call["bins"]
    return [(bins, bins), (bins + 1,), (bins + 1,)] if type(bins) is int else None


def _dimensions(given: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """The number of columns of a sample is that of dimensions."""
    return [("sample", 1)] if len(shape_of(given["sample"]) or ()) == 2 else []


def _variables(first: str) -> Any:
    """The number of variables: NumPy gives a number for one, and a matrix for several."""

    def sized(given: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
        if given["y"] is not None or len(shape_of(given[first]) or ()) != 2:
            return []
        return [(first, 0 if given["rowvar"] else 1)]

    return sized


def _convolved(call: BoundCall) -> Shapes | None:
    sizes = [product(call.shape(name) or (None,)) for name in ("a", "v")]
    lengths = sorted(size for size in sizes if isinstance(size, int) and size)
    mode = call["mode"]
    if len(lengths) < 2 or not isinstance(mode, str):
        return [(None,)]
    m, n = lengths
    return [({"f": n + m - 1, "s": n, "v": n - m + 1}.get(mode[:1]),)]


def _np(name: str, shapes: Any = None, **more: Any) -> Rule:
    return Rule(f"numpy.{name}", shapes, **more)


_PERCENT = {"q": 50}
_PART = {"q": 0.5}
_BINS = {"bins": 2}

RULES = (
    _np("median", _median),
    _np("nanmedian", _median),
    _np("percentile", _quantile, neutral=_PERCENT),
    _np("nanpercentile", _quantile, neutral=_PERCENT),
    _np("quantile", _quantile, neutral=_PART),
    _np("nanquantile", _quantile, neutral=_PART),
    _np("histogram", _histogram, neutral=_BINS, fill="ramp"),
    _np("histogram_bin_edges", _bins, neutral=_BINS, fill="ramp"),
    _np("histogram2d", _histogram2d, neutral=_BINS, fill="ramp"),
    _np("histogramdd", neutral=_BINS, fill="ramp", sized=_dimensions),
    _np("bincount", lambda call: [(None,)], neutral={"minlength": 0}, gradient="bincount"),
    _np("digitize", same("x"), fill="ramp"),
    _np("interp", same("x"), fill="ramp", neutral={"x": 1}),
    _np("convolve", _convolved),
    _np("correlate", _convolved),
    _np("cov", sized=_variables("m"), fill="ramp"),
    _np("corrcoef", sized=_variables("x"), fill="ramp"),
)
