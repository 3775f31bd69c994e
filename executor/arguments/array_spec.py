"""Descriptions of arguments, ``f32[4,8]``, and arrays made to fit them."""

from __future__ import annotations

import re

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.errors import ArgumentError, FileError
from ...dialect.ir.dtypes import DType, dtype_named


@dataclass(frozen=True)
class Spec:
    """Dtype and sizes of one array argument."""

    dtype: DType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """An array of this dtype and shape: standard normal, small integers, or coin tosses."""
        kind = self.dtype.kind
        if kind == "b":
            return np.asarray(rng.random(self.shape) < 0.5)
        if kind in "iu":
            return rng.integers(0, 8, self.shape).astype(self.dtype.numpy)
        values = rng.standard_normal(self.shape)
        if kind == "c":
            values = values + 1j * rng.standard_normal(self.shape)
        return np.asarray(values).astype(self.dtype.numpy)


def spec(dtype: str, *shape: int) -> Spec:
    """The spec of a dtype name and sizes, as in ``spec("f32", 4, 8)``.

    Raises DTypeError for an unknown dtype, ArgumentError for sizes that are no integers >= 0.
    """
    if any(not isinstance(d, int) or d < 0 for d in shape):
        raise ArgumentError(f"sizes must be integers >= 0, not {shape}")
    return Spec(dtype_named(dtype), shape)


def parse_spec(text: str) -> Spec:
    """``"f32[4,8]"`` -> Spec; raises ArgumentError for other text, DTypeError for the dtype."""
    match = re.fullmatch(r"\s*(\w+)\s*\[\s*((?:\d+\s*(?:,\s*\d+\s*)*)?)\]\s*", text)
    if not match:
        raise ArgumentError(f"{text!r} is no argument description", hint="write f32[4,8] or f64[]")
    return spec(match[1], *(int(d) for d in match[2].split(",") if d.strip()))


def load_npy(path: str) -> np.ndarray:
    """The array in a ``.npy`` file; never unpickles. Raises FileError."""
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"cannot read {path}: {error}", hint="expected a .npy file") from None
