"""What convolutions and pools of all sources need besides `pf.nn`: windows counted, and transposes of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


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


__all__ = ["stuffed", "turned_kernels", "window_count"]
