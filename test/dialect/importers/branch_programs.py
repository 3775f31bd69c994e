"""Functions with branches that contents decide, as users write them; no loops."""

import math

import numpy as np


def clip(g, most):
    norm = np.sqrt((g * g).sum())
    if norm > most:
        g = g * (most / norm)
    return g


def normalise(x):
    total = x.sum()
    if total == 0:
        return x * 1
    return x / total


def three_ways(x):
    mean = x.mean()
    if mean > 0.5:
        return x + 1
    elif mean < -0.5:
        return x - 1
    else:
        return x * 2


def checked(x):
    if np.isnan(x).any():
        raise ValueError("nan")
    return x * 2


def chosen(x, y):
    return x * 2 if x.sum() > y.sum() else y + 1


def nested(x, k):
    if k > 2:
        if x.max() > 1:
            x = x / x.max()
        else:
            return x * 0
    y = np.tanh(x)
    return y * k


def scaled(x, a):
    if a < 0:
        return np.abs(x) * a
    return x * a


def maybe_nothing(x):
    if x.sum() > 0:
        return None
    return x * 1


def both(x):
    if (x.min() > -1 and x.max() < 1) or x.size == 0:
        return np.arctanh(x)
    return np.zeros_like(x)


def written(x):
    if x[0] > 0:
        x[1:] = 0
    else:
        x[:-1] *= 2
    return x.sum()


def called(x):
    def inner(v):
        if v.mean() > 0:
            return v * 2
        return v - 1

    return inner(x) + inner(-x)


def of_numbers(x):
    n = int(x.sum())
    if n > 2:
        return math.sqrt(n) * x
    return float(n) + x


def first_above(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return i
    return -1


def determinant(m):
    a, found = m.copy(), 1.0
    for k in range(a.shape[0]):
        if a[k, k] == 0:
            return 0.0
        found *= a[k, k]
        for i in range(k + 1, a.shape[0]):
            a[i, k:] -= a[i, k] / a[k, k] * a[k, k:]
    return float(found)


def pair(x, total):
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if x[i] + x[j] > total:
                return i, j, x[i] * x[j]
    return -1, -1, x[0] * 0


def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


def draw(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


ARGUMENTS = {
    clip: [lambda: (draw(1, 5), 1.0), lambda: (draw(1, 5), 100.0)],
    normalise: [lambda: (draw(1, 5),), lambda: (np.zeros(5),)],
    three_ways: [lambda: (draw(1, 5) + 2,), lambda: (draw(1, 5) - 2,), lambda: (draw(1, 5) / 9,)],
    checked: [lambda: (draw(1, 5),), lambda: (np.full(5, np.nan),)],
    chosen: [lambda: (draw(1, 4), draw(2, 4)), lambda: (draw(2, 4), draw(1, 4))],
    nested: [lambda: (draw(1, 4) * 3, 3), lambda: (draw(1, 4) * 0.1, 3), lambda: (draw(1, 4), 1)],
    scaled: [lambda: (draw(1, 4), 2.0), lambda: (draw(1, 4), -2.0)],
    maybe_nothing: [lambda: (draw(1, 4) + 3,), lambda: (draw(1, 4) - 3,)],
    both: [lambda: (draw(1, 4) * 0.1,), lambda: (draw(1, 4) * 5,)],
    written: [lambda: (np.abs(draw(1, 4)),), lambda: (-np.abs(draw(1, 4)),)],
    called: [lambda: (draw(1, 4),), lambda: (-draw(1, 4),)],
    first_above: [lambda: (draw(1, 30), 1.5), lambda: (draw(1, 30), 9.0), lambda: (draw(1, 0), 1.0)],
    determinant: [lambda: (draw(1, 5, 5),), lambda: (np.zeros((3, 3)),)],
    pair: [lambda: (draw(1, 20), 2.5), lambda: (draw(1, 20), 50.0)],
    is_prime: [lambda: (97,), lambda: (91,), lambda: (1,), lambda: (2,)],
    of_numbers: [lambda: (draw(1, 4) + 2,), lambda: (draw(1, 4) - 1,)],
}

RECORDED = (clip, normalise, three_ways, chosen, both, called, of_numbers)
"""Those that have a graph."""
