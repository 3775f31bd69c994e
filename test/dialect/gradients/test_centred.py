"""Terms that provably sum to zero are left out of the gradients of means; all others stay."""

import numpy as np
import profuse as pf
import pytest

X = np.random.default_rng(6).standard_normal((3, 4))
V = np.random.default_rng(7).standard_normal((3, 4))
R = np.arange(1.0, 4.0)[:, None]


@pytest.fixture(autouse=True)
def _no_cache():
    with pf.knobs.override(cache=False):
        yield


def layer_norm(x):
    c = x - np.mean(x, axis=-1, keepdims=True)
    return (c / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + 0.1) * V).sum()


def batch_norm(x):
    c = x - x.mean(0)
    return (c / np.sqrt((c * c).mean(0) + 0.1) * V).sum()


def with_new_axis(x):
    c = x - x.mean(1)[:, None]
    return (c / np.sqrt((c**2).mean(1) + 0.1)[:, None] * V).sum()


def of_all(x):
    c = x.mean() - x
    return ((c * c).sum() + (c * V).sum()) / 3


def squares_alone(x):
    c = x - x.mean(1, keepdims=True)
    return 3 * (c * c).sum()


def of_some_axes(x):
    y = np.reshape(x, (3, 2, 2))
    c = y - y.mean((1, 2), keepdims=True)
    return (c / np.sqrt((c * c).mean((1, 2), keepdims=True) + 0.1) * V.reshape(3, 2, 2)).sum()


def twice(x):
    rows = x - x.mean(1, keepdims=True)
    c = rows - rows.mean(0)
    return (c * c).sum() + (rows * V).sum()


def weighted_along_the_axis(x):
    c = x - x.mean(1, keepdims=True)
    return (c * c * V).sum()


def mean_of_another(x):
    c = x - (x * x).mean(1, keepdims=True)
    return (c * c).sum()


def along_the_other_axis(x):
    y = x[:3, :3]
    c = y - y.mean(1)  # the mean of row j is subtracted from column j
    return (c * c).sum()


def factors_of_columns(x):
    c = x - x.mean(1, keepdims=True)
    return (c * c / np.sqrt((x * x).mean(0) + 1)).sum()


def of_size_one(x):
    """The weights are of size 1 along the axis in this call; they need not be in others."""
    weights = np.sin(x[:, :1])
    c = x - x.mean(1, keepdims=True)
    return (c * c * weights).sum() + (weights * weights).sum()


def added_along_rows(x):
    """What is added has fewer axes: it is summed over more of them on its way to the mean."""
    m = x.mean(0)
    c = x - m
    return ((c * c).sum(0) * V[0]).sum() + (np.sin(m) * c).sum()


ZERO = (layer_norm, batch_norm, with_new_axis, of_all, squares_alone, of_some_axes, twice)
STAY = (weighted_along_the_axis, mean_of_another, along_the_other_axis, factors_of_columns, of_size_one)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", (*ZERO, *STAY, added_along_rows), ids=lambda f: f.__name__)
def test_gradients(f):
    found, step = pf.grad(f), 1e-6
    for k in range(3):
        direction = np.cos(np.arange(12.0) * (k + 1)).reshape(3, 4)
        slope = (f(X + step * direction) - f(X - step * direction)) / (2 * step)
        np.testing.assert_allclose((found(X) * direction).sum(), slope, rtol=1e-6, atol=1e-8)
    told = "are left out: they are multiples of what the mean is subtracted from"
    if f in ZERO:
        assert told in found.explain()
    if f in STAY:
        assert told not in found.explain()


def test_second_derivatives():
    """The gradient is right as a function, not at a point alone."""
    second = pf.grad(lambda x: (pf.grad(layer_norm)(x) * np.sin(V * 3)).sum())
    first, step = pf.grad(layer_norm), 1e-6
    direction = np.cos(np.arange(12.0)).reshape(3, 4)
    ahead, behind = ((first(X + s * direction) * np.sin(V * 3)).sum() for s in (step, -step))
    slope = (ahead - behind) / (2 * step)
    np.testing.assert_allclose((second(X) * direction).sum(), slope, rtol=1e-6)


def test_sizes_of_other_calls():
    """What holds for the sizes of a trace, and for those alone, is not used."""
    jitted = pf.grad(lambda x, w: (lambda c: (c * c * w).sum())(x - x.mean(1, keepdims=True)))
    for w in (R, V, R):
        got = jitted(X, w)
        c = X - X.mean(1, keepdims=True)
        want = 2 * c * w - (2 * c * w).mean(1, keepdims=True)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
