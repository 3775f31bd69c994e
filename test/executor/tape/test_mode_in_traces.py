"""Gradient mode inside of what is traced does what it does on the tape without `jit`."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError

X = np.array([0.3, -1.2, 0.7])
W = np.array([1.1, 0.4, -0.9])
SWITCH = pf.no_grad()


def target_network(x, w):
    online = np.tanh(x * w)
    with pf.no_grad():
        aim = x + 0.9 * np.tanh((x + 1) * w)
    return ((online - aim) ** 2).mean()


@pf.no_grad()
def frozen(x, w):
    return np.sin(x) * w


@pf.enable_grad
def thawed(x, w):
    return np.cos(x) * w


def decorated(x, w):
    return (frozen(x, w) * x * w).sum()


def held_outside(x, w):
    with SWITCH:
        scale = np.abs(x).max() * w
    return (scale * x).sum()


def both_ways(x, w):
    with pf.no_grad():
        a = x * w
        b = thawed(x, w)
        c = a * b
    return (a * x + b * w + c * x).sum()


def straight_through(x, w):
    y = x * w
    with pf.no_grad():
        rounded = np.round(y * 4) / 4
    return ((y + pf.stop_gradient(rounded - y)) ** 2 * w).sum()


def semi_gradient(x, w):
    value = x * w
    return ((value - (0.5 + 0.9 * value[::-1].detach())) ** 2).sum()


def softmax(x, w):
    z = x * w
    e = np.exp(z - z.detach().max())
    return (e / e.sum() * x).sum()


def views(x, w):
    with pf.no_grad():
        part, turned = x[1:], w.reshape(3, 1)
    return (part * w[:2]).sum() + (turned * x).sum()


def rounds(x, w):
    y = x * w
    for _ in range(30):
        with pf.no_grad():
            size = np.sqrt((y * y).sum())
        y = y / size + w * 0.1
    return y.sum()


def branch(x, w):
    with pf.no_grad():
        chosen = pf.cond(x.sum() > 0, lambda: x * w, lambda: w * 2)
    return (chosen * x * w).sum()


def handed_on(x, w):
    with pf.no_grad():
        y = x
    return (y * w).sum()


def numbers(x, w):
    with pf.no_grad():
        y, z = np.asarray(x), np.array(w)
    return (y * x * z * w).sum()


def moving_average(x, w):
    mean = np.ones(3)
    with pf.no_grad():
        mean *= 0.9
        mean += 0.1 * (x * w)
    return ((x - mean) ** 2 * w).sum()


FUNCTIONS = [
    target_network,
    decorated,
    held_outside,
    both_ways,
    straight_through,
    semi_gradient,
    softmax,
    views,
    rounds,
    branch,
    handed_on,
    numbers,
    moving_average,
]
BY_PYTHON = [moving_average]


def slopes(f, x=X, w=W):
    x, w = (pf.array(v, requires_grad=True) for v in (x, w))
    value = f(x, w)
    value.backward()
    return float(value), x.grad, w.grad


def is_same(found, expected):
    for g, h in zip(found, expected, strict=True):
        if h is None:
            assert g is None or not np.any(g)
        else:
            np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_jitted_functions_have_the_gradients_of_the_tape(f, profiling):
    expected = slopes(f)
    with pf.knobs.override(background=False, profiling_mode=profiling):
        jitted = pf.jit(f)
        for _ in range(5):
            is_same(slopes(jitted), expected)
    counters = jitted.state().counters
    assert counters["python_calls"] == (5 if f in BY_PYTHON else 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_transforms_have_the_gradients_of_the_tape(f):
    _, *expected = slopes(f)
    is_same(pf.grad(f, (0, 1))(X, W), expected)
    value, pull = pf.vjp(f, X, W)
    is_same(pull(np.float64(1)), expected)
    for k, basis in enumerate(np.eye(3)):
        for at, g in enumerate(expected):
            tangents = [basis if at == n else None for n in range(2)]
            got = pf.jvp(f, (X, W), tangents)
            is_same(got, (value, 0.0 if g is None else g[k]))


def test_a_jitted_function_without_gradients_gives_arrays_that_require_none():
    f = pf.jit(frozen, background=False)
    for _ in range(4):
        y = f(pf.array(X, requires_grad=True), W)
        assert isinstance(y, pf.Array) and not y.requires_grad
    assert f.state().counters["python_calls"] == 0


def test_gradients_that_a_function_asks_for_are_there_whatever_its_caller_wants():
    f = pf.jit(lambda x, w: (x * 2, thawed(x, w)), background=False)
    for off in (False, True, True, False, True, False, True):
        x = pf.array(X, requires_grad=True)
        if off:
            with pf.no_grad():
                plain, asked = f(x, W)
        else:
            plain, asked = f(x, W)
        assert plain.requires_grad != off
        asked.sum().backward()
        np.testing.assert_allclose(x.grad, -np.sin(X) * W)
    assert f.state().counters["python_calls"] == 4
    assert "asks for gradients, and its caller for none" in f.explain()


def test_a_jitted_function_in_a_trace_keeps_its_own_mode():
    inner = pf.jit(thawed, background=False)
    for profiling in (True, False):
        with pf.knobs.override(background=False, profiling_mode=profiling):

            def f(x, w):
                with pf.no_grad():
                    y = inner(x, w)
                return (y * x).sum()

            expected = np.cos(X) * W - np.sin(X) * W * X
            np.testing.assert_allclose(pf.grad(f)(X, W), expected)
            np.testing.assert_allclose(slopes(pf.jit(f))[1], expected)


@pytest.mark.parametrize("kind", ["grad", "vjp", "jvp"])
def test_a_gradient_that_is_computed_under_no_grad_is_one_and_has_none(kind):
    def cube(x, c):
        return (x**3 * c).sum()

    def f(x):
        with pf.no_grad():
            if kind == "grad":
                g = pf.grad(lambda z: cube(z, x))(x)
            elif kind == "vjp":
                g = pf.vjp(lambda z: cube(z, x), x)[1](1.0)[0]
            else:
                g = pf.jvp(lambda z: cube(z, x), (x,), (x,))[1] / x
        return (g * x).sum()

    expected = 3 * X**3 if kind != "jvp" else (3 * X**4).sum() / X
    np.testing.assert_allclose(pf.grad(f)(X), expected)
    np.testing.assert_allclose(pf.jit(f)(X), (expected * X).sum())


def test_what_is_written_under_no_grad_keeps_the_gradient_it_had():
    def f(x, w):
        y = x * w
        with pf.no_grad():
            y[0] = 3.0
            y *= 2
        return (y * x).sum()

    expected = slopes(f)
    jitted = pf.jit(f, background=False)
    for _ in range(4):
        is_same(slopes(jitted), expected)
        np.testing.assert_allclose(jitted(X, W), expected[0])
    assert jitted.state().counters["python_calls"] == 4
    assert "written to under pf.no_grad()" in jitted.explain()
    with pytest.raises(TraceError, match="written to under"):
        pf.grad(f)(X, W)


def is_array(x):
    return isinstance(x, pf.Array)


def test_arrays_of_the_tape_are_told_from_others():
    def f(x, w):
        return (x * w).sum() * (2 if is_array(x) else 5) * (1 if is_array(w * 1) else 7)

    np.testing.assert_allclose(pf.grad(f)(X, W), 2 * W * 7)
    np.testing.assert_allclose(pf.grad(f, (0, 1))(X, W)[0], 2 * W)
    jitted = pf.jit(f, background=False, unsupported="python")
    for _ in range(3):
        is_same(slopes(jitted), slopes(f))
        np.testing.assert_allclose(jitted(X, W), f(X, W))
    assert not is_array(X) and is_array(pf.array(X)) and isinstance(pf.array(X), np.ndarray)


@pytest.mark.parametrize("name", ["requires_grad", "grad", "is_leaf"])
def test_what_arrays_of_the_tape_know_of_themselves_is_pythons(name):
    def f(x):
        return (x * (2 if getattr(x, name, 3) is None or getattr(x, name, 3) is True else 5)).sum()

    jitted = pf.jit(f, background=False, unsupported="python")
    for _ in range(3):
        found = jitted(pf.array(X, requires_grad=True)), jitted(X)
        np.testing.assert_allclose([float(y) for y in found], [2 * X.sum(), 5 * X.sum()])
