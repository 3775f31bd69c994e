"""Sums of float16 and bfloat16 in kernels against float64 of the same elements, rounded once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import profuse as pf
import pytest


def sums(x, y):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return x.sum(axis=1), x.sum(axis=0), x.mean(axis=1), e / e.sum(axis=1, keepdims=True), x @ y


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_sums_are_rounded_once(dtype, kind):
    """Half a unit in the last place for the sums, and what float32 loses of large terms.

    softmax rounds the difference, the exponential, their sum and the quotient.
    """
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((6, 1000)) + 0.5).astype(dtype)
    y = rng.standard_normal((1000, 3)).astype(dtype)
    jitted = pf.jit(sums, background=False, strategy=[(kind, 1)])
    found = [jitted(x, y) for _ in range(3)][-1]
    assert jitted.state().counters["kernel_launches"] >= 1
    a, b = x.astype(np.float64), y.astype(np.float64)
    expected, size = sums(a, b), sums(abs(a), abs(b))
    in_numpy = sums(x, y)
    eps = float(ml_dtypes.finfo(dtype).eps)
    for k in (0, 1, 2, 4):
        assert found[k].dtype == in_numpy[k].dtype  # products of bfloat16 are float32
        error = abs(found[k].astype(np.float64) - expected[k])
        assert (error <= 0.5 * eps * abs(expected[k]) + 1e-5 * size[k]).all(), k
    # A difference up to 8 is rounded to half of 4 eps, which the exponential makes relative.
    error = abs(found[3].astype(np.float64) - expected[3])
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    assert (error <= 5 * eps * expected[3] + tiny).all()
