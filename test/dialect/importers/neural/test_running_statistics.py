"""`nn.batch_norm` in training writes its running statistics: in Python, native code, gradients and on the tape."""

from __future__ import annotations

from functools import partial

import numpy as np
import profuse as pf
import pytest
from profuse import nn

RNG = np.random.default_rng(8)
X, W = RNG.standard_normal((5, 3, 4)), RNG.standard_normal(3)
MOMENTUM = 0.25
jit = partial(pf.jit, background=False, unsupported="python")  # where it says "raise", nothing writes to arguments


def statistics():
    return np.full(3, 0.5), np.full(3, 2.0)


def loss(w, x, mean, var):
    y = nn.batch_norm(x, mean, var, w, None, True, MOMENTUM)
    return (y**3).sum()


def expected(rounds, x=X):
    mean, var = statistics()
    for _ in range(rounds):
        mean = (1 - MOMENTUM) * mean + MOMENTUM * x.mean((0, 2))
        var = (1 - MOMENTUM) * var + MOMENTUM * x.var((0, 2), ddof=1)
    return mean, var


def check(call, rounds=5, per_call=1):
    mean, var = statistics()
    for k in range(1, rounds + 1):
        call(W, X, mean, var)
        for own, other in zip((mean, var), expected(k * per_call), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-12)


def on_tape(fn):
    def call(w, *args):
        leaf = pf.array(w.copy(), requires_grad=True)
        fn(leaf, *args).backward()

    return call


def test_python_writes():
    check(loss)


def test_native_code_writes():
    fn = jit(loss)
    check(fn)
    assert fn.state().counters["python_calls"] <= 1, fn.explain()


@pytest.mark.parametrize("how", ["grad", "value_and_grad", "vjp", "jvp", "in jit", "of jit", "twice"])
def test_functions_that_are_differentiated_write(how):
    ones = np.ones(3)

    def vjp(w, x, mean, var):
        return pf.vjp(lambda w: loss(w, x, mean, var), w)[1](np.float64(1.0))

    calls = {
        "grad": lambda: pf.grad(loss, background=False),
        "value_and_grad": lambda: pf.value_and_grad(loss, background=False),
        "vjp": lambda: vjp,
        "jvp": lambda: lambda w, x, mean, var: pf.jvp(lambda w: loss(w, x, mean, var), (w,), (ones,)),
        "in jit": lambda: jit(lambda *args: pf.grad(loss)(*args)),
        "of jit": lambda: pf.grad(jit(loss), background=False),
        "twice": lambda: pf.grad(lambda *args: pf.grad(loss)(*args).sum(), background=False),
    }
    check(calls[how]())


def test_the_tape_and_captured_runs_write():
    check(on_tape(loss))
    check(on_tape(jit(loss)))
    with pf.compiled_autograd():
        check(on_tape(loss))


def test_a_layer_that_is_applied_twice_reads_what_it_has_written():
    def twice(w, x, mean, var):
        return loss(w, x, mean, var) + loss(w, 2 * x, mean, var) + mean.sum()

    mean, var = statistics()
    value = twice(W, X, mean, var)
    for fn in (pf.value_and_grad(twice, background=False), jit(pf.value_and_grad(twice))):
        for _ in range(3):
            own = statistics()
            np.testing.assert_allclose(fn(W, X, *own)[0], value, rtol=1e-12)
            np.testing.assert_allclose(own, (mean, var), rtol=1e-12)


def test_statistics_in_objects_are_written():
    class Layer:
        pass

    layer = Layer()
    layer.mean, layer.var = statistics()
    step = jit(lambda w, x: pf.value_and_grad(loss)(w, x, layer.mean, layer.var))
    for k in range(1, 6):
        step(W, X)
        np.testing.assert_allclose(layer.mean, expected(k)[0], rtol=1e-12)
    assert step.state().counters["python_calls"] <= 1, step.explain()
    params = {"w": W, "mean": statistics()[0], "var": statistics()[1]}
    grad = pf.grad(lambda w, p, x: loss(w, x, p["mean"], p["var"]), background=False)
    for k in range(1, 6):
        grad(W, params, X)
        np.testing.assert_allclose(params["var"], expected(k)[1], rtol=1e-12)


def test_what_runs_again_writes_once():
    """Arguments are kept as copies by what runs again, and arrays that it reads by name are not."""
    check(on_tape(pf.checkpoint(loss)))
    mean, var = statistics()
    call = on_tape(pf.checkpoint(lambda w, x: loss(w, x, mean, var)))
    for k in range(1, 4):
        call(W, X)
        np.testing.assert_allclose(mean, expected(k)[0], rtol=1e-12)


def test_evaluation_writes_nothing_and_no_gradient_flows_into_statistics():
    mean, var = statistics()
    before = mean.copy(), var.copy()
    fn = jit(lambda x: nn.batch_norm(x, mean, var))
    for _ in range(3):
        np.testing.assert_allclose(fn(X), (X - 0.5) / np.sqrt(2.0 + 1e-5) * np.ones_like(X), rtol=1e-12)
    np.testing.assert_array_equal((mean, var), before)

    def through(w, x):
        mean, var = statistics()
        nn.batch_norm(x * w[:, None], mean, var, training=True)
        return mean.sum() + var.sum()

    np.testing.assert_array_equal(pf.grad(through)(W, X), np.zeros(3))


def test_narrow_statistics_keep_their_dtype():
    for dtype in (np.float16, np.float32):
        mean, var = (s.astype(dtype) for s in statistics())
        fn = jit(lambda x, m, v: nn.batch_norm(x, m, v, training=True, momentum=MOMENTUM))
        for _ in range(3):
            fn(X.astype(np.float16), mean, var)
        assert mean.dtype == var.dtype == dtype
        np.testing.assert_allclose(mean, expected(3)[0], rtol=1e-2, atol=1e-2)


def test_statistics_that_overlap_are_refused_under_gradients():
    memory = np.ones(4)
    with pytest.raises(pf.ProfuseError, match="shares memory"):
        pf.grad(loss)(W, X, memory[:3], memory[1:])


def test_a_view_from_outside_of_what_is_written_is_refused():
    def fn(w, x, mean, var):
        part = mean[:2]
        return pf.grad(lambda w: loss(w, x, mean, var) * part.sum())(w).sum()

    with pytest.raises(pf.TraceError, match="a view of it that was made outside"):
        pf.grad(fn)(W, X, *statistics())
    with pytest.raises(pf.TraceError, match="shares memory"):  # Python has it, as the trace refuses it
        jit(fn)(W, X, *statistics())


def test_an_error_leaves_statistics_as_they_were():
    def picked(w, x, mean, var, i):
        return loss(w, x, mean, var) * w[i]

    grad, before = pf.grad(picked, background=False), statistics()
    own = statistics()
    for _ in range(3):
        grad(W, X, *statistics(), np.int64(1))
    with pytest.raises(IndexError):
        grad(W, X, *own, np.int64(7))
    np.testing.assert_array_equal(own, before)
