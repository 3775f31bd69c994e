"""What convolutions and pools of all sources need besides `pf.nn`: windows counted, and transposes of convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..numpy.neural.layer_inputs import narrowed, widened


def window_count(size: int, span: int, stride: int, before: int, behind: int, *, ceil_mode: bool) -> int:
    """How many windows of ``span`` elements, ``stride`` apart, an axis has with so many elements added at its ends.

    Args:
        ceil_mode: a last window that reaches over the end counts, too, unless it begins behind the input.
    """
    room = size + before + behind - span
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + before else count


def stuffed(x: Any, strides: Sequence[int]) -> Any:
    """``x`` with zeros between the elements of the axes from the third on, so that they lie ``strides`` apart."""
    for axis, stride in enumerate(strides, start=2):
        if stride == 1:
            continue
        size = x.shape[axis]
        pairs = [(0, 0)] * (x.ndim + 1)
        pairs[axis + 1] = (0, stride - 1)
        wide = np.pad(np.expand_dims(x, axis + 1), pairs)
        wide = np.reshape(wide, (*x.shape[:axis], size * stride, *x.shape[axis + 1 :]))
        x = wide[(slice(None),) * axis + (slice(0, 1 - stride),)]
    return x


def turned_kernels(w: Any, groups: int) -> Any:
    """Kernels (I, O / groups, ...) of a transposed convolution as those (O, I / groups, ...) of the one that it is."""
    channels, each, *sizes = (int(n) for n in w.shape)
    parts = np.reshape(w, (groups, channels // groups, each, *sizes))
    kernels = np.reshape(np.swapaxes(parts, 1, 2), (groups * each, channels // groups, *sizes))
    return np.flip(kernels, tuple(range(2, 2 + len(sizes))))


def convolved_windows(x: Any, w: Any, b: Any, strides: Sequence[int], dilations: Sequence[int], groups: int) -> Any:
    """The correlation of (N, C, ...) with kernels (O, C / groups, ...) along any number of axes, without padding."""
    count, dtype = len(strides), x.dtype
    x, w, b = widened(x, w, b)
    kernel = tuple(int(n) for n in w.shape[2:])
    spans = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True))
    spatial, inner = tuple(range(2, 2 + count)), tuple(range(2 + count, 2 + 2 * count))
    windows = sliding_window_view(x, spans, axis=spatial)
    every = slice(None)
    keys = (every, every, *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))
    windows = windows[keys]
    counts = tuple(int(n) for n in windows.shape[2 : 2 + count])
    each, out = math.prod(kernel) * int(w.shape[1]), int(w.shape[0])
    columns = np.reshape(np.transpose(windows, (0, 1, *inner, *spatial)), (x.shape[0], groups, each, math.prod(counts)))
    y = np.reshape(np.reshape(w, (groups, out // groups, each)) @ columns, (x.shape[0], out, *counts))
    return narrowed(y if b is None else y + np.reshape(b, (-1, *(1,) * count)), dtype)
