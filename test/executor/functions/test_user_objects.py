"""Objects of users' classes as arguments: methods that change them, in loops, call after call."""

import copy

import numpy as np
import profuse as pf
import pytest
from internals import same


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


class Ring:
    def __init__(self, room):
        self.values, self.head, self.size = np.zeros(room), 0, 0

    def push(self, value):
        self.values[(self.head + self.size) % len(self.values)] = value
        if self.size < len(self.values):
            self.size += 1
        else:
            self.head = (self.head + 1) % len(self.values)


def feed(ring, values):
    for value in values:
        ring.push(value)
    return ring.size


def test_a_method_that_changes_its_object_in_a_loop():
    ours, f = Ring(4), pf.jit(lambda ring, values: feed(ring, values))
    theirs = copy.deepcopy(ours)
    for k in range(8):
        values = np.arange(k % 3 + 1.0)
        assert f(ours, values) == feed(theirs, values)
        same(ours, theirs)


class Dense:
    def __init__(self, rows, columns):
        self.w, self.calls = np.full((rows, columns), 0.5), 0

    def forward(self, x):
        self.calls += 1
        self.x = x
        return np.tanh(x @ self.w)

    def backward(self, gradient):
        self.w -= 0.1 * self.x.T @ gradient
        return gradient @ self.w.T


def train(layers, x):
    h = x
    for layer in layers:
        h = layer.forward(h)
    gradient = h
    for layer in reversed(layers):
        gradient = layer.backward(gradient)
    return h.sum()


def test_methods_of_objects_in_a_list():
    ours, f = [Dense(3, 4), Dense(4, 2)], pf.jit(lambda layers, x: train(layers, x))
    theirs = copy.deepcopy(ours)
    for k in (4, 4, 4, 5, 5):
        x = np.arange(3.0 * k).reshape(k, 3) / 10
        np.testing.assert_allclose(f(ours, x), train(theirs, x))
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.calls == other.calls
            np.testing.assert_allclose(mine.w, other.w)
