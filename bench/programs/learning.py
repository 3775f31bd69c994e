"""Fits and training steps, with parameters that are updated in place or kept in attributes."""

from __future__ import annotations

import numpy as np

from .program import program


def kmeans_step(points, centers):
    distance = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    label = distance.argmin(axis=1)
    for k in range(len(centers)):
        mine = label == k
        if np.count_nonzero(mine):
            centers[k] = points[mine].mean(axis=0)
    return label


def kmeans_step_by_sums(points, centers):
    distance = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    label = distance.argmin(axis=1)
    for k in range(len(centers)):
        centers[k] = points[label == k].mean(axis=0)
    return label


@program(small=40, real=20_000)
def kmeans(jit, n, rng):
    step = jit(kmeans_step_by_sums)
    points = rng.standard_normal((n, 2)) + 4 * rng.integers(0, 2, (n, 2))
    centers = points[:4].copy()
    return lambda: step(points, centers), (centers,)


@program(small=40, real=20_000)
def kmeans_that_skips_empty(jit, n, rng):
    step = jit(kmeans_step)
    points = rng.standard_normal((n, 2)) + 4 * rng.integers(0, 2, (n, 2))
    centers = points[:4].copy()
    return lambda: step(points, centers), (centers,)


def gmm_step(x, weights, means, variances):
    diff = x[:, None, :] - means
    logp = -0.5 * (diff**2 / variances + np.log(2 * np.pi * variances)).sum(axis=-1)
    logp += np.log(weights)
    top = logp.max(axis=1, keepdims=True)
    norm = top + np.log(np.exp(logp - top).sum(axis=1, keepdims=True))
    resp = np.exp(logp - norm)
    mass = resp.sum(axis=0)
    new_means = resp.T @ x / mass[:, None]
    new_variances = resp.T @ x**2 / mass[:, None] - new_means**2 + 1e-6
    return mass / len(x), new_means, new_variances, norm.mean()


@program(small=30, real=20_000)
def gmm(jit, n, rng):
    step = jit(gmm_step)
    x = rng.standard_normal((n, 3)) + 3 * rng.integers(0, 2, (n, 1))
    model = [np.full(4, 0.25), x[:4].copy(), np.ones((4, 3))]

    def call():
        *model[:], score = step(x, *model)
        return model, score

    return call, (model,)


def logistic_step(w, b, x, y, rate):
    p = 1 / (1 + np.exp(-(x @ w + b)))
    error = p - y
    w -= rate * (x.T @ error / len(y) + 1e-3 * w)
    b -= rate * error.mean()
    eps = 1e-12
    return -np.mean(y * np.log(p + eps) + (1 - y) * np.log(1 - p + eps))


@program(small=20, real=4000)
def logistic_regression(jit, n, rng):
    step = jit(logistic_step)
    x = rng.standard_normal((n, 30))
    y = (x[:, 0] + 0.3 * rng.standard_normal(n) > 0).astype(float)
    w, b = np.zeros(30), np.zeros(1)
    return lambda: step(w, b, x, y, 0.5), (w, b)


class Network:
    """Two layers, trained by Adam, whose state is in attributes."""

    def __init__(self, sizes, rng):
        self.params = []
        for m, n in zip(sizes, sizes[1:]):
            self.params.append((rng.standard_normal((m, n)) / np.sqrt(m)).astype(np.float32))
            self.params.append(np.zeros(n, dtype=np.float32))
        self.m = [np.zeros_like(p) for p in self.params]
        self.v = [np.zeros_like(p) for p in self.params]
        self.t = 0

    def gradients(self, x, y):
        w1, b1, w2, b2 = self.params
        h = np.maximum(x @ w1 + b1, 0)
        z = h @ w2 + b2
        z = z - z.max(axis=1, keepdims=True)
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(y))
        loss = -np.log(p[rows, y]).mean()
        p[rows, y] -= 1
        p /= len(y)
        dh = p @ w2.T
        dh[h <= 0] = 0
        return loss, [x.T @ dh, dh.sum(axis=0), h.T @ p, p.sum(axis=0)]

    def train(self, x, y, rate=1e-3, beta1=0.9, beta2=0.999):
        loss, grads = self.gradients(x, y)
        self.t += 1
        for p, g, m, v in zip(self.params, grads, self.m, self.v):
            m *= beta1
            m += (1 - beta1) * g
            v *= beta2
            v += (1 - beta2) * g * g
            m_hat = m / (1 - beta1**self.t)
            v_hat = v / (1 - beta2**self.t)
            p -= rate * m_hat / (np.sqrt(v_hat) + 1e-8)
        return loss


@program(small=12, real=256, tolerance=2e-3)
def mlp_with_adam(jit, n, rng):
    network = Network((64, 128, 10), rng)
    train = jit(Network.train)
    x = rng.standard_normal((n, 64)).astype(np.float32)
    y = rng.integers(0, 10, n)
    return lambda: train(network, x, y), (network,)


def principal_components(x, k):
    centred = x - x.mean(axis=0)
    cov = centred.T @ centred / (len(x) - 1)
    values, vectors = np.linalg.eigh(cov)
    vectors = vectors[:, ::-1][:, :k]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(k)])
    return values[::-1][:k], centred @ vectors


@program(small=25, real=10_000, tolerance=1e-7)
def pca(jit, n, rng):
    find = jit(principal_components)
    x = rng.standard_normal((n, 20)) * np.arange(1, 21)
    return lambda: find(x, 3), ()


def pagerank_step(links, rank, damping=0.85):
    out = links.sum(axis=0)
    spread = np.where(out > 0, rank / np.where(out > 0, out, 1), 0)
    dangling = rank[out == 0].sum() / rank.size
    new = (1 - damping) / rank.size + damping * (links @ spread + dangling)
    change = np.abs(new - rank).sum()
    rank[:] = new
    return change


@program(small=8, real=1000)
def pagerank(jit, n, rng):
    step = jit(pagerank_step)
    links = (rng.random((n, n)) < 4 / n).astype(float)
    rank = np.full(n, 1 / n)
    return lambda: step(links, rank), (rank,)
