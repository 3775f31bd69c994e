"""Results of `vjp` and `jvp` are arrays without axes where the function's are, and scalars else."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

X = np.array([1.5, 2.0])


def written(x):
    total = np.zeros(())
    total += x.sum()
    return total


FUNCTIONS = {
    "an array that is written": written,
    "a view of one": lambda x: written(x)[...],
    "a reshape of one": lambda x: written(x).reshape(()),
    "a number of one": lambda x: written(x)[()] * 2,
    "an array of a sum": lambda x: np.array(x.sum()),
    "a view without axes": lambda x: x[0, ...],
    "the last axis away": lambda x: np.squeeze(x[:1]),
    "a product of one": lambda x: np.array(x[0]) * 3,
    "a pair": lambda x: (written(x), x.sum()),
    "a sum": lambda x: x.sum(),
}


def kinds(result):
    return [type(y) for y in (result if type(result) is tuple else (result,))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_kinds(name):
    f = FUNCTIONS[name]
    expected = kinds(f(X))
    for _ in range(4):
        assert kinds(pf.vjp(f, X)[0]) == expected
        value, tangent = pf.jvp(f, (X,), (np.ones(2),))
        assert kinds(value) == kinds(tangent) == expected
    assert kinds(pf.jit(lambda x: pf.jvp(f, (x,), (x,)))(X)[1]) == expected


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (lambda x: np.sqrt(x) * 0.0, (0.0,)),
        (lambda x, y: np.arctan2(x, y) * 0 + x, (0.0, 0.0)),
        (lambda x: x * 2 + 0.0 * np.log(x), (0.0,)),
        (lambda x: np.sqrt(x) * x, (0.0,)),
        (lambda x: (np.abs(x) ** 0.5 * np.array([0.0, 1.0])).sum(), (np.array([0.0, 4.0]),)),
    ],
)
def test_forward_mode_has_no_nan_where_reverse_mode_has_none(f, at):
    with np.errstate(all="ignore"):
        along = [np.ones_like(x) if isinstance(x, np.ndarray) else 1.0 for x in at]
        _, tangent = pf.jvp(f, at, along)
        _, pull = pf.vjp(f, *at)
        expected = sum(np.sum(g) for g in pull(1.0))
    assert np.isfinite(expected)
    np.testing.assert_allclose(tangent, expected)
