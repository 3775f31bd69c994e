"""Calls with many single items: no graph of them pays off, and none is made."""

import math

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def traces(f):
    return f.state().counters["traces"]


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (lambda items: np.array(items).sum(), lambda n: [float(k) for k in range(n)]),
        (lambda items: sum(x["a"] for x in items), lambda n: [{"a": k} for k in range(n)]),
        (lambda items: sum(items.values()), lambda n: {k: float(k) for k in range(n)}),
        (lambda items: max(x + y for x, y in items), lambda n: tuple((k, k) for k in range(n))),
    ],
)
def test_long_containers_of_numbers(function, make):
    f = pf.jit(function)
    for n in (300, 300, 301, 5000):
        assert f(make(n)) == function(make(n))
    assert traces(f) == 0 and f.state().counters["python_calls"] == 4
    assert "has so many items, each of which would be an input" in f.explain()
    assert f(make(3)) == function(make(3))
    assert traces(f) == 1


def test_many_arrays_are_inputs():
    f = pf.jit(lambda params: sum(p.sum() for p in params))
    for _ in range(3):
        assert f([np.ones(2)] * 150) == 300
    assert traces(f) == 1 and f.state().counters["python_calls"] == 0


def test_lists_of_another_length_at_each_call():
    f = pf.jit(lambda items: np.array(items).max())
    for n in range(1, 40):
        assert f([float(k) for k in range(n)]) == n - 1
    assert traces(f) == 8
    assert "hold another number of items at each call" in f.explain()
    for _ in range(3):
        assert f([0.0, 1.0]) == 1  # those that have a graph keep it


def test_lists_of_some_lengths_have_graphs():
    f = pf.jit(lambda items: np.array(items).max())
    for _ in range(10):
        for n in (2, 3, 4):
            f([float(k) for k in range(n)])
    for n in range(5, 12):
        for _ in range(9):
            f([float(k) for k in range(n)])
    assert traces(f) == 10 and f.state().counters["python_calls"] == 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.array([math.sin(v) for v in x]),
        lambda x: sum(v * v for v in x),
        lambda x: max(map(abs, x)),
        lambda x: sorted(x)[0],
    ],
)
def test_python_iterates_over_a_long_array(function):
    f, x = pf.jit(function), np.random.default_rng(0).random(1000)
    for n in (1000, 1000, 999, 500):
        np.testing.assert_array_equal(f(x[:n]), function(x[:n]))
    assert traces(f) == 0
    assert "Python iterates over the parts of a long array" in f.explain()
    with pf.knobs.override(unsupported="raise"):
        g = pf.jit(lambda x: sum(v * v for v in x))  # a graph is asked for
        np.testing.assert_allclose(g(x[:300]), sum(v * v for v in x[:300]))
        assert traces(g) == 1
