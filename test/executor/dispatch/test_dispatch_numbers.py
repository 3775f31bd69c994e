"""Python numbers that emitted code computes: `math` of arguments, and arrays of their sizes."""

from __future__ import annotations

import math

import numpy as np
import profuse as pf
import pytest

FUNCTIONS = [
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "fabs",
    "degrees",
    "radians",
    "erf",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_an_argument_are_one_graph_and_pythons(name):
    function = getattr(math, name)

    def scaled(x, s):
        return x * function(s)

    f = pf.jit(scaled)
    x = np.arange(4.0)
    values = [0.1, 0.25, 0.9, 0.5, 0.75, 1e-9]
    if name == "acosh":
        values = [1 + v for v in values]
    for s in values:
        np.testing.assert_array_equal(f(x, s), x * function(s))
    state = f.state()
    assert state.emitted and state.counters["traces"] == 1
    launches = state.counters["kernel_launches"]
    np.testing.assert_array_equal(f(x, values[0]), scaled(x, values[0]))
    assert f.state().counters["kernel_launches"] == launches + 1


@pytest.mark.parametrize("name", ["atan2", "hypot", "copysign", "fmod", "pow", "log"])
def test_functions_of_two_arguments(name):
    function = getattr(math, name)

    def scaled(x, a, b):
        return x - function(a, b)

    f = pf.jit(scaled)
    x = np.arange(4.0)
    for a, b in (
        (0.5, 2.0),
        (1.5, -2.5) if name not in ("pow", "log") else (1.5, 2.5),
        (3, 2.0),
        (2.0, 3),
        (0.25, 0.75),
        (1.25, 8.0),
    ):
        np.testing.assert_array_equal(f(x, a, b), x - function(a, b))
    assert f.state().counters["traces"] == 3  # for each pair of kinds


@pytest.mark.parametrize(
    ("function", "value", "error"),
    [(math.sqrt, -1.0, ValueError), (math.exp, 1e3, OverflowError), (math.log, 0.0, ValueError)],
)
def test_errors_are_pythons(function, value, error):
    f = pf.jit(lambda x, s: x + function(s), unsupported="python")
    x = np.ones(3)
    for s in (0.5, 0.75, 1.0, 1.25, 1.5):
        f(x, s)
        f.wait()
    assert f.state().emitted
    with pytest.raises(error):
        f(x, value)
    np.testing.assert_array_equal(
        f(x, math.inf if function is not math.log else 2.0), x + function(math.inf if function is not math.log else 2.0)
    )


def test_a_branch_on_a_function_of_an_argument():
    def f(x, s):
        return x * 2 if math.sqrt(s) > 1 else x - 1

    g = pf.jit(f)
    x = np.arange(3.0)
    for s in (0.25, 4.0, 0.5, 9.0, 0.75, 2.0, 3.0):
        np.testing.assert_array_equal(g(x, s), f(x, s))
    assert g.state().counters["traces"] == 2


def test_gradients_through_functions_of_numbers():
    def loss(x, s):
        return (x * math.exp(-s) / math.sqrt(2 * math.pi * s)).sum()

    x, s, h = np.arange(1.0, 5.0), 0.7, 1e-6
    by_x, by_s = pf.grad(loss, wrt=(0, 1))(x, s)
    np.testing.assert_allclose(by_x, np.full(4, math.exp(-s) / math.sqrt(2 * math.pi * s)))
    np.testing.assert_allclose(by_s, (loss(x, s + h) - loss(x, s - h)) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("make", [np.zeros, np.ones, np.arange])
def test_arrays_of_sizes_that_arguments_tell(make):
    def f(n, s):
        out = make(n)
        for k in range(n):
            out[k] = out[k] + s * k
        return out

    g = pf.jit(f)
    for n in (5, 5, 5, 5, 7, 7, 7, 5):
        found, expected = g(n, 0.5), f(n, 0.5)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert g.state().emitted
    launches = g.state().counters["kernel_launches"]
    for n in (5, 7):
        np.testing.assert_array_equal(g(n, 0.25), f(n, 0.25))
    assert g.state().counters["kernel_launches"] == launches + 2
    if make is np.arange:
        assert g(-3, 0.5).shape == (0,)
        return
    with pytest.raises(ValueError, match="negative"):
        pf.jit(f, unsupported="python")(-3, 0.5)


def test_arithmetic_of_ints_is_pythons():
    def f(x, n):
        return x * (n // 3) + n % 7 - (n + 4) // 1

    g = pf.jit(f)
    x = np.arange(3)
    for n in (5, 8, 12, -1, -7, -9, 0, 1, 2, 10**6, -(10**6)):
        np.testing.assert_array_equal(g(x, n), f(x, n))
    state = g.state()
    assert state.emitted and state.counters["traces"] == 1
    launches = state.counters["kernel_launches"]
    for n in (6, -6, 11):
        np.testing.assert_array_equal(g(x, n), f(x, n))
    assert g.state().counters["kernel_launches"] == launches + 3
    np.testing.assert_array_equal(g(x, 2**40), f(x, 2**40))  # left to Python


def distance(a, b):
    n, m = len(a), len(b)
    d = np.full((n + 1, m + 1), np.inf)
    d[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i, j] = abs(a[i - 1] - b[j - 1]) + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n, m], d[n], d[1:n, m]


def test_parts_of_results_that_sizes_tell():
    f = pf.jit(distance)
    rng = np.random.default_rng(0)
    for n, m in ((9, 7), (9, 7), (9, 7), (4, 6), (4, 6), (9, 7)):
        a, b = rng.random(n), rng.random(m)
        for one, two in zip(f(a, b), distance(a, b), strict=True):
            assert type(one) is type(two)
            np.testing.assert_allclose(one, two, rtol=1e-14)
    assert f.state().emitted
    a, b = rng.random(9), rng.random(7)
    launches = f.state().counters["kernel_launches"]
    whole, row, column = f(a, b)
    assert f.state().counters["kernel_launches"] == launches + 1
    row[-1] = 5.0
    assert whole == distance(a, b)[0] and column.shape == (8,)


def test_functions_of_math_in_attributes_that_are_called_with_all_arguments():
    class Model:
        def __init__(self, function):
            self.scaled = lambda x, *numbers: x * function(*numbers)

    model = Model(math.exp)

    def total(*args):
        return np.sin(model.scaled(*args)).sum()

    f = pf.jit(total)
    x = np.arange(4.0)
    for s in (0.1, 0.2, 0.3, 0.4):
        np.testing.assert_allclose(f(x, s), total(x, s), rtol=1e-14)
    assert f.state().counters["traces"] == 1
    np.testing.assert_allclose(pf.grad(total, wrt=1)(x, 0.5), (np.cos(x * math.exp(0.5)) * x * math.exp(0.5)).sum())
