"""Checkpointed calls of jitted functions are repeated as they were served, whatever has been compiled meanwhile."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

W = np.random.default_rng(0).standard_normal((5, 5)) * 0.5
X = np.random.default_rng(1).standard_normal((16, 5))


def layer(x, w):
    return np.tanh(x @ w) + x


def around(call):
    """A function with Python between calls of a jitted one, one of which takes plain arrays."""

    def f(x, w):
        y = call(x, w)
        return call(y, w) * (0.5 if float(y.sum()) > 0 else 2.0) + call(X, W)

    return f


def gradient(call, layers, between=lambda: None):
    """The gradient of a model whose layers are this call; ``between`` is called before the backward run."""
    w, y = pf.array(W, requires_grad=True), X
    for _ in range(layers):
        y = call(y, w)
    loss = (y**2).sum()
    between()
    loss.backward()
    return w.grad


@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_compile_between_the_runs_changes_nothing(layers, runs, profiling):
    with pf.knobs.override(profiling_mode=profiling):
        for surrounded in (lambda f: f, around):
            f = pf.jit(layer, background=False, profiled_runs=runs)
            call, wanted = pf.checkpoint(surrounded(f)), gradient(surrounded(layer), layers)
            for _ in range(6):
                np.testing.assert_allclose(gradient(call, layers), wanted, rtol=1e-10)
            assert f.state().tier == "optimized"


@pytest.mark.parametrize("step", range(5))
def test_compiles_in_the_background_that_end_between_the_runs(step):
    f = pf.jit(layer, background=True)
    call, wanted = pf.checkpoint(around(f)), gradient(around(layer), 2)
    for k in range(7):
        found = gradient(call, 2, (lambda: f.wait(60)) if k == step else lambda: None)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_emitted_code_serves_calls_outside_and_python_those_that_are_repeated():
    f = pf.jit(layer, background=False)
    call, wanted = pf.checkpoint(f), gradient(layer, 1)
    for _ in range(20):
        gradient(f, 1)
    assert f.state().emitted
    for _ in range(3):
        np.testing.assert_allclose(gradient(call, 1), wanted, rtol=1e-10)
        np.testing.assert_allclose(gradient(f, 1), wanted, rtol=1e-10)
    assert f.state().emitted


def test_captured_runs_repeat_calls_as_they_were():
    f = pf.jit(layer, background=False)
    call, wanted = pf.checkpoint(f), gradient(layer, 3)
    with pf.knobs.override(background=False):
        for _ in range(6):
            w, y = pf.array(W, requires_grad=True), X
            for _ in range(3):
                y = call(y, w)
            with pf.compiled_autograd():
                (y**2).sum().backward()
            np.testing.assert_allclose(w.grad, wanted, rtol=1e-9)


def test_what_python_has_run_is_repeated_by_python():
    f = pf.jit(layer, background=False)
    call, wanted = pf.checkpoint(around(f)), gradient(around(layer), 1)
    for _ in range(4):
        with pf.disable_jit():
            w = pf.array(W, requires_grad=True)
            y = call(X, w)
        (y**2).sum().backward()
        np.testing.assert_allclose(w.grad, wanted, rtol=1e-10)
        np.testing.assert_allclose(gradient(call, 1), wanted, rtol=1e-10)


def test_jitted_functions_that_change_are_told():
    rng, f = np.random.default_rng(0), pf.jit(layer, background=False)
    call = pf.checkpoint(lambda x, w: (layer(x, w), f(X, rng.standard_normal((5, 5)))))
    for _ in range(4):
        y, _ = call(X, pf.array(W, requires_grad=True))
        with pytest.raises(pf.GradientError, match="does not compute the same"):
            y.sum().backward()
