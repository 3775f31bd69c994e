"""Compares a kernel's results with the expected results, and allows for rounding."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from ....dialect.dataclass import dataclass
from .nudges import is_float, parts_of, sizes_of_parts

_FACTOR = 8  # results may lie within this many times the range of nearby evaluations
_ULPS = 16  # units in the last place by which any inexact result may differ


@dataclass(frozen=True)
class Judged:
    """The outcome of comparing one result.

    Attributes:
        wrong: number of elements whose difference rounding does not explain.
        skipped: number of elements that rounding can turn into any value; they are not judged.
        worst: the first wrong element, in words.
    """

    wrong: int
    skipped: int = 0
    worst: str = ""


class Result:
    """One result of a kernel, with the expected result.

    Args:
        result: the kernel's.
        expected: the result of tier 0, of the same shape and dtype.
        rounds: True if an op on the way to this result rounds.
        moves: True if the function only moves elements; then the signs of zeros are compared.
        most: if more elements differ, only this many are judged; None = no limit.
        picked: the row numbers that ``result`` and ``expected`` contain; None = all rows.

    Attributes:
        in_part: True if only a part of the differing elements is judged.
        compared: number of compared elements.
    """

    def __init__(
        self,
        result: np.ndarray,
        expected: np.ndarray,
        *,
        rounds: bool,
        moves: bool,
        most: int | None = None,
        picked: np.ndarray | None = None,
    ) -> None:
        self._picked = picked
        self._is_complex = expected.dtype.kind == "c"
        if self._is_complex:
            result, expected = parts_of(result), parts_of(expected)
        self._found, self._expected, self.rounds = result, expected, rounds
        with np.errstate(all="ignore"):
            same = np.asarray(result == expected)
            if is_float(expected):
                nan = np.isnan(expected)
                same |= np.isnan(result) & nan
                if moves:
                    same &= nan | (np.signbit(result) == np.signbit(expected))
        self._places = np.flatnonzero(~same)
        count = self._places.size
        self.in_part = rounds and most is not None and count > most
        self.compared = result.size
        if self.in_part:
            assert most is not None
            self._places = np.random.default_rng(count).choice(self._places, most, replace=False)
            self.compared -= count - most

    def judge(self, nearby: Sequence[np.ndarray]) -> Judged:
        """Compare, given the same result of evaluations with moved operands."""
        places = self._places
        if self._is_complex:
            nearby = [parts_of(n) for n in nearby]
        f, e = self._found.ravel()[places], self._expected.ravel()[places]
        around = [n.ravel()[places] for n in nearby]
        with np.errstate(all="ignore"):
            if not self.rounds:
                right = weak = np.zeros(f.shape, bool)
            elif not is_float(e):
                right = weak = _any([n != e for n in around], e.shape)
            else:
                # Errors of the parts of complex numbers are relative to the modulus.
                sizes = sizes_of_parts(self._expected).ravel()[places] if self._is_complex else e
                right, weak = self._rounded(f, e, around, sizes)
        wrong = places[~right]
        worst = self._in_words(int(wrong.min()), wrong.size) if wrong.size else ""
        return Judged(wrong.size, int(weak.sum()), worst)

    def _rounded(
        self, result: np.ndarray, expected: np.ndarray, nearby: Sequence[np.ndarray], sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Two masks: elements whose difference rounding explains, and elements not judged."""
        limit = float(ml_dtypes.finfo(expected.dtype).max)
        ulp = _spacing(np.abs(np.where(np.isfinite(sizes), sizes, 0)))
        f, e = result.astype(np.float64), expected.astype(np.float64)
        classes = _class(e)
        unstable = np.zeros(e.shape, bool)
        range_ = np.zeros(e.shape)
        for other in nearby:
            n = other.astype(np.float64)
            unstable |= _class(n) != classes
            range_ = np.fmax(range_, np.where(np.isfinite(n) & np.isfinite(e), np.abs(n - e), 0))
        near = np.abs(f - e) <= _FACTOR * range_ + _ULPS * ulp + _floor(expected.dtype)
        # Near the largest number, rounding decides whether a result is infinite.
        edge = np.isinf(e) & (np.abs(f) > 0.9 * limit) & (np.sign(f) == np.sign(e))
        edge |= np.isinf(f) & (np.abs(e) > 0.9 * limit) & (np.sign(f) == np.sign(e))
        # Elements of which only the order of magnitude is known do not count as judged.
        usual = np.where(np.isfinite(e), np.abs(e), 0).mean() if e.size else 0.0
        weak = unstable | (_FACTOR * range_ > np.abs(e) + 0.01 * usual)
        # A divisor of which only the order of magnitude is known may be zero.
        divided = np.isinf(f) & np.isfinite(e) & (_FACTOR * range_ > np.abs(e)) & (range_ > 0)
        return near | edge | unstable | divided, weak

    def _in_words(self, place: int, count: int) -> str:
        at = np.unravel_index(place, self._found.shape)
        index = [int(k) for k in at]
        if self._picked is not None:
            index[0] = int(self._picked[index[0]])
        return f"element {index} is {self._found[at]!s}, not {self._expected[at]!s} ({count} of {self.compared} wrong)"


def _floor(dtype: np.dtype) -> float:
    """The absolute error that is always allowed: NumPy's functions may underflow inside.

    It is 0 for f16, because these functions compute f16 in f32 and do not underflow.
    """
    return 0.0 if dtype == np.float16 else 2.0**10 * float(ml_dtypes.finfo(dtype).tiny)


def _class(x: np.ndarray) -> np.ndarray:
    """The class of each element: 0 finite, 1 infinity, 2 negative infinity, 3 NaN."""
    return np.where(np.isnan(x), 3, np.where(np.isinf(x), np.where(x > 0, 1, 2), 0))


def _spacing(size: np.ndarray) -> np.ndarray:
    """The distance from each number to the next larger one."""
    bits = f"i{size.itemsize}"
    one = np.array(1, bits)
    raised = (np.ascontiguousarray(size).view(bits).reshape(size.shape) + one).view(size.dtype)
    return raised.astype(np.float64) - size.astype(np.float64)


def _any(masks: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, bool)
    for mask in masks:
        out |= mask
    return out
