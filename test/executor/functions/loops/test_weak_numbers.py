"""Branches of which one has a number of Python's, and the other a NumPy scalar: dtypes stay."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest


def largest(x, k):
    return x * max(k, 2)


def larger_than_a_float(x, k):
    return x * max(k, 2.5)


def expression(x, k):
    return x * (k if k > 2 else 2)


def branch(x, k):
    if k > 2:
        v = k
    else:
        v = 2.0
    return x * v


def further(x, k):
    v = max(k, 2.5) * 3 + 1
    return np.where(x > v, x, v)


def written(x, k):
    y = np.zeros_like(x)
    y[0] = max(k, 2.5)
    return y


FUNCTIONS = (largest, larger_than_a_float, expression, branch, further, written)
NUMBERS = ((np.float64(-2), np.float64(3)), (np.float32(-2), np.float32(3)), (-2.0, 3.0), (1, 3))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i1"])
def test_dtypes_are_numpys(function, dtype):
    x = np.arange(4).astype(dtype)
    for numbers in NUMBERS:
        jitted = pf.jit(function, unsupported="python")
        for k in numbers * 3:
            found, wanted = jitted(x, k), function(x, k)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_where_the_dtype_is_the_same_the_branch_is_recorded():
    jitted = pf.jit(larger_than_a_float)
    for k in (np.float64(-2), np.float64(3)) * 3:
        np.testing.assert_array_equal(jitted(np.ones(3), k), larger_than_a_float(np.ones(3), k))
    assert jitted.state().counters["traces"] == 1
