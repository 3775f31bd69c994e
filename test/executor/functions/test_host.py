"""`pf.host`: functions that graphs call as they are, between kernels."""

from __future__ import annotations

import gc
import threading

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def _python():
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


X = np.random.default_rng(1).random((6, 5))


@pf.host
def medians(x, scale=1):
    return np.median(x, axis=-1) * scale, len(x)


def of_medians(x):
    m, n = medians(np.exp(x) * 2, scale=3)
    return np.tanh(m) * n + 1


def _settled(function, *args):
    """A jitted function whose calls with these arguments are native."""
    f = pf.jit(function)
    for _ in range(3):
        np.testing.assert_allclose(f(*args), function(*args), 1e-12)
        f.wait()
    before = f.state().counters
    np.testing.assert_allclose(f(*args), function(*args), 1e-12)
    after = f.state().counters
    assert after["kernel_launches"] > before["kernel_launches"], f.explain()
    assert after["python_calls"] == before["python_calls"], f.explain()
    return f


def test_outside_of_a_trace_it_is_the_function():
    m, n = medians(X, 2)
    np.testing.assert_array_equal(m, np.median(X, axis=-1) * 2)
    assert n == 6
    assert medians.__name__ == "medians"


def test_between_kernels():
    f = _settled(of_medians, X)
    assert "medians (pf.host) runs on the host, between kernels" in f.explain()
    for other in (X[:3], X * 0.5, np.ones((9, 2))):
        np.testing.assert_allclose(f(other), of_medians(other), 1e-12)
    assert f.state().counters["traces"] == 1


def test_each_call_calls_it():
    calls = []

    @pf.host(like=lambda x: x)
    def counted(x):
        calls.append(threading.get_ident())
        return x * 2

    f = _settled(lambda x: counted(x + 1) * 3, np.ones(4))
    del calls[:]
    for _ in range(5):
        f(np.ones(4))
    assert calls == [threading.get_ident()] * 5


def test_without_arguments_it_is_no_constant():
    held = [np.ones(3)]
    read = pf.host(lambda: held[0], like=lambda: np.ones(3))
    f = pf.jit(lambda x: x * read() + 1)
    for k in range(5):
        held[0] = np.full(3, float(k))
        np.testing.assert_array_equal(f(np.ones(3)), np.full(3, k + 1.0))
        f.wait()
    assert f.state().counters["kernel_launches"] > 0


def test_in_the_rounds_of_a_loop():
    @pf.host
    def halved(x):
        return x * 0.5

    def f(x):
        k = 0
        while x.sum() > 0.1:
            x = halved(x)
            k += 1
        return x * 2 + k

    g = pf.jit(f)
    for _ in range(3):
        np.testing.assert_allclose(g(np.ones(8)), f(np.ones(8)))
        g.wait()


@pf.host(like=lambda x: x)
def picky(x):
    if x[0] > 5:
        raise KeyError("five")
    return x.astype(np.float32) if x[0] < -5 else x * 2


def test_what_it_raises_is_pythons():
    f = _settled(lambda x: picky(x) + 1, np.ones(3))
    with pytest.raises(KeyError, match="five") as caught:
        f(np.full(3, 9.0))
    assert caught.value.__context__ is None
    assert f.state().counters["python_calls"] >= 1
    f(np.ones(3))


def test_results_of_other_types_are_pythons():
    f = _settled(lambda x: picky(x) + 1, np.ones(3))
    found = f(np.full(3, -9.0))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.full(3, -8.0))


def test_a_result_that_is_no_array_is_pythons():
    seen = [np.ones(3)]
    last = pf.host(lambda x: seen[0] if x[0] > 0 else None, like=lambda x: x)
    f = _settled(lambda x: 2.0 if last(x) is None else last(x) * 2, np.ones(3))
    assert f(-np.ones(3)) == 2.0


def test_what_it_writes_to_is_pythons():
    @pf.host(like=lambda x: x)
    def writes(x):
        x[0] = 7.0
        return x * 2

    f = pf.jit(lambda x: writes(x) + 1)
    for _ in range(5):
        x = np.ones(3)
        np.testing.assert_array_equal(f(x), [15.0, 3.0, 3.0])
        np.testing.assert_array_equal(x, [7.0, 1.0, 1.0])
        f.wait()
    assert f.state().counters["python_calls"] == 5


def test_what_it_keeps_stays():
    kept = np.zeros(4)

    @pf.host(like=lambda x: x)
    def keeps(x):
        kept[:] = x
        return kept

    f = _settled(lambda x: keeps(x) * 2, np.ones(4))
    g = pf.jit(lambda x: keeps(x * 3))
    for _ in range(4):
        found = g(np.ones(4))
        g.wait()
    found[:] = 99.0
    np.testing.assert_array_equal(kept, np.full(4, 3.0))
    f(np.full(4, 5.0))
    np.testing.assert_array_equal(kept, np.full(4, 5.0))


def test_one_that_changes_what_is_outside_is_seen():
    seen = []

    @pf.host
    def notes(x):
        seen.append(x.shape)
        return x

    f = pf.jit(lambda x: notes(x * 2) + 1)
    for _ in range(3):
        f(np.ones(3))
    assert seen == [(3,)] * 3
    assert f.state().counters["python_calls"] == 3


def test_one_that_small_arrays_do_not_suit():
    @pf.host
    def large(x):
        return x[9:] * 2

    @pf.host
    def larger(x):
        if len(x) < 9:
            raise ValueError("too small")
        return x * 2

    x = np.arange(12.0)
    _settled(lambda x: large(x) + 1, x)
    f = pf.jit(lambda x: larger(x) + 1)
    np.testing.assert_array_equal(f(x), x * 2 + 1)
    assert f.state().counters["python_calls"] == 1
    assert "give pf.host a function `like`" in f.explain()
    _settled(lambda x: pf_larger(x) + 1, x)


pf_larger = pf.host(lambda x: x * 2 if len(x) >= 9 else None, like=lambda x: x)


def test_functions_of_one_name_are_told_apart():
    def made(k):
        @pf.host
        def scaled(x):
            return x * k

        return scaled

    one, two = made(2.0), made(3.0)
    f = _settled(lambda x: one(x) + two(x * 1), np.ones(3))
    np.testing.assert_array_equal(f(np.ones(3)), np.full(3, 5.0))


def test_one_that_is_gone_is_never_another_one():
    space = {"pf": pf}

    def define(k):
        space["scaled"] = pf.host(lambda x: x * k)

    exec("def f(x):\n    return scaled(x) + 1\n", space)
    f = pf.jit(space["f"])
    for k in range(5):
        define(float(k))
        gc.collect()
        for _ in range(2):
            np.testing.assert_array_equal(f(np.ones(3)), np.full(3, k + 1.0))
            f.wait()


def test_it_has_no_gradient():
    with pytest.raises(pf.TraceError, match="has no gradient"):
        pf.grad(lambda x: picky(x).sum())(np.ones(3))


def test_a_graph_that_calls_one_is_not_saved(tmp_path):
    f = _settled(of_medians, X)
    f.save(tmp_path / "f.json")
    g = pf.jit(of_medians, profile=tmp_path / "f.json")
    np.testing.assert_allclose(g(X), of_medians(X), 1e-12)


def test_what_cannot_be_called():
    with pytest.raises(pf.ArgumentError, match="host takes a function, not int"):
        pf.host(3)
