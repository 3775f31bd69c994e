"""Loops that ask for their first and last rounds, which stand apart from the others."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import native, same


@pytest.fixture(autouse=True)
def _effects():
    """What writes to arguments is no error; no call is Python's for the time that it takes."""
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def around(x, rounds):
    n = x.shape[0]
    for _ in range(rounds):
        y = np.zeros(n)
        for i in range(n):
            y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[(i + 1) % n]
        x = y
    return x


def around_matrix(x):
    n, m = x.shape
    y = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            y[i, j] = x[(i - 1) % n, j] + x[(i + 1) % n, j] + x[i, (j - 1) % m] + x[i, (j + 1) % m]
    return y


def two_back(x, begin):
    total = 0.0
    for i in range(begin, x.shape[0]):
        total = total * 0.5 + x[i - 2] - x[i - 1]
    return total


def inside(x, limit, first):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if i + 1 < x.shape[0]:
            y[i] += x[i + 1]
        if i > 0:
            y[i] -= x[i - 1]
        if i < limit:
            y[i] *= 2.0
        if first <= i - 3:
            y[i] += 1.0
    return y


def halves(x, k):
    total = 0.0
    for i in range(x.shape[0]):
        if i >= k:
            total -= x[i]
        else:
            total += 2 * x[i]
    return total


def triangle(x):
    n = x.shape[0]
    y = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if j > i:
                y[i, j] = x[j]
            elif j <= i - 2:
                y[i, j] = -x[j]
    return y


@pytest.mark.parametrize("n", [9, 2, 3, 1, 40])
def test_neighbours_around_the_ends(n):
    jitted = native(around, np.arange(9.0) ** 2, 3)
    same(jitted, around, (np.arange(float(n)) ** 2, 3))
    jitted.wait()
    same(jitted, around, (np.arange(float(n)) ** 2, 3))


@pytest.mark.parametrize("shape", [(6, 7), (1, 5), (5, 1), (2, 2)])
def test_neighbours_in_a_matrix(shape):
    x = np.random.default_rng(0).random(shape)
    jitted = native(around_matrix, x)
    same(jitted, around_matrix, (np.random.default_rng(1).random((3, 4)),))


@pytest.mark.parametrize("begin", [0, 1, 2, 5])
def test_rounds_begin_anywhere(begin):
    jitted = native(two_back, np.arange(20.0) ** 0.5, begin)
    for other in (0, 1, 2, 3, 19, 20, 25, -1, -18, -19):
        same(jitted, two_back, (np.arange(20.0) ** 0.5, other))


def test_answers_depend_on_numbers():
    x = np.arange(12.0) ** 0.5
    jitted = native(inside, x, 5, 4)
    for limit in (0, -3, 1, 11, 12, 13, 2**62, -(2**62), 2**63 - 1, -(2**63)):
        for first in (limit, -limit // 2, 3):
            same(jitted, inside, (x, limit, first))


def test_both_sides_of_a_number():
    x = np.arange(12.0)
    jitted = native(halves, x, 5)
    for k in (0, 1, 11, 12, 13, -4, 2**63 - 1, -(2**63)):
        same(jitted, halves, (x, k))


@pytest.mark.parametrize("n", [7, 1, 2])
def test_a_number_that_another_loop_counts(n):
    native(triangle, 1.0 + np.arange(n))


def test_an_axis_of_one_element_and_none():
    jitted = native(around, np.arange(9.0), 1)
    for n in (1, 0):
        for _ in range(3):
            same(jitted, around, (np.arange(float(n)), 1))
            jitted.wait()


def downwards(x, begin, shift):
    total, last = 0.0, 0
    for i in range(begin, 2, -1):
        total = total * 0.5 + x[i]
    for k in range(begin):
        total += x[k]
        last = shift + k
    return total, last


def test_ints_from_before_the_loop_are_tested_there():
    x = np.arange(12.0)
    jitted = native(downwards, x, 9, 5)
    loops = jitted.ir("loops")
    assert "llvm.intr.sadd.with.overflow" not in loops, loops
    for begin in (9, 3, 2, -1, 11):
        for shift in (2**61, -(2**61), 2**62, 2**62 + 1, -(2**62) - 1, 2**63 - 1, -(2**63), 2**63 - 9):
            same(jitted, downwards, (x, begin, shift))
    same(jitted, downwards, (x, 12, 1))
