"""Gradients by Python's floats: functions that ask for the number are part of the gradient."""

import math

import numpy as np
import profuse as pf
import pytest

FUNCTIONS = [
    lambda x: math.sin(x) * x**2,
    lambda x: x * math.sqrt(x) if x > 1 else x * math.exp(-x),
    lambda x: math.pow(x, 2) + math.hypot(x, 1.0) + math.log(x, 2) + math.atan2(x, 3),
    lambda x: x * float(x),
    lambda x: x * abs(x),
    lambda x: math.floor(x) * x + round(x) * x + int(x) * x,
    lambda x: x * (2 if math.isfinite(x) else 3),
    lambda x: sum(math.cos(k * x) for k in range(3)),
]


def numeric(function, x):
    return (function(x + 1e-6) - function(x - 1e-6)) / 2e-6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_gradients_by_a_python_float(number):
    function = FUNCTIONS[number]
    for x in (1.6, 2.7, 0.6):
        expected = numeric(function, x)
        np.testing.assert_allclose(pf.grad(function)(x), expected, rtol=1e-5)
        value, gradient = pf.value_and_grad(function)(x)
        np.testing.assert_allclose((value, gradient), (function(x), expected), rtol=1e-5)
        np.testing.assert_allclose(pf.jvp(function, (x,), (1.0,))[1], expected, rtol=1e-5)
        jitted = pf.jit(pf.grad(function))
        for _ in range(3):
            np.testing.assert_allclose(jitted(x), expected, rtol=1e-5)


def test_second_derivatives_by_a_python_float():
    twice = pf.grad(pf.grad(lambda x: math.sin(x) * x))
    np.testing.assert_allclose(twice(1.2), 2 * math.cos(1.2) - 1.2 * math.sin(1.2))


def test_floats_in_containers_are_differentiated_as_well():
    def loss(p, x):
        return (math.exp(p["rate"]) * x).sum() + p["shift"]

    found = pf.grad(loss)({"rate": 0.5, "shift": 2.0}, np.ones(3))
    np.testing.assert_allclose(found["rate"], 3 * math.exp(0.5))
    assert found["shift"] == 1


@pytest.mark.parametrize("function", [lambda x: x * math.gamma(x), lambda x: np.float64(x) * x])
def test_code_that_takes_the_number_as_a_constant_is_refused(function):
    with pytest.raises(pf.TraceError, match="needed as a constant here"):
        pf.grad(function)(1.5)
    assert pf.jit(function)(1.5) == function(1.5)  # without a gradient, it may


def test_sizes_of_what_is_differentiated_are_numbers():
    def loss(x):
        weights = np.arange(float(np.prod((x * 2).shape[1:])))
        return (x[0] * weights).sum() * float(x.shape[0])

    x = np.arange(6.0).reshape(2, 3)
    value, gradient = pf.value_and_grad(loss)(x)
    assert value == loss(x)
    np.testing.assert_array_equal(gradient, [[0, 2, 4], [0, 0, 0]])
