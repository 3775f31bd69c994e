"""Programs with loops as users write them, with arguments; none knows of the compiler."""

from __future__ import annotations

import math

import numpy as np


def gauss_seidel(u, f, steps):
    n = u.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])


def jacobi(u, tmp, steps):
    for _ in range(steps):
        tmp[1:-1] = 0.5 * (u[:-2] + u[2:])
        u[:] = tmp


def floyd_warshall(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def edit_distance(a, b):
    m, n = len(a), len(b)
    d = np.zeros((m + 1, n + 1), np.int64)
    d[:, 0] = np.arange(m + 1)
    d[0, :] = np.arange(n + 1)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            c = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + c)
    return d[m, n]


def mandelbrot(w, h, it):
    out = np.zeros((h, w), np.int32)
    for i in range(h):
        for j in range(w):
            cr = -2 + 3 * j / w
            ci = -1 + 2 * i / h
            zr = zi = 0.0
            k = 0
            while zr * zr + zi * zi < 4 and k < it:
                zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
                k += 1
            out[i, j] = k
    return out


def fir(x, h):
    y = np.zeros(len(x))
    for n in range(len(x)):
        for k in range(len(h)):
            if n - k >= 0:
                y[n] += h[k] * x[n - k]
    return y


def game_of_life(b, n):
    for _ in range(n):
        c = sum(np.roll(np.roll(b, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        b = ((c == 3) | ((b == 1) & (c == 2))).astype(b.dtype)
    return b


def sparse_product(data, indices, indptr, x):
    n = len(indptr) - 1
    y = np.zeros(n)
    for i in range(n):
        acc = 0.0
        for jj in range(indptr[i], indptr[i + 1]):
            acc += data[jj] * x[indices[jj]]
        y[i] = acc
    return y


def pagerank(A, d, tol):
    n = A.shape[0]
    r = np.ones(n) / n
    k = 0
    while True:
        r2 = (1 - d) / n + d * (A @ r)
        k += 1
        if np.abs(r2 - r).sum() < tol:
            break
        r = r2
    return r2, k


def lorenz(n, dt):
    xs = np.empty((n + 1, 3))
    xs[0] = (0.0, 1.0, 1.05)
    for i in range(n):
        x, y, z = xs[i]
        xs[i + 1, 0] = x + dt * 10 * (y - x)
        xs[i + 1, 1] = y + dt * (x * (28 - z) - y)
        xs[i + 1, 2] = z + dt * (x * y - 2.667 * z)
    return xs


def crc32(data, table):
    c = 0xFFFFFFFF
    for b in data:
        c = int(table[(c ^ int(b)) & 0xFF]) ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def histogram(x, k):
    h = np.zeros(k, dtype=np.int64)
    for v in x:
        h[int(v * k)] += 1
    return h


def norm(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
    return math.sqrt(s)


def distances(p):
    n = p.shape[0]
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = math.sqrt((p[i, 0] - p[j, 0]) ** 2 + (p[i, 1] - p[j, 1]) ** 2)
            d[j, i] = d[i, j]
    return d


def integral(f0, n):
    h = 1.0 / n
    s = 0.0
    for k in range(n):
        t = (k + 0.5) * h
        s += math.exp(-t * t) * math.sin(f0 * t)
    return s * h


def log_sum(x):
    s = 0.0
    for v in x:
        s += math.log(v)
    return s


def logistic_steps(x, y, w, steps, lr):
    n, d = x.shape
    for _ in range(steps):
        for i in range(n):
            z = 0.0
            for k in range(d):
                z += x[i, k] * w[k]
            p = 1.0 / (1.0 + math.exp(-z))
            for k in range(d):
                w[k] -= lr * (p - y[i]) * x[i, k]
    return w


def haversine(lat, lon):
    out = np.empty(len(lat))
    for i in range(len(lat)):
        a = (
            math.sin(math.radians(lat[i]) / 2) ** 2
            + math.cos(math.radians(lat[i])) * math.sin(math.radians(lon[i]) / 2) ** 2
        )
        out[i] = 2 * math.asin(math.sqrt(a))
    return out


def floors(x):
    n = 0
    for v in x:
        n += math.floor(v) * 2 + math.ceil(v)
    return n


def first_numbers(x):
    return float(x.sum()), int(x[0] * 10), bool(x[1] > 0)


def exponential(x):
    return math.exp(float(x[0]))


def sieve(n):
    f = np.ones(n + 1, bool)
    f[:2] = False
    for i in range(2, int(math.sqrt(n)) + 1):
        if f[i]:
            f[i * i :: i] = False
    return np.nonzero(f)[0]


def halve_until(x, tol):
    k = 0
    while True:
        y = x * 0.5
        k += 1
        if np.abs(y - x).sum() < tol:
            break
        x = y
    return y, k


def halve_or_count(x, tol):
    k = 0
    while True:
        x = x * 0.5
        if x.sum() < tol:
            break
        k += 1
        if k > 3:
            break
    return x, k


def leave_early(x):
    for k in range(5):
        if x[k] > 2:
            break
        x = x + 0.5
    return x, k


def count_or_none(x):
    n = 0
    for k in range(6):
        if x[k] < 0:
            continue
        n += 1
        if n == 3:
            break
    else:
        n = -1
    return n


def sum_until(x, n):
    s = 0.0
    for i in range(n):
        v = x[i]
        if v < 0:
            break
        s += v
    return s, i


def walk(x):
    i = 0
    while i < 10:
        v = x[i % len(x)]
        i += 1
        if v > 0.5:
            continue
        x = x + v
        if x.sum() > 100:
            break
    return x, i, v


def draw(seed, *shape):
    return np.random.default_rng(seed).random(shape)


def text(of):
    return np.frombuffer(of, np.uint8)


def _sparse():
    rng = np.random.default_rng(5)
    dense = rng.random((30, 30)) * (rng.random((30, 30)) < 0.2)
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(31))
    return dense[rows, columns], columns, starts, rng.random(30)


def _transitions():
    a = draw(4, 12, 12)
    return a / a.sum(0)


_SOME = np.array([0.3, -0.2, 1.5, 0.7, 2.5, 0.1])

ARGUMENTS = {
    gauss_seidel: [lambda: (draw(1, 12, 12), draw(2, 12, 12), 3), lambda: (draw(1, 7, 7), draw(2, 7, 7), 1)],
    jacobi: [lambda: (draw(1, 40), draw(2, 40), 25)],
    floyd_warshall: [lambda: (draw(3, 11, 11),), lambda: (draw(3, 1, 1),)],
    edit_distance: [lambda: (text(b"intention"), text(b"execution")), lambda: (text(b"a"), text(b""))],
    mandelbrot: [lambda: (9, 7, 20), lambda: (3, 2, 300)],
    fir: [lambda: (draw(1, 40), draw(2, 5))],
    game_of_life: [lambda: (draw(1, 9, 8).round().astype(int), 4)],
    sparse_product: [_sparse],
    pagerank: [lambda: (_transitions(), 0.85, 1e-6), lambda: (_transitions(), 0.85, 10.0)],
    lorenz: [lambda: (40, 0.01), lambda: (0, 0.01)],
    crc32: [lambda: (text(b"hello world"), np.arange(256) * 7919 % 65521)],
    histogram: [lambda: (draw(1, 50), 7)],
    norm: [lambda: (draw(1, 30),), lambda: (np.zeros(0),)],
    distances: [lambda: (draw(1, 8, 2),)],
    integral: [lambda: (2.5, 40), lambda: (2.5, 1)],
    log_sum: [lambda: (draw(1, 20),), lambda: (draw(1, 20) - 0.5,)],
    logistic_steps: [lambda: (draw(1, 6, 3), draw(2, 6).round(), draw(3, 3), 3, 0.1)],
    haversine: [lambda: (draw(1, 9) * 90, draw(2, 9) * 180)],
    floors: [lambda: (draw(1, 20) * 100 - 50,), lambda: (np.array([1.0, np.nan]),)],
    first_numbers: [lambda: (draw(1, 5),), lambda: (np.array([np.inf, 1.0]),)],
    exponential: [lambda: (draw(1, 3),), lambda: (np.array([1e5]),)],
    sieve: [lambda: (50,), lambda: (3,)],
    halve_until: [lambda: (_SOME, 1e-2), lambda: (_SOME * 0, 1.0), lambda: (_SOME, 1e3)],
    halve_or_count: [lambda: (_SOME, 1e-3), lambda: (_SOME, 100.0), lambda: (_SOME, 0.4)],
    leave_early: [lambda: (_SOME,), lambda: (_SOME * 0,), lambda: (_SOME + 10,)],
    count_or_none: [lambda: (_SOME,), lambda: (-np.abs(_SOME),), lambda: (_SOME + 3,)],
    sum_until: [lambda: (_SOME, 6), lambda: (np.abs(_SOME), 6)],
    walk: [lambda: (_SOME,), lambda: (_SOME + 1,), lambda: (_SOME * 0,)],
}
"""Function -> what makes its arguments, of several kinds."""

NATIVE = (
    gauss_seidel,
    jacobi,
    floyd_warshall,
    fir,
    game_of_life,
    sparse_product,
    crc32,
    norm,
    distances,
    integral,
    log_sum,
    logistic_steps,
    haversine,
    floors,
    halve_or_count,
)
"""Those whose first arguments are one kernel and nothing else, in emitted code."""
