"""Products of matrices and vectors, and what is added to them: kernels of linear algebra."""

from __future__ import annotations

import numpy as np

from .program import program


def _matrices(rng, *shapes):
    return [rng.standard_normal(shape) for shape in shapes]


@program(small=12, real=500)
def scaled_product(jit, n, rng):
    """A product added to a matrix in place."""

    def step(alpha, beta, c, a, b):
        c[:] = alpha * a @ b + beta * c

    step = jit(step)
    m, k = n + n // 10, n + n // 5
    c, a, b = _matrices(rng, (n, m), (n, k), (k, m))
    return lambda: step(1.5 / k, 0.5, c, a, b), (c,)


@program(small=12, real=400)
def two_products(jit, n, rng):
    """The first product is the left operand of the second."""

    def step(alpha, beta, a, b, c, d):
        d[:] = alpha * a @ b @ c + beta * d

    step = jit(step)
    m, k, p = n + n // 8, n + n // 4, n + n // 2
    a, b, c, d = _matrices(rng, (n, k), (k, m), (m, p), (n, p))
    return lambda: step(1.5 / (k * m), 0.5, a, b, c, d), (d,)


@program(small=12, real=400)
def three_products(jit, n, rng):
    step = jit(lambda a, b, c, d: a @ b @ (c @ d))
    m, k, p, q = n + n // 8, n + n // 4, n + n // 2, n + n // 3
    arrays = _matrices(rng, (n, k), (k, m), (m, p), (p, q))
    return lambda: step(*arrays), ()


@program(small=12, real=800)
def product_with_epilogue(jit, n, rng):
    step = jit(lambda a, b: a @ b * 2 + 1)
    a, b = _matrices(rng, (n, n + n // 8), (n + n // 8, n + n // 16))
    return lambda: step(a, b), ()


@program(small=12, real=600)
def dense_layers(jit, n, rng):
    """Two layers with biases; the second has few columns."""

    def step(x, w0, b0, w1, b1):
        return np.maximum(np.maximum(x @ w0 + b0, 0.0) @ w1 + b1, 0.0)

    step = jit(step)
    arrays = _matrices(rng, (n, n), (n, n + 50), (n + 50,), (n + 50, 40), (40,))
    return lambda: step(*arrays), ()


@program(small=12, real=1300)
def matrix_twice(jit, n, rng):
    """A matrix times a vector, and its transpose times the result."""
    step = jit(lambda a, x: (a @ x) @ a)
    a, x = _matrices(rng, (n, n + n // 10), (n + n // 10,))
    return lambda: step(a, x), ()


@program(small=12, real=1300)
def from_both_sides(jit, n, rng):
    step = jit(lambda a, p, r: (r @ a, a @ p))
    a, p, r = _matrices(rng, (n + n // 10, n), (n,), (n + n // 10,))
    return lambda: step(a, p, r), ()


@program(small=12, real=1300)
def added_from_both_sides(jit, n, rng):
    def step(x1, x2, y1, y2, a):
        x1 += a @ y1
        x2 += y2 @ a

    step = jit(step)
    x1, x2, y1, y2, a = _matrices(rng, (n,), (n,), (n,), (n,), (n, n))
    return lambda: step(x1, x2, y1, y2, a), (x1, x2)


@program(small=12, real=1000)
def two_matrices_one_vector(jit, n, rng):
    step = jit(lambda alpha, beta, a, b, x: alpha * a @ x + beta * b @ x)
    a, b, x = _matrices(rng, (n, n), (n, n), (n,))
    return lambda: step(1.5, 1.2, a, b, x), ()


@program(small=12, real=1000)
def rank_two_update(jit, n, rng):
    def step(alpha, beta, a, u1, v1, u2, v2, w, x, y, z):
        a += np.outer(u1, v1) + np.outer(u2, v2)
        x += beta * y @ a + z
        w += alpha * a @ x

    step = jit(step)
    a, *vectors = _matrices(rng, (n, n), *[(n,)] * 8)
    u1, v1, u2, v2, w, x, y, z = (v / n for v in vectors)
    return lambda: step(1.5 / n, 1.2 / n, a, u1, v1, u2, v2, w, x, y, z), (a, x, w)


@program(small=12, real=700)
def covariance_of_columns(jit, n, rng):
    def step(data):
        data -= data.mean(axis=0)
        return data.T @ data / (data.shape[0] - 1.0)

    step = jit(step)
    (data,) = _matrices(rng, (n + n // 3, n))
    return lambda: step(data), (data,)


@program(small=6, real=40)
def powers(jit, n, rng):
    """Products in a loop."""

    def step(a, rounds):
        x = a
        for _ in range(rounds):
            x = x @ a
            x = x / np.abs(x).max()
        return x

    step = jit(step)
    (a,) = _matrices(rng, (8 * n, 8 * n))
    return lambda: step(a, 10), ()
