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
    of_numbers: [lambda: (draw(1, 4) + 2,), lambda: (draw(1, 4) - 1,)],
}

RECORDED = (clip, normalise, three_ways, chosen, both, called, of_numbers)
"""Those that have a graph."""
