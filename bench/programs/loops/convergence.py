"""Iterations that go on until what they seek is close enough."""

from __future__ import annotations

import numpy as np

from ..program import program


def pagerank_power(links, damping, tol):
    n = links.shape[0]
    out = links.sum(axis=0)
    out[out == 0] = 1
    transition = links / out
    rank = np.ones(n) / n
    change = 1.0
    rounds = 0
    while change > tol:
        new = (1 - damping) / n + damping * (transition @ rank)
        change = np.abs(new - rank).sum()
        rank = new
        rounds += 1
    return rank, rounds


@program(small=8, real=400)
def pagerank_until_it_stays(jit, n, rng):
    run = jit(pagerank_power)
    links = (rng.random((n, n)) < 8 / n).astype(float)
    return lambda: run(links, 0.85, 1e-10), (links,)


def conjugate_gradient(A, b, tol):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    k = 0
    while np.sqrt(rs) > tol and k < 10 * len(b):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        p = r + (rs_new / rs) * p
        rs = rs_new
        k += 1
    return x, k


@program(small=6, real=300, tolerance=1e-7)
def conjugate_gradients(jit, n, rng):
    run = jit(conjugate_gradient)
    a = rng.standard_normal((n, n))
    A, b = a @ a.T / n + np.eye(n), rng.standard_normal(n)
    return lambda: run(A, b, 1e-8), (A, b)


def laplace(u, tol, most):
    """Jacobi until no point moves any more; the number of steps is not known."""
    for k in range(most):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        if np.max(np.abs(new - u)) < tol:
            break
        u = new
    return u, k


@program(small=6, real=60)
def laplace_until_it_stays(jit, n, rng):
    run = jit(laplace)
    u = np.zeros((n, n))
    u[0] = 1
    return lambda: run(u, 1e-3, 1000), (u,)


def power_iteration(A, tol):
    v = np.ones(A.shape[0]) / np.sqrt(A.shape[0])
    value = 0.0
    while True:
        w = A @ v
        new = v @ w
        v = w / np.linalg.norm(w)
        if abs(new - value) < tol * abs(new):
            return new, v
        value = new


@program(small=5, real=300, tolerance=1e-6)
def power_iterations(jit, n, rng):
    run = jit(power_iteration)
    a = rng.random((n, n))
    A = a + a.T
    return lambda: run(A, 1e-12), (A,)


def kmeans(points, k, most):
    centers = points[:k].copy()
    labels = np.zeros(len(points), dtype=np.int64)
    for _ in range(most):
        d = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
        new = d.argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
        for j in range(k):
            centers[j] = points[labels == j].mean(axis=0)
    return centers, labels


@program(small=30, real=5_000)
def kmeans_until_it_stays(jit, n, rng):
    run = jit(kmeans)
    points = rng.standard_normal((n, 2)) + 5 * rng.integers(0, 2, (n, 2))
    return lambda: run(points, 4, 20), (points,)


def newton_all(a, tol):
    out = np.empty_like(a)
    for i in range(a.size):
        x = a[i] if a[i] > 1 else 1.0
        while abs(x * x - a[i]) > tol * a[i]:
            x = 0.5 * (x + a[i] / x)
        out[i] = x
    return out


@program(small=9, real=20_000)
def roots_by_newton(jit, n, rng):
    run = jit(newton_all)
    a = 0.1 + 10 * rng.random(n)
    return lambda: run(a, 1e-12), (a,)


def implied(price, s, k, t, r):
    """The volatility that explains a price, by bisection on all at once."""
    low, high = np.full(price.shape, 1e-4), np.full(price.shape, 4.0)
    while (high - low).max() > 1e-8:
        mid = 0.5 * (low + high)
        root = mid * np.sqrt(t)
        d1 = (np.log(s / k) + (r + 0.5 * mid**2) * t) / root
        # The logistic curve is close to the normal distribution.
        n1, n2 = 1 / (1 + np.exp(-1.702 * d1)), 1 / (1 + np.exp(-1.702 * (d1 - root)))
        value = s * n1 - k * np.exp(-r * t) * n2
        low = np.where(value < price, mid, low)
        high = np.where(value < price, high, mid)
    return 0.5 * (low + high)


@program(small=8, real=5_000)
def implied_volatility(jit, n, rng):
    run = jit(implied)
    s, k, t = rng.uniform(80, 120, n), np.full(n, 100.0), rng.uniform(0.2, 2, n)
    price = 8 + 10 * rng.random(n) + np.maximum(s - k, 0)
    return lambda: run(price, s, k, t, 0.02), (price,)


def relax_labels(labels, left, right):
    """Connected components: the least label wins, until no edge changes one."""
    changed = True
    rounds = 0
    while changed:
        changed = False
        for e in range(len(left)):
            a, b = labels[left[e]], labels[right[e]]
            if a < b:
                labels[right[e]] = a
                changed = True
            elif b < a:
                labels[left[e]] = b
                changed = True
        rounds += 1
    return rounds


@program(small=9, real=6_000)
def connected_components(jit, n, rng):
    run = jit(relax_labels)
    left, right = rng.integers(0, n, (2, n))
    labels = np.arange(n)

    def call():
        labels[:] = np.arange(n)
        return run(labels, left, right)

    return call, (labels,)


def sinkhorn(K, a, b, tol):
    u, v = np.ones_like(a), np.ones_like(b)
    error, k = np.inf, 0
    while error > tol and k < 500:
        u = a / (K @ v)
        v = b / (K.T @ u)
        error = np.abs(u * (K @ v) - a).max()
        k += 1
    return u[:, None] * K * v, k


@program(small=6, real=200)
def transport_by_sinkhorn(jit, n, rng):
    run = jit(sinkhorn)
    x, y = rng.random(n), rng.random(n + 1)
    K = np.exp(-10 * (x[:, None] - y) ** 2)
    a, b = np.full(n, 1 / n), np.full(n + 1, 1 / (n + 1))
    return lambda: run(K, a, b, 1e-9), (K,)
