"""Reductions, moments, norms and scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....numpy.neural.layer_inputs import detached
from ....numpy.tracing.handler_tables import created
from ...on_host import on_host
from ..aten_table import aten, refuse
from ..dimensions import axes_of, axis_of
from ..promotion import BOOL, DEFAULT, cast, category, is_integral, is_tensor, real_dtype, summed, widened
from .binary_operators import maximum, minimum


def _numpy_axes(dim: Any, ndim: int) -> tuple[int, ...] | None:
    return axes_of(dim, ndim) if ndim else None


@aten("sum")
def sum_(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    out = dtype or summed(self.dtype)
    x = cast(self, widened(out))
    return cast(np.sum(x, axis=_numpy_axes(dim, x.ndim), keepdims=bool(keepdim)), out)


@aten("nansum")
def nansum(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    clean = np.where(self != self, cast(0, self.dtype), self)
    return sum_(clean, dim, keepdim, dtype=dtype)


@aten("prod")
def prod(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    out = dtype or summed(self.dtype)
    x = cast(self, widened(out))
    return cast(np.prod(x, axis=_numpy_axes(dim, x.ndim), keepdims=bool(keepdim)), out)


def _count(self: Any, axes: Any) -> Any:
    count: Any = 1
    for k in range(self.ndim) if axes is None else axes:
        count = count * self.shape[k]
    return count


@aten("mean")
def mean(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    out = dtype or self.dtype
    if is_integral(out):
        raise refuse("mean", f"on {out}", "convert to floats first")
    x = cast(self, widened(out))
    axes = axes_of(dim, x.ndim)
    if any(x.shape[k] == 0 for k in axes):
        return cast(np.sum(x, axis=axes, keepdims=bool(keepdim)) * cast(math.nan, x.dtype), out)
    return cast(np.mean(x, axis=axes, keepdims=bool(keepdim)) if axes else np.copy(x), out)


@aten("nanmean")
def nanmean(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    total = nansum(self, dim, keepdim, dtype=dtype)
    return total / cast(sum_(self == self, dim, keepdim), total.dtype)


def _correction(unbiased: Any, correction: Any) -> float:
    if correction is not None:
        return float(correction)
    return 1.0 if unbiased is None or unbiased else 0.0


def _moments(self: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    x = cast(self, widened(self.dtype))
    if is_integral(x.dtype):
        raise refuse("var", f"on {x.dtype}", "convert to floats first")
    axes = axes_of(dim, x.ndim)
    count, less = _count(x, axes), _correction(unbiased, correction)
    center = mean(x, axes or None, True) if axes else x
    spread = x - center
    squares = np.real(spread * np.conj(spread)) if category(x.dtype) == 3 else spread * spread
    total = np.sum(squares, axis=axes, keepdims=bool(keepdim)) if axes else squares
    number = cast(count, total.dtype) - cast(less, total.dtype)
    divisor = np.where(number > 0, number, cast(0, total.dtype))
    average = center if keepdim or not axes else np.squeeze(center, axis=axes)
    return cast(total / divisor, real_dtype(self.dtype)), cast(average, self.dtype)


@aten("var")
def var(self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    return _moments(self, dim, unbiased, correction, keepdim)[0]


@aten("var_mean")
def var_mean(
    self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Any, Any]:
    return _moments(self, dim, unbiased, correction, keepdim)


@aten("std")
def std(self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    return _root(_moments(self, dim, unbiased, correction, keepdim)[0])


@aten("std_mean")
def std_mean(
    self: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Any, Any]:
    spread, average = _moments(self, dim, unbiased, correction, keepdim)
    return _root(spread), average


def _root(x: Any, power: float = 0.5) -> Any:
    """``x ** power`` of what is not negative, with the gradient 0 at 0, as torch has it."""
    zero, one = cast(0, x.dtype), cast(1, x.dtype)
    is_zero = x == zero
    safe = np.where(is_zero, one, x)
    return np.where(is_zero, zero, np.sqrt(safe) if power == 0.5 else np.power(safe, cast(power, x.dtype)))


@aten("amax")
def amax(self: Any, dim: Any = (), keepdim: bool = False) -> Any:
    return np.max(self, axis=axes_of(dim, self.ndim), keepdims=bool(keepdim)) if self.ndim else np.copy(self)


@aten("amin")
def amin(self: Any, dim: Any = (), keepdim: bool = False) -> Any:
    return np.min(self, axis=axes_of(dim, self.ndim), keepdims=bool(keepdim)) if self.ndim else np.copy(self)


@aten("aminmax")
def aminmax(self: Any, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    dims: Any = () if dim is None else (dim,)
    return amin(self, dims, keepdim), amax(self, dims, keepdim)


def _place(function: Callable[..., Any], self: Any, dim: Any, keepdim: bool) -> Any:
    """The place of an extremum: of all elements in C order without ``dim``."""
    if not self.ndim:
        return np.zeros_like(self, dtype=np.int64)
    if dim is not None:
        return function(self, axis=axis_of(dim, self.ndim), keepdims=bool(keepdim))
    place = function(np.reshape(self, (-1,)), axis=0)
    return np.reshape(place, (1,) * self.ndim) if keepdim else place


@aten("argmax")
def argmax(self: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(np.argmax, self, dim, keepdim)


@aten("argmin")
def argmin(self: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(np.argmin, self, dim, keepdim)


def _extremum(name: str, places: Callable[..., Any], extreme: Callable[..., Any], pairwise: Callable[..., Any]) -> None:
    @aten(name)
    def extremum(self: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
        if other is not None or is_tensor(dim):
            return pairwise(self, dim if other is None else other)
        if dim is None:
            # All of the largest share the gradient.
            return extreme(self)
        place = places(self, dim, True)
        if not self.ndim:
            return np.copy(self), place
        axis = axis_of(dim, self.ndim)
        value = np.take_along_axis(self, place, axis)
        return (value, place) if keepdim else (np.squeeze(value, axis=axis), np.squeeze(place, axis=axis))


_extremum("max", argmax, amax, maximum)
_extremum("min", argmin, amin, minimum)


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(self: Any, dim: Any = None, keepdim: bool = False) -> Any:
        x = cast(self, BOOL)
        # A sequence that is empty reduces nothing here, and None all.
        axes = _numpy_axes(dim, x.ndim)
        truth = function(x, axis=axes, keepdims=bool(keepdim))
        return cast(truth, np.dtype(np.uint8)) if self.dtype == np.uint8 else truth

    return reduce


any_ = aten("any")(_truth(np.any))
all_ = aten("all")(_truth(np.all))


@aten("count_nonzero")
def count_nonzero(self: Any, dim: Any = None) -> Any:
    return sum_(self != cast(0, self.dtype), dim)


@aten("cumsum")
def cumsum(self: Any, dim: int, *, dtype: Any = None) -> Any:
    return _scan(np.cumsum, self, dim, dtype)


@aten("cumprod")
def cumprod(self: Any, dim: int, *, dtype: Any = None) -> Any:
    return _scan(np.cumprod, self, dim, dtype)


def _scan(function: Callable[..., Any], self: Any, dim: int, dtype: Any) -> Any:
    x = cast(self, dtype or summed(self.dtype))
    axis = axis_of(dim, x.ndim)
    return cast(function(x, axis=axis), x.dtype) if x.ndim else np.copy(x)


def _running(name: str, ahead: Callable[[Any, Any], Any]) -> None:
    @aten(name)
    def scan(self: Any, dim: int) -> tuple[Any, Any]:
        if not self.ndim:
            return np.copy(self), np.zeros_like(self, dtype=np.int64)
        axis = axis_of(dim, self.ndim)
        extreme = on_host(f"numpy.{'maximum' if name == 'cummax' else 'minimum'}.accumulate", self, axis)
        shape = (*(1,) * axis, self.shape[axis], *(1,) * (self.ndim - axis - 1))
        places = np.reshape(created("arange", self.shape[axis]), shape)
        leads = ahead(self, extreme) | (self != self)
        place = on_host("numpy.maximum.accumulate", np.where(leads, places, 0), axis)
        # By its place an extremum has a gradient.
        return np.take_along_axis(self, place, axis), place


_running("cummax", np.greater_equal)
_running("cummin", np.less_equal)


@aten("logsumexp", "special_logsumexp")
def logsumexp(self: Any, dim: Any, keepdim: bool = False) -> Any:
    x = cast(self, DEFAULT) if is_integral(self.dtype) else self
    axes = axes_of(dim, x.ndim)
    if any(x.shape[k] == 0 for k in axes):
        return np.log(np.sum(np.exp(x), axis=axes, keepdims=bool(keepdim)))
    if not axes:
        return np.log(np.exp(x)) if category(x.dtype) == 3 else np.copy(x)
    parts = np.real(x) if category(x.dtype) == 3 else x
    top = detached(np.max(parts, axis=axes, keepdims=True))
    top = np.where(np.isfinite(top), top, cast(0, top.dtype))
    total = np.log(np.sum(np.exp(x - top), axis=axes, keepdims=bool(keepdim)))
    return total + (top if keepdim else np.squeeze(top, axis=axes))


@aten("diff")
def diff(self: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    if prepend is not None or append is not None:
        raise refuse("diff", "with prepend or append", "join them with cat")
    if self.dtype == BOOL:
        raise refuse("diff", "on bools")
    return np.diff(self, n, axis_of(dim, self.ndim))


@aten("linalg_vector_norm")
def vector_norm(self: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    x = self if dtype is None else cast(self, dtype)
    out, axes = real_dtype(x.dtype), axes_of(dim, x.ndim)
    size = np.abs(x)
    size = cast(size, widened(out))
    wide = size.dtype

    def total(values: Any) -> Any:
        return np.sum(values, axis=axes, keepdims=bool(keepdim)) if axes else values

    order = float(ord)
    if any(x.shape[k] == 0 for k in axes) and order in (math.inf, -math.inf):
        raise refuse("linalg_vector_norm", "of infinite order on an empty tensor")
    if order == math.inf:
        norm = np.max(size, axis=axes, keepdims=bool(keepdim)) if axes else size
    elif order == -math.inf:
        norm = np.min(size, axis=axes, keepdims=bool(keepdim)) if axes else size
    elif order == 0:
        norm = total(cast(size != 0, wide))
    elif order == 1:
        norm = total(size)
    elif order == 2:
        square = np.real(x * np.conj(x)) if category(x.dtype) == 3 else cast(x, wide) * cast(x, wide)
        norm = _root(total(square))
    elif order > 0:
        norm = _root(total(_root(size, order)), 1.0 / order)
    else:
        powers = total(np.power(size, cast(order, wide)))
        norm = np.power(powers, cast(1.0 / order, wide))
    return cast(norm, out)


@aten("norm")
def norm(self: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


@aten("dist")
def dist(self: Any, other: Any, p: Any = 2) -> Any:
    return vector_norm(self - other, p)


@aten("_cdist_forward", "cdist")
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
    return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


@aten("_pdist_forward", "pdist")
def pdist(self: Any, p: float = 2.0) -> Any:
    rows, columns = np.triu_indices(int(self.shape[0]), 1)
    return vector_norm(np.take(self, rows, axis=0) - np.take(self, columns, axis=0), p, -1)


@aten("trace")
def trace(self: Any) -> Any:
    return sum_(np.diagonal(self))
