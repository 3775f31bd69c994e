"""Masks without axes pick all of an array or nothing: ``w[w.sum() > 0] = 5``."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

STATEMENTS = """\
w[m] = 5
w[m] += 2
w[m] = w[m] * 2
w[m] = w[m] + w[m]
w[m, ...] = 3
w[..., m] = 3
w[m] = np.array([7.])
w[m] = np.arange(3.)
w[m] = np.ones((1, 3))
w[m] -= w[m].mean()
w[:, m] = 4
w[m, 0] = 4
w[m, 1:] = 4
w[m][:] = 3
w[np.True_] = 2
r = w[m]
r = w[~m]
r = w[m][m]
r = w[m, 0]
r = w[0, m]
r = w[:, m]
r = w[None, m]
r = w[m].sum()
r = w[m].sum(axis=0)
r = w[m].sum(axis=-1)
r = w[m].max(initial=0)
r = w[m].argmax()
r = w[m].shape
r = len(w[m])
r = w[m] * 2 + 1
r = w[m].T
r = w[m][0:1]
r = w[m][..., 0]
r = w[m].reshape(-1)
r = np.sort(w[m])
r = w[m].cumsum()
r = np.concatenate([w[m], w[m]])
r = w[m] @ np.ones(3)
v = w[m]; v[:] = 3; r = v
v = w[m]; v += 3; r = v""".splitlines()
MASKS = ("np.abs(x).sum() > k", "np.asarray(x.sum() > k)")


def outcome(function, x, k):
    with np.errstate(all="ignore"):
        try:
            w, r = function(x, k)
        except (IndexError, ValueError, TypeError) as error:
            return [type(error)]
    return [(type(v), np.shape(v), np.asarray(v).dtype, np.asarray(v).tolist()) for v in (w, r)]


@pytest.mark.sampled(10, each=())
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("mask", MASKS)
def test_as_numpy_does(statement, mask):
    scope = {"np": np}
    text = f"def f(x, k):\n    w, r, m = x.copy(), 0, {mask}\n    {statement}\n    return w, r"
    exec(text, scope)
    for shape in ((), (3,), (2, 3), (1, 3)):
        jitted = pf.jit(scope["f"], unsupported="python")
        x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        for k in (0.0, 100.0, 0.0, 100.0):
            found, wanted = outcome(jitted, x, k), outcome(scope["f"], x, k)
            if isinstance(wanted[0], type):
                assert issubclass(found[0], wanted[0])
            else:
                assert repr(found) == repr(wanted)


def test_writes_of_a_number_are_recorded():
    def reset(x):
        w = x.copy()
        w[x.sum() > 5] = 0
        w[np.asarray(x.max() < 0)] += 1
        return w

    jitted = pf.jit(reset, unsupported="raise")
    for x in (np.ones(4), np.full(4, 2.0), -np.ones(4)):
        for _ in range(3):
            np.testing.assert_array_equal(jitted(x), reset(x))
    assert jitted.state().counters["traces"] == 1
