"""`while True` that returns alone leave: what would be behind it is never reached."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import native, same


@pytest.fixture(autouse=True)
def as_users_call_it():
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def power(A, tol):
    v = np.ones(A.shape[0]) / np.sqrt(A.shape[0])
    value = 0.0
    while True:
        w = A @ v
        new = v @ w
        v = w / np.linalg.norm(w)
        if abs(new - value) < tol * abs(new):
            return new, v
        value = new


def two_exits(A, tol):
    v = np.ones(A.shape[0])
    k = 0
    while True:
        w = A @ v
        k += 1
        w = w / np.sqrt((w * w).sum())
        if np.abs(w - v).max() < tol:
            return w, k
        if k >= 50:
            return w, -k
        v = w


def from_an_inner_loop(x, most):
    s, k = 0.0, 0
    while True:
        for i in range(len(x)):
            s += x[i]
            if s > most:
                return s, i, k
        k += 1


def none(x, most):
    while 1:
        x[0] += 1
        if x[0] > most:
            return


def with_a_break(x, most):
    k = 0
    while True:
        k += 1
        x[0] += 0.5
        if x[0] > most:
            return k
        if x[1] * k > 30:
            break
    return -k


def symmetric(n):
    a = np.random.default_rng(n).random((n, n))
    return a + a.T


@pytest.mark.parametrize("function", [power, two_exits])
def test_iterations(function):
    f = native(function, symmetric(6), 1e-10, tolerance=1e-6)
    for args in ((symmetric(6), 10.0), (symmetric(9), 1e-10), (symmetric(6), -1.0)):
        if function is two_exits or args[1] > 0:
            same(f, function, args, 1e-6)


@pytest.mark.parametrize("function", [from_an_inner_loop, none, with_a_break])
def test_other_ways_to_return(function):
    x = np.array([0.1, 0.7, 0.4])
    f = native(function, x, 20.0)
    for most in (20.0, 0.0, 3.0, 100.0):
        same(f, function, (x, most))
        same(f, function, (x + 1, most))
