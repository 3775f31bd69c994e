"""Forward halves whose caller keeps arguments and results itself: these are not given back, nor copied."""

from __future__ import annotations

import numpy as np
import profuse as pf
from profuse.dialect.autodiff.pullback import Forward, backward


def layer(x, w):
    return (np.tanh(x @ w) * 2,)


def test_what_the_caller_has_is_named_and_the_rest_is_given():
    rng = np.random.default_rng(0)
    x, w, g = rng.random((3, 4)), rng.random((4, 2)), rng.random((3, 2))
    forward = pf.jit(Forward(layer, (0, 1), borrows=True), unsupported="raise", background=False)
    pull = pf.jit(backward, unsupported="raise", background=False)
    for _ in range(3):
        (y,), saved, token = forward(x, w)
        assert {0, 1} <= set(token.borrowed) and len(saved) <= 1
        assert not any(np.shares_memory(s, other) for s in saved for other in (x, w, y))
        kept = [y if k < 0 else (x, w)[k] for k in token.borrowed]
        dx, dw = pull(token, [*saved, *kept], [g])
        slope = g * 2 * (1 - np.tanh(x @ w) ** 2)
        np.testing.assert_allclose(dx, slope @ w.T)
        np.testing.assert_allclose(dw, x.T @ slope)
    assert (forward.state().tier, pull.state().tier) == ("optimized", "optimized")


def test_arrays_of_which_the_shape_alone_is_read_are_named_apart():
    """They may be written to; what is computed from the result keeps that, and not what it is of."""
    rng = np.random.default_rng(0)
    x, w, g = rng.random((3, 4)), rng.random(4), rng.random((3, 4))
    wide = pf.jit(Forward(lambda x, w: (x + w,), (0, 1), borrows=True), unsupported="raise", background=False)
    turned = pf.jit(Forward(lambda x: (np.exp(x.reshape(4, 3)),), (0,), borrows=True), unsupported="raise")
    pull = pf.jit(backward, unsupported="raise", background=False)
    for _ in range(3):
        (y,), saved, token = wide(x, w)
        assert (saved, token.borrowed, set(token.shaped)) == ([], (), {0, 1})
        dx, dw = pull(token, [np.full_like((y if k < 0 else (x, w)[k]), np.nan) for k in token.shaped], [g])
        np.testing.assert_allclose(dx, g)
        np.testing.assert_allclose(dw, g.sum(0))
    (y,), saved, token = turned(x)
    assert (saved, token.borrowed, token.shaped) == ([], (~0,), (0,))
    (dx,) = pull(token, [np.full_like(x, np.nan), y], [g.reshape(4, 3)])
    np.testing.assert_allclose(dx, g * np.exp(x))
