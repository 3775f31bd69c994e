"""Functions that run on the host, written as compositions of functions that have gradients.

The results are the library's own. A composition computes the same from the same arguments, up to
rounding, and what is asked of it is its gradient alone (`gradients.gradient_of`). Its signature is
the library's, without arguments for which there is no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .decompositions import COMPOSITIONS as _OF_MATRICES
from .fourier import COMPOSITIONS as _OF_TRANSFORMS
from .moves import axes_of, moved, numbered
from .order_statistics import COMPOSITIONS as _OF_ORDER

Axis = Any  # None, an int, or a tuple of ints


def _filled(a: Any, neutral: float) -> Any:
    return np.where(np.isnan(a), neutral, a)


def _shown(a: Any) -> Any:
    """1 where an array is a number, else 0."""
    return np.where(np.isnan(a), 0.0, 1.0)


def nansum(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return np.sum(_filled(a, 0), axis=axis, keepdims=keepdims)


def nanprod(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return np.prod(_filled(a, 1), axis=axis, keepdims=keepdims)


def nancumsum(a: Any, axis: Axis = None) -> Any:
    return np.cumsum(_filled(a, 0), axis=axis)


def nancumprod(a: Any, axis: Axis = None) -> Any:
    return np.cumprod(_filled(a, 1), axis=axis)


def nanmax(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return np.max(_filled(a, -math.inf), axis=axis, keepdims=keepdims)


def nanmin(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return np.min(_filled(a, math.inf), axis=axis, keepdims=keepdims)


def nanmean(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    count = np.sum(_shown(a), axis=axis, keepdims=keepdims)
    return np.sum(_filled(a, 0), axis=axis, keepdims=keepdims) / count


def nanvar(
    a: Any, axis: Axis = None, *, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Any:
    shown = _shown(a)
    count = np.sum(shown, axis=axis, keepdims=True)
    mean = np.sum(_filled(a, 0), axis=axis, keepdims=True) / count
    off = _filled(a - mean, 0)
    squares = np.sum(np.real(off * np.conj(off)), axis=axis, keepdims=keepdims)
    less = ddof if correction is None else correction
    return squares / (np.sum(shown, axis=axis, keepdims=keepdims) - less)


def nanstd(
    a: Any, axis: Axis = None, *, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Any:
    return np.sqrt(nanvar(a, axis, ddof=ddof, keepdims=keepdims, correction=correction))


def cbrt(x: Any) -> Any:
    return np.sign(x) * np.power(np.abs(x), 1 / 3)


def logaddexp2(x1: Any, x2: Any) -> Any:
    scale = math.log(2)
    return np.logaddexp(x1 * scale, x2 * scale) / scale


def ldexp(x1: Any, x2: Any) -> Any:
    return x1 * np.exp2(1.0 * x2)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    result = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        result = np.where(condition, choice, result)
    return result


def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    count = len(choices)
    if mode == "wrap":
        a = a % count
    elif mode == "clip":
        a = np.clip(a, 0, count - 1)
    result = choices[0]
    for k in range(1, count):
        result = np.where(a == k, choices[k], result)
    return np.where(a == 0, choices[0], result)  # broadcast as the index is, also for one choice


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    count = len(xi)
    axes = [*range(count)]
    if indexing == "xy" and count > 1:
        axes[:2] = [1, 0]
    parts = [np.reshape(x, [-1 if k == axis else 1 for k in range(count)]) for x, axis in zip(xi, axes, strict=True)]
    return tuple(parts if sparse else np.broadcast_arrays(*parts))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    place = axis % np.ndim(y)
    if x is None:
        steps = dx
    elif np.ndim(x) == 1:
        steps = np.reshape(np.diff(x), [-1 if k == place else 1 for k in range(np.ndim(y))])
    else:
        steps = np.diff(x, axis=axis)
    sums = _part(y, place, slice(1, None)) + _part(y, place, slice(None, -1))
    return np.sum(steps * sums / 2, axis=place)


def _part(x: Any, axis: int, part: Any) -> Any:
    return x[(slice(None),) * axis + (part,)]


def gradient(f: Any, *varargs: Any, axis: Axis = None, edge_order: int = 1) -> Any:
    axes = axes_of(axis, np.ndim(f))
    spacings = varargs or (1.0,)
    if len(spacings) == 1 and len(axes) > 1:
        spacings = spacings * len(axes)
    slopes = [_slope(f, k, h, edge_order) for k, h in zip(axes, spacings, strict=True)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _slope(f: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    """`np.gradient` along one axis, with differences of second order inside."""
    size = int(np.shape(f)[axis])

    def at(k: int) -> Any:
        return _part(f, axis, slice(k, None if k == -1 else k + 1))

    def lined(x: Any) -> Any:
        return np.reshape(x, [-1 if k == axis else 1 for k in range(np.ndim(f))])

    before, here, behind = (_part(f, axis, slice(k, size - 2 + k)) for k in range(3))
    if np.ndim(spacing) == 0:
        inner = (behind - before) / (2.0 * spacing)
        steps = [spacing] * 4
    else:
        widths = np.diff(spacing)
        left, right = lined(widths[:-1]), lined(widths[1:])
        both = left + right
        inner = (
            -right / (left * both) * before + (right - left) / (left * right) * here + left / (right * both) * behind
        )
        steps = [widths[0], widths[1], widths[-2], widths[-1]] if size > 2 else [widths[0]] * 4
    if edge_order == 1:
        first = (at(1) - at(0)) / steps[0]
        last = (at(-1) - at(-2)) / steps[3]
    else:
        first = _edge(at(0), at(1), at(2), steps[0], steps[1])
        last = -_edge(at(-1), at(-2), at(-3), steps[3], steps[2])
    return np.concatenate([first, inner, last], axis=axis)


def _edge(f0: Any, f1: Any, f2: Any, near: Any, far: Any) -> Any:
    """The slope at the first of three points, of second order."""
    both = near + far
    return -(2.0 * near + far) / (near * both) * f0 + both / (near * far) * f1 - near / (far * both) * f2


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    last = int(np.shape(xp)[0]) - 1
    k = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, max(last - 1, 0))
    inside = np.clip(x, xp[0], xp[last])
    if last:
        low = np.take(xp, k)
        share = (inside - low) / (np.take(xp, k + 1) - low)
        result = np.take(fp, k) * (1 - share) + np.take(fp, k + 1) * share
    else:
        result = np.take(fp, k) + 0 * inside
    result = np.where(x < xp[0], fp[0] if left is None else left, result)
    return np.where(x > xp[last], fp[last] if right is None else right, result)


def _observations(m: Any, y: Any, rowvar: bool) -> Any:
    """The variables as rows of a matrix."""

    def rows(x: Any) -> Any:
        if np.ndim(x) < 2:
            return np.reshape(x, (1, -1))
        return x if rowvar or np.shape(x)[0] == 1 else np.transpose(x)

    return rows(m) if y is None else np.concatenate([rows(m), rows(y)], axis=0)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    x = _observations(m, y, rowvar)
    less = ddof if ddof is not None else 0 if bias else 1
    weights: Any = None
    if fweights is not None:
        weights = 1.0 * fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        count: Any = np.shape(x)[1]
        off = x - np.mean(x, axis=1, keepdims=True)
        weighted = off
        fact = count - less
    else:
        count = np.sum(weights)
        off = x - np.sum(x * weights, axis=1, keepdims=True) / count
        weighted = off * weights
        if less == 0:
            fact = count
        elif aweights is None:
            fact = count - less
        else:
            fact = count - less * np.sum(weights * aweights) / count
    covariance = np.matmul(weighted, np.conj(np.transpose(off))) / fact
    return covariance[0, 0] if np.shape(x)[0] == 1 else covariance


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    covariance = cov(x, y, rowvar)
    if not np.ndim(covariance):
        return covariance / covariance
    sizes = np.sqrt(np.real(np.diagonal(covariance)))
    return covariance / np.expand_dims(sizes, 1) / np.expand_dims(sizes, 0)


def polyval(p: Any, x: Any) -> Any:
    value = 0 * x
    for k in range(int(np.shape(p)[0])):
        value = value * x + p[k]
    return value


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    count = int(np.shape(x)[0]) if N is None else int(N)
    powers = [np.ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    return np.stack(powers if increasing else powers[::-1], axis=1)


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = np.reshape(a, (-1,)), np.reshape(v, (-1,))
    n, m = int(np.shape(a)[0]), int(np.shape(v)[0])
    if m > n:
        a, v, n, m = v, a, m, n
    padded = np.pad(a, (m - 1, m - 1))
    full = np.matmul(np.lib.stride_tricks.sliding_window_view(padded, m), np.flip(v))
    if mode == "valid":
        return full[m - 1 : n]
    start = (m - 1) // 2
    return full[start : start + n] if mode == "same" else full


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    turned = np.flip(np.conj(v))
    n, m = np.shape(a)[0], np.shape(v)[0]
    if mode == "same" and m > n and n % 2 == 0:
        # The middle is that of the longer one, read from its end.
        full = convolve(a, turned)
        start = int(n) // 2
        return full[start : start + int(m)]
    return convolve(a, turned, mode)


def _cumulative(function: Callable[..., Any], initial: Callable[..., Any]) -> Callable[..., Any]:
    """A function of running sums or products; ``initial`` makes the value with which these begin."""

    def cumulative(x: Any, *, axis: int | None = None, include_initial: bool = False) -> Any:
        place = 0 if axis is None else axis % np.ndim(x)
        result = function(x, axis=place)
        if not include_initial:
            return result
        return np.concatenate([initial(_part(x, place, slice(0, 1))), result], place)

    return cumulative


def _accumulated(ufunc: np.ufunc) -> Callable[..., Any]:
    """The extremum so far: the element at which it was met last."""

    def accumulate(array: Any, axis: int = 0) -> Any:
        own = np.argsort(np.argsort(np.zeros_like(array), axis, kind="stable"), axis, kind="stable")
        places = np.where(array == ufunc.accumulate(array, axis), own, 0)
        return np.take_along_axis(array, np.maximum.accumulate(places, axis), axis)

    return accumulate


def add_reduceat(array: Any, indices: Any, axis: int = 0) -> Any:
    place = axis % np.ndim(array)
    starts = np.reshape(indices, (-1,))
    ends = np.concatenate([starts[1:], np.reshape(np.shape(array)[place], (1,))])
    lengths = np.where(ends > starts, ends - starts, 1)
    segments = np.repeat(numbered(starts), lengths)
    before = np.cumsum(lengths) - lengths
    places = numbered(segments) + np.take(starts - before, segments)
    parts = np.moveaxis(np.take(array, places, place), place, 0)
    sums = np.zeros_like(np.take(parts, np.zeros_like(starts), 0))
    np.add.at(sums, segments, parts)
    return np.moveaxis(sums, 0, place)


def _logs_accumulated(array: Any, axis: int = 0) -> Any:
    """Running logarithms of sums, of twice as many elements at each step."""
    y = np.moveaxis(array, axis, 0)
    length, step = int(np.shape(y)[0]), 1
    while step < length:
        y = np.concatenate([y[:step], np.logaddexp(y[step:], y[:-step])])
        step *= 2
    return np.moveaxis(y, 0, axis)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = np.reshape(ary, (-1,))
    parts = [flat[1:] - flat[:-1]]
    if to_begin is not None:
        parts.insert(0, np.reshape(to_begin, (-1,)))
    if to_end is not None:
        parts.append(np.reshape(to_end, (-1,)))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def diagflat(v: Any, k: int = 0) -> Any:
    return np.diag(np.reshape(v, (-1,)), k)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    return p  # but for multiples of the period


COMPOSITIONS: dict[str, Callable[..., Any]] = {
    **{
        f"numpy.{f.__name__}": f
        for f in (
            cbrt,
            choose,
            convolve,
            corrcoef,
            correlate,
            cov,
            diagflat,
            ediff1d,
            gradient,
            interp,
            ldexp,
            logaddexp2,
            meshgrid,
            nancumprod,
            nancumsum,
            nanmax,
            nanmean,
            nanmin,
            nanprod,
            nanstd,
            nansum,
            nanvar,
            polyval,
            select,
            trapezoid,
            unwrap,
            vander,
        )
    },
    "numpy.cumulative_sum": _cumulative(np.cumsum, np.zeros_like),
    "numpy.cumulative_prod": _cumulative(np.cumprod, np.ones_like),
    "numpy.add.reduceat": add_reduceat,
    "numpy.logaddexp.accumulate": _logs_accumulated,
    "numpy.maximum.accumulate": _accumulated(np.maximum),
    "numpy.minimum.accumulate": _accumulated(np.minimum),
    "numpy.compress": moved("compress", "a"),
    "numpy.delete": moved("delete", "arr"),
    "numpy.extract": moved("extract", "arr"),
    "numpy.insert": moved("insert", "arr", "values"),
    "numpy.repeat": moved("repeat", "a"),
    "numpy.resize": moved("resize", "a"),
    **_OF_ORDER,
    **_OF_MATRICES,
    **_OF_TRANSFORMS,
}
"""By the name of the function, as graphs have it."""
