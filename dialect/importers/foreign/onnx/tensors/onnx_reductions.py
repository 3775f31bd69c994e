"""ONNX's reductions, cumulative sums, and the places of extremes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....numpy.neural.layer_inputs import narrowed, widened
from ...size_values import as_number, as_numbers, each, product
from ..onnx_table import onnx_op


def _extreme(function: Callable, *, largest: bool) -> Callable:
    """A maximum or minimum, which has a value over no elements: the neutral one of the dtype."""

    def reduce(x: Any, axes: Any, keepdims: bool) -> Any:
        chosen = range(x.ndim) if axes is None else axes
        if not any(x.shape[k] == 0 for k in chosen):
            return function(x, axis=axes, keepdims=keepdims)
        if x.dtype == np.bool_:
            neutral: Any = not largest
        elif x.dtype.kind in "iu":
            neutral = np.iinfo(x.dtype).min if largest else np.iinfo(x.dtype).max
        else:
            neutral = -np.inf if largest else np.inf
        return np.full(_reduced_shape(x, axes, keepdims), neutral, x.dtype)

    return reduce


def _reduced_shape(x: Any, axes: Any, keepdims: bool) -> tuple[int, ...]:
    chosen = {k % x.ndim for k in (range(x.ndim) if axes is None else axes)}
    return tuple(1 if k in chosen else int(n) for k, n in enumerate(x.shape) if keepdims or k not in chosen)


def _summed(before: Callable | None = None, after: Callable | None = None) -> Callable:
    """A sum of a function, and a function of it; f16 and bf16 are summed in f32."""

    def reduce(x: Any, axes: Any, keepdims: bool) -> Any:
        wide = widened(x)[0]
        total = np.sum(wide if before is None else before(wide), axis=axes, keepdims=keepdims, dtype=wide.dtype)
        return narrowed(total if after is None else after(total), x.dtype)

    return reduce


def _mean(x: Any, axes: Any, keepdims: bool) -> Any:
    if x.dtype.kind in "iu":
        count = product(tuple(x.shape[k] for k in (range(x.ndim) if axes is None else axes)))
        total = np.sum(x, axis=axes, keepdims=keepdims, dtype=np.float64)
        return np.trunc(total / count).astype(x.dtype)
    return narrowed(np.mean(widened(x)[0], axis=axes, keepdims=keepdims), x.dtype)


def _product(x: Any, axes: Any, keepdims: bool) -> Any:
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _log_sum_exp(x: Any, axes: Any, keepdims: bool) -> Any:
    wide = widened(x)[0]
    if wide.dtype.kind in "iu":
        wide = wide.astype(np.float64)
    chosen = range(x.ndim) if axes is None else axes
    if any(x.shape[k] == 0 for k in chosen):
        return np.full(_reduced_shape(x, axes, keepdims), -np.inf, x.dtype)
    largest = np.max(wide, axis=axes, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, np.zeros((), wide.dtype)[()])
    total = np.log(np.sum(np.exp(wide - largest), axis=axes, keepdims=True)) + largest
    return narrowed(total if keepdims else np.reshape(total, _kept(x, axes)), x.dtype)


def _kept(x: Any, axes: Any) -> tuple[Any, ...]:
    chosen = {k % x.ndim for k in (range(x.ndim) if axes is None else axes)}
    return tuple(n for k, n in enumerate(x.shape) if k not in chosen)


_REDUCTIONS: dict[str, Callable] = {
    "ReduceL1": _summed(np.abs),
    "ReduceL2": _summed(np.square, lambda total: np.sqrt(total) if total.dtype.kind in "fV" else _root(total)),
    "ReduceLogSum": _summed(None, lambda total: np.log(total) if total.dtype.kind in "fV" else _log(total)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extreme(np.max, largest=True),
    "ReduceMean": _mean,
    "ReduceMin": _extreme(np.min, largest=False),
    "ReduceProd": _product,
    "ReduceSum": _summed(),
    "ReduceSumSquare": _summed(np.square),
}
# What reductions over no axes give, where a node asks for that: the function of each element.
_OF_ONE: dict[str, Callable] = {
    "ReduceL1": np.abs,
    "ReduceL2": np.abs,
    "ReduceLogSum": np.log,
    "ReduceSumSquare": np.square,
}
_OF_SIZES: dict[str, Callable] = {
    "ReduceSum": lambda a, b: a + b,
    "ReduceProd": lambda a, b: a * b,
    "ReduceMax": lambda a, b: a if a >= b else b,
    "ReduceMin": lambda a, b: a if a <= b else b,
}


def _root(total: Any) -> Any:
    return np.sqrt(total.astype(np.float64)).astype(total.dtype)


def _log(total: Any) -> Any:
    return np.log(total.astype(np.float64)).astype(total.dtype)


def _register(name: str, function: Callable) -> None:
    def sizes(call: Any, x: Any, axes_of: Any = None, /, *, keepdims: int, noop_with_empty_axes: int) -> Any:
        if name not in _OF_SIZES or not isinstance(x, tuple) or not x or noop_with_empty_axes:
            return NotImplemented
        total = functools.reduce(lambda a, b: each(_OF_SIZES[name], a, b), x)
        return (total,) if keepdims else total

    @onnx_op(name, sizes=sizes, kept=(1,))
    def handler(
        call: Any,
        x: Any,
        axes_of: Any = None,
        /,
        *,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Any:
        chosen = as_numbers(axes_of) if axes_of is not None else (None if axes is None else tuple(axes))
        if not chosen and noop_with_empty_axes:
            return _OF_ONE[name](x) if name in _OF_ONE else x
        return function(x, chosen or None, bool(keepdims))


for _name, _function in _REDUCTIONS.items():
    _register(_name, _function)


def _place(function: Callable) -> Callable:
    def handler(call: Any, x: Any, /, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        at = axis % x.ndim
        if select_last_index:
            places = x.shape[at] - 1 - function(np.flip(x, at), axis=at)
        else:
            places = function(x, axis=at)
        places = places if places.dtype == np.int64 else places.astype(np.int64)
        return np.expand_dims(places, at) if keepdims else places

    return handler


onnx_op("ArgMax")(_place(np.argmax))
onnx_op("ArgMin")(_place(np.argmin))


def _cumulative(function: Callable, neutral: int) -> Callable:
    def handler(call: Any, x: Any, axis_of: Any, /, *, exclusive: int = 0, reverse: int = 0) -> Any:
        at = as_number(axis_of) % x.ndim
        if reverse:
            x = np.flip(x, at)
        y = function(x, axis=at, dtype=x.dtype)
        if exclusive:
            before = (slice(None),) * at
            first = np.full_like(y[(*before, slice(0, 1))], neutral)
            y = np.concatenate([first, y[(*before, slice(0, -1))]], at)
        return np.flip(y, at) if reverse else y

    return handler


onnx_op("CumSum", kept=(1,))(_cumulative(np.cumsum, 0))
onnx_op("CumProd", kept=(1,))(_cumulative(np.cumprod, 1))
