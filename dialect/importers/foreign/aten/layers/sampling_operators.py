"""Images at places between their elements, and images made smaller by means."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...sampling import grid_sampled
from ..aten_table import aten, refuse
from ..promotion import cast, is_float, widened
from .pool_operators import named_scales

_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    mode = _MODES[interpolation_mode]
    if mode == "cubic" and input.ndim != 4:
        raise refuse("grid_sampler", "of volumes with cubic interpolation")
    return grid_sampled(input, grid, mode, _PADDINGS[padding_mode], align_corners=align_corners)


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _keys(x: np.ndarray) -> np.ndarray:
    """Keys's kernel with the coefficient -0.5, as Pillow has it."""
    a, d = -0.5, np.abs(x)
    near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d < 1, near, np.where(d < 2, far, 0.0))


def _weights(have: int, out: int, step: float, width: int, kernel: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """What each of ``have`` elements counts in each of ``out``: (out, have), rows that sum to 1."""
    spread = max(step, 1.0)  # an image that becomes larger is interpolated
    middles = step * (np.arange(out) + 0.5)
    first = np.maximum((middles - width / 2 * spread + 0.5).astype(np.int64), 0)
    last = np.minimum((middles + width / 2 * spread + 0.5).astype(np.int64), have)
    places = np.arange(have)
    weights = kernel((places - middles[:, None] + 0.5) / spread)
    weights = np.where((places >= first[:, None]) & (places < last[:, None]), weights, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _with_means(name: str, width: int, kernel: Callable[[np.ndarray], np.ndarray]) -> None:
    @aten(name)
    def upsample(self: Any, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Any:
        if not is_float(self.dtype) or not all(map(int, self.shape[-2:])):
            raise refuse(name, f"on {self.dtype}, or without elements")
        x = cast(self, widened(self.dtype))
        factors: Any = named_scales(scales, named) or (None, None)
        for axis in (-1, -2):
            have, scale = int(x.shape[axis]), factors[axis]
            out = math.floor(have * float(scale)) if output_size is None else int(output_size[axis])
            if align_corners:
                step = (have - 1) / (out - 1) if out > 1 else 0.0
            else:
                step = 1 / scale if scale is not None and scale > 0 else have / out
            matrix = _weights(have, out, step, width, kernel).astype(x.dtype)
            x = np.matmul(x, matrix.T) if axis == -1 else np.matmul(matrix, x)
        return cast(x, self.dtype)


_with_means("_upsample_bilinear2d_aa", 2, _triangle)
_with_means("_upsample_bicubic2d_aa", 4, _keys)
