"""Loops that look at what they are given, and raise an exception that leaves the function.

In the rows that raise, most calls do so: no call may take longer than Python's own.
"""

from __future__ import annotations

import math

import numpy as np

from ..program import program


def sum_of_logs(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] <= 0:
            raise ValueError("the logarithm of a number that is not positive")
        total += math.log(x[i])
    return total


@program(small=12, real=4000)
def logs_of_positive_numbers(jit, n, rng):
    run = jit(sum_of_logs)
    x = rng.random(n) + 0.5
    return lambda: run(x), (x,)


def cholesky_of_positive(a):
    n = a.shape[0]
    out = np.zeros_like(a)
    for j in range(n):
        s = a[j, j]
        for k in range(j):
            s -= out[j, k] * out[j, k]
        assert s > 0, "the matrix is not positive definite"
        out[j, j] = math.sqrt(s)
        for i in range(j + 1, n):
            t = a[i, j]
            for k in range(j):
                t -= out[i, k] * out[j, k]
            out[i, j] = t / out[j, j]
    return out


@program(small=5, real=60)
def cholesky_that_asserts(jit, n, rng):
    run = jit(cholesky_of_positive)
    a = rng.random((n, n))
    a = a @ a.T + n * np.eye(n)
    return lambda: run(a), (a,)


def newton(f, x, tol, most):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        y = x[i]
        for _ in range(most):
            step = (y * y - f[i]) / (2.0 * y)
            y -= step
            if abs(step) < tol:
                break
        else:
            raise RuntimeError("no convergence")
        out[i] = y
    return out


@program(small=6, real=2000)
def newton_that_has_to_converge(jit, n, rng):
    run = jit(newton)
    f = rng.random(n) + 1.0
    x = np.full(n, 1.5)
    return lambda: run(f, x, 1e-12, 50), (f, x)


def bucket(counts, edges, v):
    if v < edges[0] or v >= edges[-1]:
        raise IndexError("out of the edges")
    k = 0
    while v >= edges[k + 1]:
        k += 1
    counts[k] += 1


def histogram_of_checked(x, edges):
    counts = np.zeros(edges.shape[0] - 1, dtype=np.int64)
    for i in range(x.shape[0]):
        bucket(counts, edges, x[i])
    return counts


@program(small=9, real=3000)
def histogram_with_a_check_in_a_helper(jit, n, rng):
    run = jit(histogram_of_checked)
    x, edges = rng.random(n), np.linspace(0.0, 1.0, 9)
    return lambda: run(x, edges), (x, edges)


def sorted_sum(x):
    for i in range(1, x.shape[0]):
        if x[i] < x[i - 1]:
            raise ValueError("not sorted")
    return x.sum()


@program(small=9, real=2000)
def a_loop_that_only_checks(jit, n, rng):
    run = jit(sorted_sum)
    x = np.sort(rng.random(n))
    return lambda: run(x), (x,)


def _raising(run, *args):
    def call():
        try:
            return run(*args)
        except ValueError:
            return -1.0

    return call


@program(small=12, real=4000)
def a_check_that_fails_late(jit, n, rng):
    run = jit(sum_of_logs)
    x = rng.random(n) + 0.5
    x[-2] = -1.0
    return _raising(run, x), (x,)


@program(small=12, real=4000)
def a_check_that_fails_at_once(jit, n, rng):
    run = jit(sum_of_logs)
    x = rng.random(n) + 0.5
    x[1] = -1.0
    return _raising(run, x), (x,)


def finite_softmax(x):
    if not np.isfinite(x).all():
        raise ValueError("not finite")
    y = np.exp(x - x.max(axis=1, keepdims=True))
    return y / y.sum(axis=1, keepdims=True)


@program(small=5, real=64)
def softmax_of_finite_numbers(jit, n, rng):
    run = jit(finite_softmax)
    x = rng.standard_normal((n, n))
    return lambda: run(x), (x,)
