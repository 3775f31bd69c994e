"""What a function reads of objects of installed packages is compared at each call."""

import threading

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def python():
    with pf.knobs.override(unsupported="python"):
        yield


def of_a_package(cls):
    cls.__module__ = "numpy.models"
    return cls


@of_a_package
class Model:
    def __init__(self, coef, rate=0.5):
        self.coef, self.rate, self.view = coef, rate, None

    @property
    def size(self):
        return len(self.coef)

    def refit(self, seed):
        self.coef = np.random.default_rng(seed).random(3)


class View:
    __slots__ = ("count",)


View.__module__ = "numpy.views"
MODEL = Model(np.ones(3))


def predict(model, x):
    return x * model.coef * model.rate


def of_a_global(x):
    return x * MODEL.coef


def test_attributes_that_are_replaced():
    f, g, model, x = pf.jit(predict), pf.jit(of_a_global), Model(np.ones(3)), np.arange(3.0)
    for seed in range(4):
        model.refit(seed), MODEL.refit(seed)
        for _ in range(3):
            np.testing.assert_array_equal(f(model, x), predict(model, x))
            np.testing.assert_array_equal(g(x), of_a_global(x))
    assert f.state().tier == g.state().tier == "optimized"
    assert f.state().counters["python_calls"] == 0


def test_arrays_that_are_written_in_place():
    f, model, x = pf.jit(predict), Model(np.ones(3)), np.arange(3.0)
    for k in range(5):
        model.coef[:] = k
        np.testing.assert_array_equal(f(model, x), predict(model, x))


def test_numbers_that_change():
    f, model, x = pf.jit(predict), Model(np.ones(3)), np.arange(3.0)
    for k in range(20):
        model.rate = 0.5 * k
        np.testing.assert_array_equal(f(model, x), predict(model, x))
    assert f.state().counters["traces"] < 12


def count(model, x):
    return x * model.size


def viewed(model, x):
    return x * model.view.count


def test_what_a_package_computes_is_pythons():
    f, g, model, x = pf.jit(count), pf.jit(viewed), Model([1.0]), np.arange(3.0)
    model.view = View()
    for k in range(4):
        model.coef.append(1.0)
        model.view.count = k
        np.testing.assert_array_equal(f(model, x), count(model, x))
        np.testing.assert_array_equal(g(model, x), viewed(model, x))
    assert f.state().tier == "python"


def advance(model, x):
    model.coef = model.coef + x
    model.rate += 1.0
    return model.coef * 2


def test_attributes_that_are_assigned():
    f, ours, theirs = pf.jit(advance), Model(np.ones(3)), Model(np.ones(3))
    for _ in range(4):
        np.testing.assert_array_equal(f(ours, np.ones(3)), advance(theirs, np.ones(3)))
        np.testing.assert_array_equal(ours.coef, theirs.coef)
        assert type(ours.coef) is np.ndarray and ours.rate == theirs.rate


def warm(model, x):
    model.coef[0] += 1.0
    return x * model.coef


def test_arrays_that_the_function_writes():
    f, ours, theirs, x = pf.jit(warm), Model(np.ones(3)), Model(np.ones(3)), np.arange(1.0, 4.0)
    for _ in range(4):
        np.testing.assert_array_equal(f(ours, x), warm(theirs, x))
        np.testing.assert_array_equal(ours.coef, theirs.coef)


def test_what_other_threads_change_meanwhile_stays():
    event = threading.Event()

    def f(x):
        event.set()
        return x + 1

    pf.jit(f)(np.ones(2))
    assert event.is_set()
