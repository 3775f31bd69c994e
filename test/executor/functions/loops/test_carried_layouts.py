"""Loops that begin with arrays in another order than C's, where NumPy keeps that order."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

RNG = np.random.default_rng(3)
WIDE = RNG.standard_normal((300, 200)).T
VECTOR = RNG.standard_normal(300)
CUBE = RNG.standard_normal((40, 20, 30)).transpose(1, 2, 0)


def pulled(y, start, v, n):
    """The product needs ``y`` as it is; an element of it depends on one of ``start``."""
    for _ in range(n):
        y = start + 0.01 * np.tanh(y @ v).mean()
    return y


def scaled(y, row, column, n):
    for _ in range(n):
        y = np.where(y > row, y * 0.5, y - column) + row
    return y


def with_views(y, n):
    for _ in range(n):
        y = y * 0.5 + y[3, 1:2] - y.T[0].mean()
    return y


def both(y, z, n):
    """One array keeps its order, the other one is made in C order, of both."""
    for _ in range(n):
        y, z = y * 0.5 + z.sum(), z + 0.1 * y + np.ascontiguousarray(y)
    return y, z


def of_two_rounds(y, n):
    """The array of the round before stays in use for one round more."""
    old = y
    for _ in range(n):
        old, y = y, y * 0.5 - 0.25 * old
    return y


def nested(y, n):
    for _ in range(n):
        for k in range(3):
            y = y * 0.5 + k
        if y[0, 0] > 1:
            y = y - y.max(axis=0)
        else:
            y = y + 0.25
    return y


def in_between(y, n):
    """The product of a round is in C order, and the sum with ``y`` in that of ``y``."""
    for _ in range(n):
        z = np.sqrt(np.abs(y)) * 0.5
        y = 0.25 * z + z.sum(axis=1, keepdims=True) * 0.01
    return y


CASES = {
    "pulled": (pulled, WIDE, WIDE, VECTOR),
    "pulled by rows": (pulled, WIDE, np.ascontiguousarray(WIDE), VECTOR),
    "from rows": (pulled, np.ascontiguousarray(WIDE), WIDE, VECTOR),
    "scaled": (scaled, WIDE, VECTOR, RNG.standard_normal((200, 1))),
    "cube": (scaled, CUBE, RNG.standard_normal(40), RNG.standard_normal((30, 1))),
    "with views": (with_views, WIDE),
    "both": (both, WIDE, WIDE[::-1] * 2),
    "of two rounds": (of_two_rounds, WIDE),
    "nested": (nested, WIDE),
    "in between": (in_between, WIDE),
    "with gaps": (scaled, WIDE[:, ::2], VECTOR[::2], np.ones((200, 1))),
    "of one row": (scaled, WIDE[:1], VECTOR, np.ones((1, 1))),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_python(name):
    function, *args = CASES[name]
    f = pf.jit(function, background=False)
    kept = [np.array(a) for a in args]
    for n in (4, 5, 4, 5, 1, 0, 7, 7):
        found, expected = f(*args, n), function(*args, n)
        pairs = zip(found, expected, strict=True) if function is both else [(found, expected)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    counters = f.state().counters
    assert counters["python_calls"] == counters["check_failures"] == 0
    assert counters["compile_failures"] == 0
    assert counters["guard_misses"] <= 2  # of numbers of rounds
    for given, before in zip(args, kept, strict=True):
        np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("name", ["pulled", "scaled", "cube", "in between"])
def test_results_lie_as_those_of_numpy(name):
    function, *args = CASES[name]
    f = pf.jit(function, background=False)
    for _ in range(3):
        found = f(*args, 6)
    assert f.state().counters["kernel_launches"] > 0
    assert found.strides == function(*args, 6).strides != np.ascontiguousarray(found).strides


@pytest.mark.parametrize("name", ["pulled", "scaled"])
def test_rounds_read_memory_in_one_order(name):
    """So all of them are one kernel, however large the array is."""
    function, *args = CASES[name]
    f = pf.jit(function, background=False)
    for n in (4, 5, 4, 5):
        f(*args, n)
    before = f.state().counters["kernel_launches"]
    f(*args, 50)
    assert f.state().counters["kernel_launches"] == before + 1
    assert f.state().counters["guard_misses"] == 0


def test_no_round_gives_no_memory_of_the_argument():
    f = pf.jit(pulled, background=False)
    for n in (4, 5, 4, 5, 0):
        found = f(WIDE, WIDE, VECTOR, n)
    np.testing.assert_array_equal(found, WIDE)
    assert not np.shares_memory(found, WIDE)


def into_rows(y, rows, n):
    """From the first round on the array lies in the order of ``rows``, whatever it begins with."""
    start = y
    for _ in range(n):
        y = start + (y * rows + 1.0) * 0.01
    return y


def test_a_loop_that_has_a_round_gives_what_rounds_give():
    rows = RNG.standard_normal(WIDE.shape)
    f = pf.jit(into_rows, background=False, unsupported="python")
    for n in (3, 5, 7, 9, 11):
        expected = into_rows(WIDE, rows, n)
        found = f(WIDE, rows, n)
        np.testing.assert_allclose(found, expected)
        assert found.strides == expected.strides
    assert f.state().counters["python_calls"] == 0
    assert f(WIDE, rows, 0) is WIDE  # Python's: none of the rounds has made an array
    assert f(WIDE, rows, 2).strides == into_rows(WIDE, rows, 2).strides
