"""Loops in branches: kernels of their own, also where the run that was profiled went elsewhere."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from native_loops import same


@pytest.fixture(autouse=True)
def as_users_call_it():
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def resample(x, w, u):
    """The array that the loop fills is made in the branch; its size is computed before."""
    n = len(x)
    w /= w.sum()
    if 1.0 / np.sum(w**2) < n / 2:
        c = np.cumsum(w)
        picked = np.zeros(n, dtype=np.int64)
        i = j = 0
        while i < n:
            if (i + u) / n < c[j]:
                picked[i] = j
                i += 1
            else:
                j += 1
        x[:] = x[picked]
        w[:] = 1.0 / n
    return np.sum(x * w)


def clean(x, limit):
    out = x * 1.0
    if np.abs(x).max() > limit:
        for i in range(1, len(x) - 1):
            if abs(x[i]) > limit:
                out[i] = 0.5 * (x[i - 1] + x[i + 1])
    return out


def either(x, least):
    y = np.zeros(len(x))
    if x[0] > least:
        s = 0.0
        for i in range(len(x)):
            s = 0.5 * s + x[i]
            y[i] = s
    else:
        for i in range(len(x)):
            y[len(x) - 1 - i] = x[i] * 2
    return y, y.sum()


def differences(x, least):
    m = len(x) // 2
    if x.sum() > least:
        y = np.empty(m)
        for i in range(m):
            y[i] = x[2 * i] - x[2 * i + 1]
        z = y + 1
    else:
        z = x[:m] * 2
    return z


def one_or_the_other(x, least):
    """The branch hands on the very array that its loop fills."""
    m = len(x) // 2
    if x.sum() > least:
        y = np.empty(m)
        for i in range(m):
            y[i] = x[2 * i] - x[2 * i + 1]
    else:
        y = x[m:]
    return np.tanh(y) + 1, y.sum()


def twice(x, least):
    """A branch in a branch, and a loop that carries an array of its own."""
    if x[0] > least:
        y = np.zeros(len(x))
        for k in range(3):
            new = x * k
            if x[1] > least:
                for i in range(1, len(x)):
                    new[i] += new[i - 1]
            y = y + new
    else:
        y = x - 1
    return y


X = np.random.default_rng(0).random(30)
EVEN, UNEVEN = np.ones(30), np.r_[np.full(2, 10.0), np.full(28, 0.01)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("function", "first", "later"),
    [
        (resample, (X, EVEN, 0.3), (X, UNEVEN, 0.3)),
        (clean, (X, 3.0), (X, 0.5)),
        (either, (X, 3.0), (X, -1.0)),
        (differences, (X, 100.0), (X, 0.0)),
        (one_or_the_other, (X, 100.0), (X, 0.0)),
        (twice, (X, 3.0), (X, -1.0)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_branch_that_no_profile_has_seen(function, first, later, turned):
    if turned:
        first, later = later, first
    f = pf.jit(function)
    for _ in range(3):
        same(f, function, first)
    assert f.state().counters["compile_failures"] == 0
    assert any("fusion_loop" in name for name in executor_of(f).result.kernels), f.explain()
    assert not any("round by round" in str(reason) for reason in f.state().reasons)
    same(f, function, later)
    before = f.state().counters["evaluated_ops"]
    same(f, function, later)
    assert f.state().counters["evaluated_ops"] - before < 10
    assert f.state().counters["voided_launches"] == 0
    for args in (first, later):
        same(f, function, (args[0][:20], *(a[:20] if a is UNEVEN else a for a in args[1:])))
