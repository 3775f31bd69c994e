"""Maxima that provably cancel have no gradient; all others have theirs."""

import numpy as np
import profuse as pf
import pytest

X = np.random.default_rng(5).standard_normal((3, 4))
LABELS = np.array([0, 2, 1])
U = np.arange(4.0)


@pytest.fixture(autouse=True)
def _no_cache():
    with pf.knobs.override(cache=False):
        yield


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True) * U).sum()


def cross_entropy(x):
    top = x.max(axis=-1, keepdims=True)
    lse = np.log(np.exp(x - top).sum(axis=-1)) + top[:, 0]
    return (lse - np.take_along_axis(x, LABELS[:, None], axis=-1)[:, 0]).mean()


def log_softmax(x):
    t = x - x.max(1)[:, None]
    return ((t - np.log(np.exp(t).sum(1, keepdims=True))) * U).sum()


def by_columns(x):
    e = np.exp(x.T - x.max(1))
    return (e / e.sum(0) * U[:, None]).sum()


def smallest(x):
    e = np.exp(x.min(1, keepdims=True) - x)
    return (e / e.sum(1, keepdims=True) * U).sum()


def weighted(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return ((e * U).sum(1) / e.mean(1)).sum()


def numerator_alone(x):
    return (np.exp(x - x.max(1, keepdims=True)) * U).sum()


def summed_along_the_other_axis(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return (e / e.sum(0, keepdims=True) * U).sum()


def without_adding_back(x):
    top = x.max(1)
    return np.log(np.exp(x - top[:, None]).sum(1)).sum()


def added_back_twice(x):
    top = x.max(1)
    return (np.log(np.exp(x - top[:, None]).sum(1)) + 2 * top).sum()


def other_rows(x):
    top = x.max(1, keepdims=True)
    return (np.log(np.exp(x - top).sum(1)) + top[::-1, 0] * np.array([1.0, 2, 3])).sum()


def other_columns(x):
    e = np.exp(x[:3, :3] - x[:3, :3].max(1))  # along the columns, not along the rows
    return (e / e.sum(1, keepdims=True) * U[:3]).sum()


def returned(x):
    top = x.max(1, keepdims=True)
    e = np.exp(x - top)
    return (e / e.sum(1, keepdims=True)).sum() + (top * top).sum()


def squared(x):
    t = x - x.max(1, keepdims=True)
    return (t * t).sum()


def rounded(x):
    top = x.max(1, keepdims=True)
    return ((x - top).astype(np.int64) + top).sum()


def in_a_branch(x):
    top = x.max(1, keepdims=True)
    e = np.exp(x - top)
    p = e / e.sum(1, keepdims=True)
    return pf.cond(x.sum() > 0, lambda: p * top, lambda: p + top).sum()


CANCEL = (softmax, cross_entropy, log_softmax, by_columns, smallest, weighted)
STAY = (
    numerator_alone,
    summed_along_the_other_axis,
    without_adding_back,
    added_back_twice,
    other_rows,
    other_columns,
    returned,
    squared,
    rounded,
    in_a_branch,
)


@pytest.mark.parametrize("f", (*CANCEL, *STAY), ids=lambda f: f.__name__)
def test_gradients(f):
    found, direction, step = pf.grad(f), np.cos(np.arange(12.0)).reshape(3, 4), 1e-6
    slope = (f(X + step * direction) - f(X - step * direction)) / (2 * step)
    np.testing.assert_allclose((found(X) * direction).sum(), slope, rtol=1e-6, atol=1e-8)
    told = "is left out: the results do not depend on what is subtracted there" in found.explain()
    assert told == (f in CANCEL)
