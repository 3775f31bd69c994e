"""Images at places between their elements."""

from __future__ import annotations

from typing import Any

from ...sampling import grid_sampled
from ..aten_table import aten, refuse

_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    mode = _MODES[interpolation_mode]
    if mode == "cubic" and input.ndim != 4:
        raise refuse("grid_sampler", "of volumes with cubic interpolation")
    return grid_sampled(input, grid, mode, _PADDINGS[padding_mode], align_corners=align_corners)


__all__ = ["grid_sampler"]
