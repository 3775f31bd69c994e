"""Transforms of `numpy.fft` that are made of others, written as these: their gradients (see `compositions`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_OPPOSITE: dict[Any, Any] = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def opposite(norm: Any) -> Any:
    """The norm of the transform that is the transpose of one with this norm."""
    return _OPPOSITE[norm]


def resized(x: Any, axis: int, size: int) -> Any:
    """``x`` with so many elements along an axis: the first ones, or all with zeros behind them."""
    shape = list(np.shape(x))
    axis %= len(shape)
    if size <= shape[axis]:
        return x if size == shape[axis] else x[(*[slice(None)] * axis, slice(0, size))]
    shape[axis] = size - shape[axis]
    return np.concatenate([x, np.zeros(shape, x.dtype)], axis)


def steps(a: Any, s: Any, axes: Any) -> list[tuple[int | None, int]]:
    """The number of points, None for all there are, and the axis of each transform."""
    if axes is None:
        rank = np.ndim(a)
        axes = range(rank) if s is None else range(rank - len(s), rank)
    sizes = [None] * len(axes) if s is None else [None if n in (None, -1) else int(n) for n in s]
    return list(zip(sizes, axes, strict=True))


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return np.fft.irfft(np.conj(a), n, axis, opposite(norm))


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return np.conj(np.fft.rfft(a, n, axis, opposite(norm)))


def _rfftn(a: Any, s: Any, axes: Any, norm: Any) -> Any:
    *others, (n, axis) = steps(a, s, axes)
    a = np.fft.rfft(a, n, axis, norm)
    for n, axis in reversed(others):
        a = np.fft.fft(a, n, axis, norm)
    return a


def _irfftn(a: Any, s: Any, axes: Any, norm: Any) -> Any:
    *others, (n, axis) = steps(a, s, axes)
    for size, place in others:
        a = np.fft.ifft(a, size, place, norm)
    return np.fft.irfft(a, n, axis, norm)


def rfftn(a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: Any = None) -> Any:
    return _rfftn(a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: Any = None) -> Any:
    return _rfftn(a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: Any = None) -> Any:
    return _irfftn(a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: Any = None) -> Any:
    return _irfftn(a, s, axes, norm)


COMPOSITIONS: dict[str, Callable[..., Any]] = {
    f"numpy.fft.{f.__name__}": f for f in (hfft, ihfft, irfft2, irfftn, rfft2, rfftn)
}
