"""Whether what a kernel gives is what it should give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from .reference import is_float

_FACTOR = 8  # of the range in which nearby evaluations lie
_ULPS = 16  # that any inexact result may be off by


@dataclass(frozen=True)
class Judged:
    """One result, element by element.

    Attributes:
        wrong: elements that cannot be explained by rounding.
        skipped: how many rounding may make anything of.
    """

    wrong: np.ndarray
    skipped: int

    def worst(self, found: np.ndarray, expected: np.ndarray) -> str:
        """The first wrong element, in words."""
        at = tuple(int(k) for k in np.argwhere(self.wrong)[0])
        count = int(self.wrong.sum())
        return (
            f"element {list(at)} is {found[at]!s}, not {expected[at]!s} "
            f"({count} of {self.wrong.size} wrong)"
        )


def judge(
    found: np.ndarray,
    expected: np.ndarray,
    nearby: Sequence[np.ndarray],
    *,
    rounds: bool,
    moves: bool,
) -> Judged:
    """Compare one result of a kernel with the definition's.

    Args:
        nearby: the same result of evaluations with moved operands.
        rounds: some op on the way to it rounds.
        moves: elements are only moved: the signs of zeros count.
    """
    with np.errstate(all="ignore"):
        if not is_float(expected):
            unstable = _any([n != expected for n in nearby], expected.shape)
            return Judged((found != expected) & ~unstable, int(unstable.sum()))
        nan = np.isnan(expected)
        same = (found == expected) | (np.isnan(found) & nan)
        if moves:
            same &= nan | (np.signbit(found) == np.signbit(expected))
        if not rounds or same.all():
            return Judged(~same, 0)
        return _rounded(found, expected, nearby, same)


def _rounded(
    found: np.ndarray, expected: np.ndarray, nearby: Sequence[np.ndarray], same: np.ndarray
) -> Judged:
    size = np.abs(np.where(np.isfinite(expected), expected, 0))
    limit = float(ml_dtypes.finfo(expected.dtype).max)
    ulp = _spacing(size)
    f, e = found.astype(np.float64), expected.astype(np.float64)
    classes = _class(e)
    unstable = np.zeros(e.shape, bool)
    range_ = np.zeros(e.shape)
    for other in nearby:
        n = other.astype(np.float64)
        unstable |= _class(n) != classes
        range_ = np.fmax(range_, np.where(np.isfinite(n) & np.isfinite(e), np.abs(n - e), 0))
    near = np.abs(f - e) <= _FACTOR * range_ + _ULPS * ulp + _floor(expected.dtype)
    # Beyond the largest number results are infinite or nearly so, as they are rounded.
    edge = np.isinf(e) & (np.abs(f) > 0.9 * limit) & (np.sign(f) == np.sign(e))
    edge |= np.isinf(f) & (np.abs(e) > 0.9 * limit) & (np.sign(f) == np.sign(e))
    # Where nothing is told but the order of magnitude, little is.
    usual = size.astype(np.float64).mean() if size.size else 0.0
    weak = unstable | (_FACTOR * range_ > np.abs(e) + 0.01 * usual)
    return Judged(~(same | near | edge | unstable), int(weak.sum()))


def _floor(dtype: np.dtype) -> float:
    """Below this it is not told what a result is: functions of NumPy may underflow on their way.

    Those of f16 are computed in f32 and do not.
    """
    return 0.0 if dtype == np.float16 else 2.0**10 * float(ml_dtypes.finfo(dtype).tiny)


def _class(x: np.ndarray) -> np.ndarray:
    """0 of numbers, 1 and 2 of infinities, 3 of NaN."""
    return np.where(np.isnan(x), 3, np.where(np.isinf(x), np.where(x > 0, 1, 2), 0))


def _spacing(size: np.ndarray) -> np.ndarray:
    """A unit in the last place of each number, at least that of the smallest normal one."""
    bits = f"i{size.itemsize}"
    one = np.array(1, bits)
    raised = (np.ascontiguousarray(size).view(bits).reshape(size.shape) + one).view(size.dtype)
    return raised.astype(np.float64) - size.astype(np.float64)


def _any(masks: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, bool)
    for mask in masks:
        out |= mask
    return out
