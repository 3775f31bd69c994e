"""Derivatives that are written anew at each call keep their traces, or an event tells of it."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import profuse as pf
import pytest
from profuse.executor.functions import grad

X, T = np.linspace(0.1, 1.0, 5), np.linspace(1.0, 2.0, 5)


def quartic(x):
    return np.sum(x**4)


def pair(x, y):
    return np.sum(np.sin(x) * y), y


def traced(run, times=5):
    before = sum(e.kind == "trace" for e in pf.events())
    found = [run() for _ in range(times)]
    return found, sum(e.kind == "trace" for e in pf.events()) - before


@pytest.mark.parametrize(
    ("run", "wanted"),
    [
        (lambda: pf.jvp(pf.grad(quartic), (X,), (T,))[1], 12 * X**2 * T),
        (lambda: pf.jvp(pf.grad(lambda_of_none), (X,), (T,))[1], 2 * T),
        (lambda: pf.jvp(pf.value_and_grad(quartic), (X,), (T,))[1][0], np.sum(4 * X**3 * T)),
        (lambda: pf.vjp(pf.grad(quartic), X)[1](T)[0], 12 * X**2 * T),
        (lambda: pf.jvp(pf.grad(pair, [1], has_aux=True), (X, T), (T, X))[1][0][0], np.cos(X) * T),
    ],
    ids=["jvp of grad", "another function", "value_and_grad", "vjp of grad", "options of grad"],
)
def test_a_derivative_of_a_gradient_is_traced_once(run, wanted):
    run()
    found, traces = traced(run)
    for y in found:
        np.testing.assert_allclose(y, wanted, rtol=1e-12)
    assert traces == 0


def lambda_of_none(x):
    return np.sum(x * x)


def test_other_arguments_of_a_gradient_are_another_derivative():
    first = pf.jvp(pf.grad(pair, 0, has_aux=True), (X, T), (T, X))[1][0]
    second = pf.jvp(pf.grad(pair, 1, has_aux=True), (X, T), (T, X))[1][0]
    np.testing.assert_allclose(first, -np.sin(X) * T * T + np.cos(X) * X, rtol=1e-12)
    np.testing.assert_allclose(second, np.cos(X) * T, rtol=1e-12)


def test_gradients_with_options_are_not_taken_for_others():
    plain = grad._jitted(grad.Jvp, pf.grad(quartic))
    assert grad._jitted(grad.Jvp, pf.grad(quartic)) is plain
    assert grad._jitted(grad.Jvp, pf.grad(quartic, name="named")) is not plain
    assert grad._jitted(grad.Jvp, pf.value_and_grad(quartic)) is not plain
    assert grad._jitted(grad.Jvp, pf.grad(pf.grad(quartic))) is not plain


def told():
    return [e for e in pf.events() if e.kind == "slower" and "keep it" in e.reason]


class Model:
    def loss(self, x):
        return np.sum(x**2)


def test_gradients_are_found_again_while_they_are_there():
    g = pf.grad(quartic)
    assert pf.grad(quartic) is g and pf.grad(quartic, 0) is g
    assert pf.grad(pf.grad(quartic)) is not g
    others = [
        pf.grad(quartic, (0,)),
        pf.grad(quartic, has_aux=True),
        pf.value_and_grad(quartic),
        pf.grad(quartic, name="named"),
        pf.grad(lambda_of_none),
    ]
    assert len({*map(id, (g, *others))}) == 6
    model, other = Model(), Model()
    g = pf.grad(model.loss)
    assert pf.grad(model.loss) is g and pf.grad(other.loss) is not g


def test_derivatives_are_those_of_the_settings_that_hold():
    """Graphs are made by some settings: `exact` decides about bits."""
    derivatives = [
        lambda: pf.grad(quartic),
        lambda: pf.value_and_grad(pair, has_aux=True),
        lambda: grad._jitted(grad.Jvp, quartic),
        lambda: grad._jitted(grad.Forward, quartic, None, 1.0),
    ]
    for derivative in derivatives:
        usual = derivative()
        for change in {"exact": True}, {"background": not pf.knobs.background}, {"loop_bytes": 1 << 20}:
            with pf.knobs.override(**change):
                changed = derivative()
                assert changed is not usual and derivative() is changed
            assert derivative() is usual


@pytest.mark.parametrize(
    ("run", "wanted"),
    [
        (lambda f: pf.grad(f)(X), 4 * X**3),
        (lambda f: pf.grad(pf.grad(f, 0), "x")(np.float64(0.5)), 12 * 0.25),
        (lambda f: pf.value_and_grad(f)(X)[1], 4 * X**3),
    ],
    ids=["grad", "grad of grad", "value_and_grad"],
)
def test_a_gradient_that_is_asked_for_again_is_kept(run, wanted):
    def local(x):
        return np.sum(x**4)

    for _ in range(3):
        run(local)
        gc.collect()
    found, traces = traced(lambda: (run(local), gc.collect())[0])
    for y in found:
        np.testing.assert_allclose(y, wanted, rtol=1e-12)
    assert traces == 0


def test_gradients_of_functions_that_are_made_anew_are_let_go_of():
    def step(k):
        batch = X * k
        pf.grad(lambda x: np.sum(x * batch))(X)
        return weakref.ref(batch)

    alive = [step(k) for k in range(3)]
    gc.collect()
    assert not any(batch() is not None for batch in alive)


@pytest.mark.parametrize("run", [lambda f: pf.jvp(f, (X,), (T,)), lambda f: pf.vjp(f, X)], ids=["jvp", "vjp"])
def test_functions_that_are_made_anew_are_let_go_of(run, monkeypatch):
    """And so is what they close over, such as the arrays of a step."""
    monkeypatch.setattr(grad, "_KEPT", 3)
    grad._made_of.clear()  # of what other tests have differentiated

    def step(k):
        batch = X * k
        run(lambda x: np.sum(x * batch))
        return weakref.ref(batch)

    run(quartic)
    alive = []
    for k in range(6):
        alive.append(step(k))
        assert traced(lambda: run(quartic), 1)[1] == 0  # one that is in use stays
    gc.collect()
    assert [batch() is not None for batch in alive] == [False] * 4 + [True] * 2


@pytest.mark.parametrize("what", ["grad", "value_and_grad", "jvp", "vjp"])
def test_what_is_made_again_and_again_is_told(what):
    start = len(told())

    def run():
        def cubic(x):
            return np.sum(x**3)

        if what == "jvp":
            return pf.jvp(cubic, (X,), (T,))
        if what == "vjp":
            return pf.vjp(cubic, X)
        return getattr(pf, what)(cubic)(X)

    for _ in range(3):
        run()
    assert len(told()) == start
    for _ in range(4):
        run()
    (event,) = told()[start:]
    assert event.level == "warning"
    assert event.function == "cubic"
    assert f"pf.{what} " in event.reason
    assert __file__ in event.reason


def test_one_that_is_kept_is_not_told():
    start = len(told())
    g = pf.grad(quartic)
    for _ in range(8):
        g(X)
        pf.jvp(quartic, (X,), (T,))
    gc.collect()
    assert len(told()) == start
