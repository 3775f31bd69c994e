"""Arrays and sizes that random programs of `jax.lax` draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]
"""Its words, a function of jax, and the arguments."""


def sizes(rng: np.random.Generator, rank: int, most: int = 6) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(1, most + 1, rank))


def floats(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of both signs, of which some are equal, and some zeros."""
    x = rng.standard_normal(shape).astype(np.float32)
    return np.where(rng.random(shape) < 0.3, np.round(x), x).astype(np.float32)


def ints(rng: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    return rng.integers(low, high, shape).astype(np.int32)
