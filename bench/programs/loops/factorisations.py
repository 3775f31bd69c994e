"""Loops of dense linear algebra: factorisations, substitutions, elimination."""

from __future__ import annotations

import numpy as np

from ..program import program


def definite(n, rng):
    a = rng.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def again(function, source, *more):
    """A call that starts from the same matrix, and what it writes to."""
    work = np.empty_like(source)

    def call():
        work[:] = source
        return function(work, *more)

    return call, (work, *more)


def lu_elements(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


@program(small=7, real=55)
def lu_by_elements(jit, n, rng):
    return again(jit(lu_elements), definite(n, rng))


def lu_dots(A):
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]


@program(small=7, real=120)
def lu_by_dots(jit, n, rng):
    return again(jit(lu_dots), definite(n, rng))


def lu_updates(A):
    n = len(A)
    for k in range(n - 1):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])


@program(small=7, real=200)
def lu_by_outer_products(jit, n, rng):
    return again(jit(lu_updates), definite(n, rng))


def eliminate(A, b):
    """Solve A x = b by Gauss, with the largest pivot of each column."""
    A = A.copy()
    x = b.copy()
    n = len(x)
    for k in range(n):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            row = A[k].copy()
            A[k] = A[p]
            A[p] = row
            t = x[k]
            x[k] = x[p]
            x[p] = t
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        x[k] = (x[k] - np.sum(A[k, k + 1 :] * x[k + 1 :])) / A[k, k]
    return x


@program(small=6, real=130, tolerance=1e-7)
def gauss_with_pivots(jit, n, rng):
    solve = jit(eliminate)
    A, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    return lambda: solve(A, b), (A, b)


def cholesky_elements(A):
    n = A.shape[0]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(j):
                s += L[i, k] * L[j, k]
            if i == j:
                L[i, j] = np.sqrt(A[i, i] - s)
            else:
                L[i, j] = (A[i, j] - s) / L[j, j]
    return L


@program(small=6, real=70)
def cholesky_by_elements(jit, n, rng):
    factor = jit(cholesky_elements)
    A = definite(n, rng)
    return lambda: factor(A), (A,)


def cholesky_columns(A):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


@program(small=6, real=150)
def cholesky_by_dots(jit, n, rng):
    return again(jit(cholesky_columns), definite(n, rng))


def gram_schmidt(A):
    Q = np.zeros_like(A)
    R = np.zeros((A.shape[1], A.shape[1]), dtype=A.dtype)
    for k in range(A.shape[1]):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


@program(small=5, real=100, tolerance=1e-8)
def modified_gram_schmidt(jit, n, rng):
    return again(jit(gram_schmidt), rng.standard_normal((2 * n, n)))


def householder(A):
    R = A.copy()
    m, n = A.shape
    for k in range(n):
        v = R[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
    return R


@program(small=5, real=120, tolerance=1e-8)
def householder_qr(jit, n, rng):
    factor = jit(householder)
    A = rng.standard_normal((n + 3, n))
    return lambda: factor(A), (A,)


def forward_elements(L, x, b):
    n = L.shape[0]
    for i in range(n):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]


@program(small=8, real=400)
def triangular_solve_by_elements(jit, n, rng):
    solve = jit(forward_elements)
    L, b, x = np.tril(definite(n, rng)), rng.standard_normal(n), np.zeros(n)
    return lambda: solve(L, x, b), (L, x, b)


def forward_dots(L, x, b):
    for i in range(L.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


@program(small=8, real=1000)
def triangular_solve_by_dots(jit, n, rng):
    solve = jit(forward_dots)
    L, b, x = np.tril(rng.random((n, n)) / n + np.eye(n)), rng.standard_normal(n), np.zeros(n)
    return lambda: solve(L, x, b), (L, x, b)


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@program(small=9, real=2000)
def durbin_recursion(jit, n, rng):
    run = jit(durbin)
    r = 0.5 ** np.arange(1, n + 1) + 1e-3 * rng.random(n) / n
    return lambda: run(r), (r,)


def thomas(a, b, c, d):
    """A tridiagonal system, by diagonals."""
    n = len(d)
    cp, dp = np.zeros(n), np.zeros(n)
    cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


@program(small=8, real=50_000)
def tridiagonal(jit, n, rng):
    solve = jit(thomas)
    a, c, d = rng.random((3, n))
    b = 3 + rng.random(n)
    return lambda: solve(a, b, c, d), (a, b, c, d)


def jacobi_rotations(A, sweeps):
    """Eigenvalues of a symmetric matrix."""
    n = len(A)
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) > 1e-12:
                    theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
                    t = np.sign(theta) / (abs(theta) + np.sqrt(theta * theta + 1))
                    c = 1 / np.sqrt(t * t + 1)
                    s = t * c
                    rows = A[p].copy(), A[q].copy()
                    A[p] = c * rows[0] - s * rows[1]
                    A[q] = s * rows[0] + c * rows[1]
                    columns = A[:, p].copy(), A[:, q].copy()
                    A[:, p] = c * columns[0] - s * columns[1]
                    A[:, q] = s * columns[0] + c * columns[1]
    return np.sort(np.diag(A))


@program(small=5, real=40, tolerance=1e-7)
def eigenvalues_by_rotations(jit, n, rng):
    return again(jit(jacobi_rotations), definite(n, rng), 3)
