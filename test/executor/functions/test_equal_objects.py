"""Objects of the user's classes are equal to themselves alone, whatever their `__eq__` says."""

import enum
import fractions

import numpy as np
import profuse as pf
import pytest


class Keyed:
    def __init__(self, key, weight):
        self.key, self.weight = key, weight

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        return self.key == other.key

    def times(self, x):
        return x * self.weight


class Strict:
    def __hash__(self):
        raise RuntimeError("hashed")

    def __eq__(self, other):
        raise RuntimeError("compared")


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


def scaled(o, x):
    return x * o.weight


@pytest.mark.parametrize("unsupported", ["raise", "python"])
def test_equal_objects_with_other_attributes(unsupported):
    f, method, x = pf.jit(scaled), pf.jit(Keyed.times), np.ones(2)
    with pf.knobs.override(unsupported=unsupported):
        for weight in (2.0, 5.0, 8.0, 2.0):
            o = Keyed(1, weight)
            for _ in range(3):
                np.testing.assert_array_equal(f(o, x), x * weight)
                np.testing.assert_array_equal(method(o, x), x * weight)


def test_one_object_has_one_graph_in_emitted_code():
    f, x, o = pf.jit(scaled), np.ones(2), Keyed(1, 3.0)
    for _ in range(20):
        np.testing.assert_array_equal(f(o, x), x * 3)
    counters = f.state().counters
    assert counters["traces"] == 1 and counters["kernel_launches"] == 19
    o.weight = 9.0
    np.testing.assert_array_equal(f(o, x), x * 9)


def test_methods_that_compare_are_not_called():
    f = pf.jit(lambda o, x: x + 1)
    for _ in range(3):
        np.testing.assert_array_equal(f(Strict(), np.ones(2)), [2, 2])


def test_objects_that_are_made_by_a_jitted_method(monkeypatch):
    monkeypatch.setattr(Keyed, "__init__", pf.jit(Keyed.__init__))
    with pf.knobs.override(unsupported="python"):
        assert vars(Keyed(3, 0.5)) == {"key": 3, "weight": 0.5}


def test_values_of_libraries_share_a_graph():
    def f(x, kind, by):
        return (x + 1 if kind == Mode.UP else x - 1) * float(by)

    jitted, x = pf.jit(f), np.ones(2)
    for kind in (Mode.UP, Mode.DOWN, Mode.UP):
        for by in (fractions.Fraction(1, 2), fractions.Fraction(1, 3), fractions.Fraction(1, 2)):
            np.testing.assert_array_equal(jitted(x, kind, by), f(x, kind, by))
    assert jitted.state().counters["traces"] == 4


class Unhashable(Keyed):
    __hash__ = None


def test_objects_without_a_hash_have_graphs():
    f, x, o = pf.jit(scaled), np.ones(2), Unhashable(1, 3.0)
    for _ in range(5):
        np.testing.assert_array_equal(f(o, x), x * 3)
    assert f.state().counters["traces"] == 1 and f.state().tier == "optimized"
    o.weight = 4.0
    np.testing.assert_array_equal(f(o, x), x * 4)
