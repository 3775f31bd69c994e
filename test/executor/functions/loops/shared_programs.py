"""Loops whose rounds are independent, and loops whose rounds are not."""

import math

import numpy as np


def mandelbrot(xs, ys, limit):
    out = np.zeros((ys.shape[0], xs.shape[0]), np.int64)
    for i in range(ys.shape[0]):
        for j in range(xs.shape[0]):
            zr = zi = 0.0
            n = 0
            while n < limit and zr * zr + zi * zi <= 4.0:
                zr, zi = zr * zr - zi * zi + xs[j], 2 * zr * zi + ys[i]
                n += 1
            out[i, j] = n
    return out


def stencil(x):
    y = np.zeros(x.shape)
    for i in range(1, x.shape[0] - 1):
        y[i, 1:-1] = 0.2 * (x[i, 1:-1] + x[i - 1, 1:-1] + x[i + 1, 1:-1] + x[i, :-2] + x[i, 2:])
    return y


def softmax(x):
    """Each round has a row of its own for what is between."""
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        row = x[i] * 2.0
        e = np.exp(row - row.max())
        y[i] = e / e.sum()
    return y


def distances(p):
    n = p.shape[0]
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(p.shape[1]):
                t = p[i, k] - p[j, k]
                s += t * t
            d[i, j] = math.sqrt(s)
    return d


def forces(p, m):
    n = p.shape[0]
    f = np.zeros((n, 3))
    for i in range(n):
        for j in range(n):
            dx = p[j, 0] - p[i, 0]
            dy = p[j, 1] - p[i, 1]
            dz = p[j, 2] - p[i, 2]
            r = dx * dx + dy * dy + dz * dz + 0.01
            w = m[j] / (r * math.sqrt(r))
            f[i, 0] += w * dx
            f[i, 1] += w * dy
            f[i, 2] += w * dz
    return f


def product(a, b):
    n, m, length = a.shape[0], b.shape[1], a.shape[1]
    c = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(length):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


def triangle(p):
    n = p.shape[0]
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = math.sqrt((p[i, 0] - p[j, 0]) ** 2 + (p[i, 1] - p[j, 1]) ** 2)
    return d


def every_second(x):
    y = np.zeros((2 * x.shape[0] + 1, x.shape[1]))
    for i in range(0, x.shape[0], 2):
        for j in range(x.shape[1]):
            y[2 * i + 1, j] = math.sin(x[i, j]) + math.exp(x[i, j])
    return y


def upwards(x):
    """Rounds go downwards, and write columns."""
    y = np.zeros((x.shape[1], x.shape[0]))
    for i in range(x.shape[0] - 1, -1, -1):
        for j in range(x.shape[1]):
            y[j, i] = math.atan2(x[i, j], x[i, 0]) + math.cos(x[i, j])
    return y


def over_time(x, steps):
    """Rows of a step are independent, steps are not."""
    for _ in range(steps):
        y = np.zeros(x.shape)
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
        x = y
    return x


def symmetric(x):
    d = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            d[i, j] = math.sin(x[i, j])
            d[j, i] = d[i, j]
    return d


def symmetric_from_below(x):
    d = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(i):
            d[j, i] = math.sin(x[i, j])
            d[i, j] = -d[j, i]
    return d


def interleaved(x):
    y = np.zeros((3 * x.shape[0], x.shape[1]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[3 * i, j] = x[i, j]
            y[3 * i + 1, j] = math.sin(x[i, j])
            y[3 * i + 2, j] = y[3 * i, j] - y[3 * i + 1, j]
    return y


def powers(z, c, times):
    """Complex numbers, one of them from outside of the loop."""
    y = np.zeros(z.shape, np.complex128)
    w = c[0] * 0.5
    for i in range(z.shape[0]):
        v = z[i] * 0.1
        for _ in range(times):
            v = v * v + w
        y[i] = v
    return y


def small_numbers(x, k):
    y = np.zeros(x.shape, np.int8)
    z = np.zeros(x.shape, np.float32)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] % k
            z[i, j] = y[i, j] > 3
    return z


def gathered(x, where):
    """What is forbidden is noted in a byte of each chunk."""
    y = np.zeros(where.shape[0])
    for i in range(where.shape[0]):
        y[i] = x[where[i]] * 2.0
    return y


def sparse(values, columns, starts, x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += values[k] * x[columns[k]]
        y[i] = s
    return y


def branching(x):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            if v > 0.5:
                y[i, j] = math.log(v)
            else:
                y[i, j] = v * v
            if y[i, j] < -0.2:
                y[i, j] = 0.0
    return y


def roots(x):
    """Rounds that might not end, and might be forbidden."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        r = x[i, 0] + 1.0
        while abs(r * r - x[i, 0]) > 1e-9:
            r = 0.5 * (r + x[i, 0] / r)
        y[i] = r
    return y


def unending(table, where):
    """Rounds that read a large number never end."""
    y = np.zeros(where.shape[0])
    for i in range(where.shape[0]):
        r = table[where[i]]
        while r > 0.5:
            r = r * 1.0
        y[i] = r
    return y


def in_place(x, rounds):
    """Each round changes its own row, several times."""
    a = x.copy()
    for i in range(a.shape[0]):
        for _ in range(rounds):
            for j in range(1, a.shape[1]):
                a[i, j] = 0.5 * (a[i, j] + a[i, j - 1])
    return a


def _sparse_arguments(rng, n):
    starts = np.cumsum(np.concatenate([[0], rng.integers(99, 120, n)]))
    return rng.random(starts[-1]), rng.integers(0, n, starts[-1]), starts, rng.random(n)


ARGUMENTS = {
    "mandelbrot": lambda rng, n: (np.linspace(-2, 1, n), np.linspace(-1, 1, n), 30),
    "stencil": lambda rng, n: (rng.random((3 * n, n)),),
    "softmax": lambda rng, n: (rng.random((3 * n, n)),),
    "distances": lambda rng, n: (rng.random((n, 3)),),
    "forces": lambda rng, n: (rng.random((n, 3)), rng.random(n)),
    "product": lambda rng, n: (rng.random((n, n // 2)), rng.random((n // 2, n))),
    "triangle": lambda rng, n: (rng.random((n, 2)),),
    "every_second": lambda rng, n: (rng.random((n, n)),),
    "upwards": lambda rng, n: (rng.random((n, n)),),
    "over_time": lambda rng, n: (rng.random((n, n)), 3),
    "symmetric": lambda rng, n: (rng.random((n, n)),),
    "symmetric_from_below": lambda rng, n: (rng.random((n, n)),),
    "interleaved": lambda rng, n: (rng.random((n, n)),),
    "powers": lambda rng, n: (rng.random(4 * n) + 1j * rng.random(4 * n), rng.random(3) + 0j, 9),
    "small_numbers": lambda rng, n: (rng.integers(0, 100, (n, n)), 7),
    "gathered": lambda rng, n: (rng.random(n), rng.integers(-n, n, 200 * n)),
    "sparse": _sparse_arguments,
    "branching": lambda rng, n: (rng.random((n, n)),),
    "roots": lambda rng, n: (rng.random((n, 1)),),
    "in_place": lambda rng, n: (rng.random((n, n)), 2),
}


# --- rounds that are not independent ------------------------------------------------------------


def running(x):
    y = np.zeros(x.shape[0])
    s = 0.0
    for i in range(x.shape[0]):
        s = math.sin(s + x[i, 0])
        y[i] = s
    return y


def from_before(x):
    y = np.zeros(x.shape)
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = math.sin(y[i - 1, j] + x[i, j])
    return y


def with_diagonal(x):
    """Above the diagonal, each round also reads what other rounds write."""
    d = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            d[i, j] = math.sin(x[i, j])
            d[j, i] = d[i, j] + d[j, j]
        d[i, i] = x[i, i]
    return d


def both_sides(x):
    d = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            d[i, j] = math.sin(x[i, j])
            d[j, i] = d[i, j]
    return d


def overlapping(x):
    y = np.zeros((3 * x.shape[0] + 4, x.shape[1]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[3 * i, j] = x[i, j]
            y[3 * i + 3, j] = math.sin(x[i, j])
    return y


def counted(x):
    h = np.zeros(16)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            h[int(x[i, j] * 16)] += 1.0
    return h


def one_row(x):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[0, j] = math.sin(x[i, j]) + y[0, j]
    return y


_PLACES = "rounds write an array at places that others read or write"
DEPENDENT = {
    "running": "a round hands on a number to the next one",
    "from_before": _PLACES,
    "with_diagonal": _PLACES,
    "both_sides": _PLACES,
    "overlapping": _PLACES,
    "counted": _PLACES,
    "one_row": _PLACES,
}
