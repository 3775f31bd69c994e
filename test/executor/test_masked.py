"""Reductions of masked data, also where the mask leaves what changes no result, or every one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from every_case import pairs
from internals import executor_of

# What LLVM makes of them is what may be wrong.
pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.optimised]
RNG = np.random.default_rng(17)
DTYPES = [
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.float64,
    np.int8,
    np.uint8,
    np.int16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.bool_,
    np.complex64,
]


def softmax(x, axis):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top


REDUCTIONS = {
    "max": np.max,
    "min": np.min,
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "any": np.any,
    "all": np.all,
    "softmax": softmax,
    "logsumexp": logsumexp,
    "fmax": lambda x, axis: np.fmax.reduce(x, axis=axis),
    "fmin": lambda x, axis: np.fmin.reduce(x, axis=axis),
    "nanmax": lambda x, axis: np.nanmax(x, axis=axis),
    "nansum": lambda x, axis: np.nansum(x, axis=axis),
    "and": lambda x, axis: np.bitwise_and.reduce(x, axis=axis),
    "or": lambda x, axis: np.bitwise_or.reduce(x, axis=axis),
    "of negatives": lambda x, axis: np.max(-x, axis=axis),
    "of sizes": lambda x, axis: np.min(np.abs(x), axis=axis),
    "of kept": lambda x, axis: np.max(np.minimum(x, 2), axis=axis),
}
# Kinds of dtypes; NumPy takes no bfloat16 for a float that may be a NaN, and negates no bools.
OF_SOME = {
    "softmax": "fV",
    "logsumexp": "fV",
    "fmax": "f",
    "fmin": "f",
    "nanmax": "f",
    "nansum": "f",
    "and": "biu",
    "or": "biu",
    "of negatives": "fV",
    "of sizes": "fViu",
    "of kept": "fViu",
}
EXACT = ("max", "min", "fmax", "fmin", "nanmax", "of negatives", "of sizes", "of kept")
# The mask on either side, over rows, columns and everything.
WAYS = [(axis, first) for axis in (-1, 0, None) for first in (True, False)]


def is_float(dtype):
    return np.dtype(dtype).kind in "fV"


def constants(dtype):
    """Of each reduction, what changes no result, and what decides it; and another number."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return [False, True]
    if kind in "iu":
        info = np.iinfo(dtype)
        return [dtype(c) for c in (info.min, info.max, 0, 1, 5)]
    return [dtype(c) for c in (-np.inf, np.inf, np.nan, 0.0, -0.0, 1.0, -5.0)]


def masked(shape, dtype):
    """Numbers, and a mask that leaves out half of them, and all of a row and of a column."""
    if np.dtype(dtype).kind in "bi":
        x = RNG.integers(-4, 5, shape).astype(dtype)
    elif np.dtype(dtype).kind == "u":
        x = RNG.integers(0, 9, shape).astype(dtype)
    else:
        x = RNG.uniform(-2, 2, shape).astype(dtype)
    keep = RNG.random(shape) < 0.5
    keep[1] = keep[:, 2] = False
    keep[2] = keep[:, 5] = True
    return x, keep


def program(reduction, axis, first, values):
    """Reductions of an array in which a mask, or what it leaves, takes a value; one of each."""

    def reduced(x, keep):
        return tuple(reduction(np.where(keep, c, x) if first else np.where(keep, x, c), axis) for c in values)

    return reduced


def check(found, wanted, name, dtype):
    """Extrema are exact; sums are NumPy's up to rounding, those of halves NumPy's in float32."""
    size = np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1)
    scale = {2: 2e-2, 4: 2e-5}.get(size, 1e-12)
    for one, other in zip(found, wanted, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape
        if other.dtype.kind not in "fc" or name in EXACT:
            np.testing.assert_array_equal(one.astype(other.dtype), other)
        else:
            np.testing.assert_allclose(one.astype(other.dtype), other, scale, scale)


def widened(dtype):
    """What NumPy computes the results for a dtype in."""
    return np.float32 if is_float(dtype) and np.dtype(dtype).itemsize == 2 else dtype


def cases():
    for name, dtype, way in pairs(list(REDUCTIONS), DTYPES, WAYS):
        kind = np.dtype(dtype).kind
        kinds = OF_SOME.get(name, "fViubc")
        # Products of that many numbers leave the range of float16.
        if kind not in kinds or (name == "prod" and dtype is np.float16):
            continue
        yield pytest.param(name, dtype, *way, id=f"{name}-{np.dtype(dtype)}-{way[0]}-{way[1]}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "dtype", "axis", "first"), list(cases()))
def test_values(name, dtype, axis, first):
    x, keep = masked((7, 83), dtype)
    reduction, values, wide = REDUCTIONS[name], constants(dtype), widened(dtype)
    wanted = program(reduction, axis, first, [wide(v) for v in values])(x.astype(wide), keep)
    jitted = pf.jit(program(reduction, axis, first, values))
    for _ in range(3):
        check(jitted(x, keep), wanted, name, dtype)


def in_rounds(reduction, first, values):
    """The same of each row, in a loop whose rounds read what other rows have been."""

    def reduced(x, keep):
        out = np.zeros((len(x), len(values)))
        for i in range(len(x)):
            row, kept = x[i] + x[i // 2], keep[i]
            for k, c in enumerate(values):
                found = np.where(kept, c, row) if first else np.where(kept, row, c)
                out[i, k] = reduction(found, None)
        return out

    return reduced


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "dtype", "first"),
    pairs(
        ["max", "min", "sum", "prod", "any", "all", "of sizes", "of kept"],
        [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.uint64],
        [True, False],
    ),
)
def test_values_in_loops(name, dtype, first):
    x, keep = masked((5, 83), dtype)
    plain = in_rounds(REDUCTIONS[name], first, constants(dtype))
    wanted = plain(x, keep)
    jitted = pf.jit(plain)
    for _ in range(3):
        check(list(jitted(x, keep)), list(wanted), name, dtype)
    assert any("fusion_loop" in k for k in executor_of(jitted).result.kernels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_what_a_mask_picks(dtype):
    """NumPy's own words for it: ``x[mask].max()``, and ``where=`` with a start."""
    x, keep = masked((7, 83), dtype)
    least, most = constants(dtype)[:2]

    def plain(x, keep):
        return (
            x[keep].max(),
            x[keep].min(),
            x[keep].sum(),
            np.sum(x, 0, where=keep),
            np.max(x, -1, where=keep, initial=least),
            np.min(x, 0, where=keep, initial=most),
            np.prod(x, where=keep),
            np.any(x, -1, where=keep),
            np.all(x, where=keep),
        )

    jitted = pf.jit(plain)
    for _ in range(3):
        check(jitted(x, keep), plain(x, keep), "", dtype)
