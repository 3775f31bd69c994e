"""Rounding once where NumPy would round twice.

A sum of two f64 numbers is first rounded *to odd*: cut off, and its last bit set if anything was
lost.  Rounding that to any format at least two bits shorter gives what rounding the exact sum
would.
"""

from __future__ import annotations

import numpy as np

from .types import BF16


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``a * b + c`` rounded once.

    Exact for f16, bf16 and f32.  f64 is exact where neither a product nor its error term over- or
    underflows; else it is rounded twice.
    """
    dtype = a.dtype
    if dtype != np.float64:
        wide = [v.astype(np.float64) for v in (a, b, c)]
        return narrow(_add_to_odd(wide[0] * wide[1], wide[2]), dtype)
    plain = a * b + c
    product, error = _two_product(a, b)
    high, low = _two_sum(c, error)
    total, rest = _two_sum(product, high)
    exact = total + _add_to_odd(rest, low)
    return np.where(np.isfinite(exact) & np.isfinite(plain), exact, plain)


def narrow(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An f64 array rounded once to ``dtype``; ml_dtypes goes by way of f32."""
    if dtype != BF16:
        return x.astype(dtype)
    near = x.astype(np.float32)
    bits = near.view(np.int32)
    finite = np.isfinite(near)
    # Step towards zero where rounding went away from it, then mark what was lost.
    beyond = finite & (np.abs(near.astype(np.float64)) > np.abs(x))
    bits = np.where(beyond, bits - 1, bits)
    lost = finite & (bits.view(np.float32).astype(np.float64) != x)
    return np.where(lost, bits | 1, bits).view(np.float32).astype(BF16)


def _add_to_odd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    even = (bits & 1 == 0) & (error != 0) & np.isfinite(total)
    away = (error > 0) == (total > 0)
    return np.where(even, np.where(away, bits + 1, bits - 1), bits).view(np.float64)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = np.asarray(a + b)
    part = total - a
    error = (a - (total - part)) + (b - part)
    return total, error


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high
