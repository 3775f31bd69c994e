"""Numbers moved by units in the last place, and floats as they are compared: complex ones by their parts."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_DRAWN = 65537  # number of different random numbers; larger arrays repeat them


def is_float(array: Any) -> bool:
    """True for floats: arrays and numbers, including bfloat16 of `ml_dtypes`."""
    dtype = np.asarray(array).dtype
    return dtype.kind == "f" or dtype.name == "bfloat16"


def is_inexact(array: Any) -> bool:
    """True for floats and complex numbers."""
    return is_float(array) or np.asarray(array).dtype.kind == "c"


def parts_of(array: np.ndarray) -> np.ndarray:
    """Complex numbers as floats: a further axis has the real and the imaginary part."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    return array[..., None].view(array.real.dtype)


def sizes_of_parts(parts: np.ndarray) -> np.ndarray:
    """For each part, the larger part of its number; 0 in place of what is not finite."""
    sizes = np.where(np.isfinite(parts), np.abs(parts), 0)
    return np.broadcast_to(sizes.max(axis=-1, keepdims=True), parts.shape)


def _nudged_parts(array: np.ndarray, ulps: int, rng: np.random.Generator, together: bool) -> np.ndarray:
    """`nudge` for complex numbers, whose errors are relative to the modulus.

    A part that is 0 stays 0 if ``ulps`` is 1: so do the sides of branch cuts.
    """
    parts = parts_of(array)
    count = min(parts.size, _DRAWN)
    offsets = rng.choice([-ulps, ulps], 2) if together else rng.integers(-ulps, ulps, count, int, True)
    steps = np.resize(offsets, parts.shape)
    if ulps == 1:
        steps = np.where(parts == 0, 0, steps)
    with np.errstate(all="ignore"):
        moved = parts + steps.astype(parts.dtype) * np.spacing(sizes_of_parts(parts))
    moved = np.where(np.isfinite(parts) & np.isfinite(moved) & (steps != 0), moved, parts)
    return moved.astype(parts.dtype, copy=False).view(array.dtype)[..., 0]


def nudge(array: np.ndarray, ulps: int, rng: np.random.Generator, together: bool = False) -> np.ndarray:
    """Move each number by at most ``ulps`` units in the last place; zeros and infinities stay.

    ``together``: move all by exactly ``ulps``, and all in the same direction (away from zero, or
    towards it). NaNs get random signs, because the sign of a computed NaN is unspecified.
    """
    if not array.size:
        return array
    if array.dtype.kind == "c":
        return _nudged_parts(array, ulps, rng, together)
    bits = np.ascontiguousarray(array).view(f"i{array.itemsize}").reshape(array.shape)
    infinite, one, most = _bits_of_numbers(array.dtype)
    ulps = min(ulps, (infinite - one) // 2)
    # Drawing random numbers would take most of the time, so only a limited number is drawn.
    count = min(array.size, _DRAWN)
    if together:
        steps = np.full(array.shape, ulps if rng.integers(2) else -ulps, bits.dtype)
    elif count == array.size:
        steps = np.asarray(rng.integers(-ulps, ulps, array.shape, bits.dtype, True))
    else:
        steps = np.resize(rng.integers(-ulps, ulps, count, bits.dtype, True), array.shape)
    size = bits & most
    size -= ulps
    # Zeros and very small numbers stay: their ``size`` is negative now, which is large as unsigned.
    steps *= size.view(f"u{array.itemsize}") < infinite - 2 * ulps
    steps += bits
    moved = steps.view(array.dtype)
    nans = np.isnan(array)
    if nans.any():
        signs = np.resize(np.where(rng.integers(0, 2, count, dtype=bool), 1, -1), array.shape)
        moved = np.where(nans, np.copysign(array, signs.astype(array.dtype)), moved)
    return moved


@functools.cache
def _bits_of_numbers(dtype: np.dtype) -> tuple[int, int, int]:
    """The bits, as integers, of infinity and of 1 as floats of a dtype, and of all but the sign."""
    bits = np.dtype(f"i{dtype.itemsize}")
    infinite, one = (int(np.array(value, dtype).view(bits)) for value in (np.inf, 1))
    return infinite, one, int(np.iinfo(bits).max)
