"""Dynamic programming: tables whose entries depend on earlier ones."""

from __future__ import annotations

import numpy as np

from ..program import program


def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


@program(small=7, real=180)
def shortest_paths_by_rows(jit, n, rng):
    run = jit(floyd_warshall)
    source = rng.integers(1, 1000, (n, n))
    path = source.copy()

    def call():
        path[:] = source
        run(path)

    return call, (path,)


def floyd_elements(dist):
    n = len(dist)
    d = dist.copy()
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


@program(small=6, real=50)
def shortest_paths_by_elements(jit, n, rng):
    run = jit(floyd_elements)
    dist = rng.random((n, n))
    dist[rng.random((n, n)) > 0.4] = np.inf
    return lambda: run(dist), (dist,)


def levenshtein(a, b):
    m, n = len(a), len(b)
    d = np.zeros((m + 1, n + 1), dtype=np.int64)
    for i in range(m + 1):
        d[i, 0] = i
    for j in range(n + 1):
        d[0, j] = j
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                d[i, j] = d[i - 1, j - 1]
            else:
                d[i, j] = 1 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[m, n]


@program(small=9, real=250)
def edit_distance(jit, n, rng):
    run = jit(levenshtein)
    a, b = rng.integers(0, 4, n), rng.integers(0, 4, n + 5)
    return lambda: run(a, b), (a, b)


def align(a, b, match, mismatch, gap):
    """Smith-Waterman: the best local alignment, and where it ends."""
    score = np.zeros((len(a) + 1, len(b) + 1))
    best = 0.0
    where = (0, 0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            s = match if a[i - 1] == b[j - 1] else mismatch
            h = max(score[i - 1, j - 1] + s, score[i - 1, j] - gap, score[i, j - 1] - gap, 0.0)
            score[i, j] = h
            if h > best:
                best = h
                where = (i, j)
    return best, where, score


@program(small=8, real=200)
def local_alignment(jit, n, rng):
    run = jit(align)
    a, b = rng.integers(0, 4, n), rng.integers(0, 4, n)
    return lambda: run(a, b, 2.0, -1.0, 1.5), (a, b)


def nussinov(N, seq):
    table = np.zeros((N, N), np.int32)
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < N:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < N:
                if i < j - 1:
                    pair = 1 if seq[i] + seq[j] == 3 else 0
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@program(small=8, real=60)
def folding_of_rna(jit, n, rng):
    run = jit(nussinov)
    seq = rng.integers(0, 4, n)
    return lambda: run(n, seq), (seq,)


def viterbi(log_start, log_trans, log_emit, observed):
    steps, states = len(observed), len(log_start)
    score = np.zeros((steps, states))
    back = np.zeros((steps, states), dtype=np.int64)
    score[0] = log_start + log_emit[:, observed[0]]
    for t in range(1, steps):
        options = score[t - 1][:, None] + log_trans
        back[t] = np.argmax(options, axis=0)
        score[t] = np.max(options, axis=0) + log_emit[:, observed[t]]
    path = np.zeros(steps, dtype=np.int64)
    path[-1] = np.argmax(score[-1])
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path, score[-1].max()


def hidden(n, states, rng):
    start, trans, emit = rng.random(states), rng.random((states, states)), rng.random((states, 6))
    return np.log(start), np.log(trans), np.log(emit), rng.integers(0, 6, n)


@program(small=7, real=1000)
def viterbi_path(jit, n, rng):
    run = jit(viterbi)
    model = hidden(n, 20, rng)
    return lambda: run(*model), model


def forward(start, trans, emit, observed):
    """The likelihood of what was observed, with scaling."""
    alpha = start * emit[:, observed[0]]
    total = 0.0
    for t in range(len(observed)):
        if t > 0:
            alpha = (alpha @ trans) * emit[:, observed[t]]
        scale = alpha.sum()
        alpha = alpha / scale
        total += np.log(scale)
    return total


@program(small=7, real=3000)
def likelihood_of_a_chain(jit, n, rng):
    run = jit(forward)
    *logs, observed = hidden(n, 12, rng)
    model = [np.exp(x) for x in logs]
    return lambda: run(*model, observed), (observed,)


def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for i in range(len(weights)):
        w, v = weights[i], values[i]
        for c in range(capacity, w - 1, -1):
            if best[c - w] + v > best[c]:
                best[c] = best[c - w] + v
    return best[capacity]


@program(small=6, real=100)
def knapsack_by_elements(jit, n, rng):
    run = jit(knapsack)
    weights, values = rng.integers(1, 30, n), rng.integers(1, 100, n)
    return lambda: run(weights, values, 10 * n), (weights, values)


def chain(dims):
    """The fewest multiplications for a product of matrices."""
    n = len(dims) - 1
    cost = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = np.inf
            for k in range(i, j):
                q = cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
                if q < cost[i, j]:
                    cost[i, j] = q
    return cost[0, n - 1]


@program(small=6, real=60)
def order_of_products(jit, n, rng):
    run = jit(chain)
    dims = rng.integers(2, 50, n + 1)
    return lambda: run(dims), (dims,)


def warp(x, y):
    """Dynamic time warping."""
    n, m = len(x), len(y)
    d = np.full((n + 1, m + 1), np.inf)
    d[0, 0] = 0
    for i in range(n):
        for j in range(m):
            cost = abs(x[i] - y[j])
            d[i + 1, j + 1] = cost + min(d[i, j + 1], d[i + 1, j], d[i, j])
    return d[n, m]


@program(small=8, real=230)
def time_warping(jit, n, rng):
    run = jit(warp)
    x, y = np.cumsum(rng.standard_normal(n)), np.cumsum(rng.standard_normal(n + 3))
    return lambda: run(x, y), (x, y)


def longest(a):
    """The length of the longest increasing subsequence."""
    n = len(a)
    length = np.ones(n, dtype=np.int64)
    for i in range(n):
        for j in range(i):
            if a[j] < a[i] and length[j] + 1 > length[i]:
                length[i] = length[j] + 1
    return length.max()


@program(small=9, real=400)
def increasing_subsequence(jit, n, rng):
    run = jit(longest)
    a = rng.standard_normal(n)
    return lambda: run(a), (a,)
