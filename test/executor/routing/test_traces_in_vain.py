"""Calls with other objects or numbers each time are Python's; those that come again have graphs."""

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def python():
    with pf.knobs.override(unsupported="python"):
        yield


class Body:
    def __init__(self, x, v):
        self.x, self.v = x, v


def moved(bodies, dt):
    return sum(b.x + b.v * dt for b in bodies)


def advance(bodies, dt):
    for b in bodies:
        b.x += b.v * dt
        b.name = f"at {b.x}"


def counts(f):
    found = f.state().counters
    return found["calls"], found["python_calls"]


def test_graphs_for_new_objects_end():
    f = pf.jit(moved)
    for k in range(60):
        bodies = [Body(np.full(3, k), np.ones(3)), Body(np.zeros(3), np.ones(3))]
        np.testing.assert_array_equal(f(bodies, 0.5), moved(bodies, 0.5))
    assert counts(f) == (60, 52)
    assert "other objects at each call (Body)" in f.explain()


def test_refused_traces_end_sooner():
    f = pf.jit(advance)
    for k in range(20):
        bodies, others = ([Body(float(k), 1.0), Body(0.0, 2.0)] for _ in range(2))
        f(bodies, 0.5), advance(others, 0.5)
        assert [vars(b) for b in bodies] == [vars(b) for b in others]
    assert counts(f) == (20, 20)
    assert f.state().counters["traces"] == 0 and "other objects" in f.explain()


def test_one_call_in_many_is_traced_again():
    f, bodies = pf.jit(moved), [Body(np.ones(3), np.ones(3))]
    for _ in range(20):
        f([Body(np.ones(3), np.ones(3))], 0.5)
    before = f.state().counters["python_calls"]
    for _ in range(200):
        f(bodies, 0.5)  # which stay
    assert f.state().counters["python_calls"] - before < 64
    assert f.state().tier == "optimized"


def test_objects_that_are_used_again_have_graphs_each():
    f = pf.jit(moved)
    every = [[Body(np.full(3, k), np.ones(3))] for k in range(14)]
    for _ in range(9):
        for bodies in every[:8]:
            f(bodies, 0.5)
    for bodies in every:
        np.testing.assert_array_equal(f(bodies, 0.5), moved(bodies, 0.5))
    assert counts(f)[1] == 0


def above(image, i, j, value):
    found = 0
    try:
        if image[i][j] >= value:
            found = 1
    except Exception:
        pass
    return found


def test_graphs_for_single_numbers_end():
    f, image = pf.jit(above), np.random.default_rng(0).random((12, 12)) * 2
    for i in range(12):
        for j in range(12):
            assert f(image, i, j, 1) == above(image, i, j, 1)
    counters = f.state().counters
    assert counters["traces"] <= 10 and counters["python_calls"] >= 130
    assert "j is needed as a number and changes from call to call" in f.explain()


def scaled(x, n):
    return x * 2 if n % 2 else x + n


def test_numbers_that_come_again_have_graphs():
    f, x = pf.jit(scaled), np.ones(3)
    for _ in range(9):
        for n in range(8):
            np.testing.assert_array_equal(f(x, n), scaled(x, n))
    for n in range(16):
        np.testing.assert_array_equal(f(x, n), scaled(x, n))
    assert counts(f)[1] == 0


class Model:
    def __init__(self):
        self.w, self.rate, self.name = np.zeros(3), 0.0, "model"
        self.layers = [np.ones(3)]


def predicted(model, x):
    return model.w * x + model.rate * len(model.name) + model.layers[0]


def rebind(model, k):
    model.w = model.w + k


def raise_rate(model, k):
    model.rate += 0.5


def rename(model, k):
    model.name = "model" * k


def renew_layers(model, k):
    model.layers = [np.full(3, k)]


@pytest.mark.parametrize("change", [rebind, raise_rate, rename, renew_layers])
@pytest.mark.parametrize("objects, calls", [(1, 200), (20, 10), (100, 2)])
def test_graphs_for_attributes_that_change_end(change, objects, calls):
    """Whether the objects are new or not: each trace would serve one call."""
    f, x = pf.jit(predicted), np.ones(3)
    for _ in range(objects):
        model = Model()
        for k in range(calls):
            change(model, k)
            np.testing.assert_array_equal(f(model, x), predicted(model, x))
    assert f.state().counters["traces"] <= 13
    assert f.state().counters["python_calls"] >= 150


def test_objects_that_change_sooner_than_their_traces_pay_off_are_python_s():
    """A trace takes as long as Python takes for some thousand calls of so short a function."""
    f, x = pf.jit(predicted, background=True), np.ones(3)
    for k in range(40):
        model = Model()
        for _ in range(30):
            np.testing.assert_array_equal(f(model, x), predicted(model, x))
        if k < 3:
            f.wait()
    assert f.state().counters["traces"] <= 13
    assert "other objects at each call (Model)" in f.explain()


def test_attributes_that_change_rarely_have_graphs():
    f, x, model = pf.jit(predicted), np.ones(3), Model()
    for k in range(12):
        rebind(model, k)
        for _ in range(10):
            np.testing.assert_array_equal(f(model, x), predicted(model, x))
    assert counts(f) == (120, 0) and f.state().tier == "optimized"
