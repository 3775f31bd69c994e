"""Programs of loops as people write them, with `pf.fori_loop`, `pf.while_loop` and `pf.cond`.

Each is a function, and what makes its arguments for a size.
"""

import numpy as np
import profuse as pf


def jacobi_1d(a, b, rounds):
    a, b = a.copy(), b.copy()

    def body(t, c):
        a, b = c
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
        return a, b

    return pf.fori_loop(0, rounds, body, (a, b))


def jacobi_2d(a, b, rounds):
    a, b = a.copy(), b.copy()

    def body(t, c):
        a, b = c
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
        return a, b

    return pf.fori_loop(0, rounds, body, (a, b))


def jacobi_in_one(a, rounds):
    a = a.copy()

    def body(t, a):
        a[1:-1] = 0.5 * (a[:-2] + a[2:])
        return a

    return pf.fori_loop(0, rounds, body, a)


def iir(x, y):
    def body(i, y):
        y[i] = x[i] * 0.5 + y[i - 1] * 0.25 - y[i - 2] * 0.1
        return y

    return pf.fori_loop(2, x.shape[0], body, y.copy())


def seidel(a, rounds):
    n = a.shape[0]

    def sweep(t, a):
        def row(i, a):
            def column(j, a):
                a[i, j] = (
                    a[i - 1, j - 1]
                    + a[i - 1, j]
                    + a[i - 1, j + 1]
                    + a[i, j - 1]
                    + a[i, j]
                    + a[i, j + 1]
                    + a[i + 1, j - 1]
                    + a[i + 1, j]
                    + a[i + 1, j + 1]
                ) / 9.0
                return a

            return pf.fori_loop(1, n - 1, column, a)

        return pf.fori_loop(1, n - 1, row, a)

    return pf.fori_loop(0, rounds, sweep, a.copy())


def lu(a):
    n = a.shape[0]

    def step(k, a):
        def row(i, a):
            a[i, k] = a[i, k] / a[k, k]

            def column(j, a):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
                return a

            return pf.fori_loop(k + 1, n, column, a)

        return pf.fori_loop(k + 1, n, row, a)

    return pf.fori_loop(0, n, step, a.copy())


def lu_of_slices(a):
    n = a.shape[0]

    def step(k, a):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] = a[k + 1 :, k + 1 :] - np.multiply.outer(a[k + 1 :, k], a[k, k + 1 :])
        return a

    return pf.fori_loop(0, n - 1, step, a.copy())


def cholesky(a):
    n = a.shape[0]

    def row(i, a):
        def column(j, a):
            def inner(k, a):
                a[i, j] = a[i, j] - a[i, k] * a[j, k]
                return a

            a = pf.fori_loop(0, j, inner, a)
            a[i, j] = a[i, j] / a[j, j]
            return a

        a = pf.fori_loop(0, i, column, a)

        def diagonal(k, a):
            a[i, i] = a[i, i] - a[i, k] * a[i, k]
            return a

        a = pf.fori_loop(0, i, diagonal, a)
        a[i, i] = np.sqrt(a[i, i])
        return a

    return pf.fori_loop(0, n, row, a.copy())


def triangular_solve(a, b):
    def row(i, x):
        x[i] = (b[i] - np.sum(a[i, :i] * x[:i])) / a[i, i]
        return x

    return pf.fori_loop(0, a.shape[0], row, np.zeros_like(b))


def floyd_warshall(d):
    def step(k, d):
        d[:] = np.minimum(d, d[:, k][:, None] + d[k, :][None, :])
        return d

    return pf.fori_loop(0, d.shape[0], step, d.copy())


def edit_distance(s, t):
    n, m = s.shape[0], t.shape[0]
    d = np.zeros((n + 1, m + 1), np.int64)
    d[:, 0] = np.arange(n + 1)
    d[0, :] = np.arange(m + 1)

    def row(i, d):
        def column(j, d):
            cost = np.where(s[i - 1] == t[j - 1], 0, 1)
            best = np.minimum(d[i - 1, j] + 1, d[i, j - 1] + 1)
            d[i, j] = np.minimum(best, d[i - 1, j - 1] + cost)
            return d

        return pf.fori_loop(1, m + 1, column, d)

    return pf.fori_loop(1, n + 1, row, d)


def csr_product(values, columns, starts, x):
    def row(i, y):
        def entry(k, s):
            return s + values[k] * x[columns[k]]

        y[i] = pf.fori_loop(starts[i], starts[i + 1], entry, np.float64(0.0))
        return y

    return pf.fori_loop(0, starts.shape[0] - 1, row, np.zeros(starts.shape[0] - 1))


def mandelbrot(re, im, limit):
    def point(k, out):
        def unfinished(c):
            n, zr, zi = c
            return np.logical_and(n < limit, zr * zr + zi * zi < 4.0)

        def step(c):
            n, zr, zi = c
            return n + 1, zr * zr - zi * zi + re[k], 2.0 * zr * zi + im[k]

        zero = np.float64(0.0)
        n, _, _ = pf.while_loop(unfinished, step, (np.int64(0), zero, zero))
        out[k] = n
        return out

    return pf.fori_loop(0, re.shape[0], point, np.zeros(re.shape[0], np.int64))


def recurrence(x, w, u):
    """A gated cell without products: elementwise weights."""

    def step(t, c):
        h, s = c
        gate = 1.0 / (1.0 + np.exp(-(w * x[t] + u * h)))
        s = gate * s + (1.0 - gate) * np.tanh(x[t] + h)
        return np.tanh(s) * gate, s

    zero = np.zeros_like(w)
    return pf.fori_loop(0, x.shape[0], step, (zero, zero.copy()))


def swapped(a, b, rounds):
    def step(t, c):
        a, b = c
        return b, a * 0.5 + b

    return pf.fori_loop(0, rounds, step, (a.copy(), b.copy()))


def fibonacci(n):
    def step(i, c):
        a, b = c
        return b, a + b

    return pf.fori_loop(0, n, step, (np.int64(0), np.int64(1)))[0]


def collatz(n):
    def odd(c):
        return c[0] != 1

    def step(c):
        k, steps = c
        return np.where(k % 2 == 0, k // 2, 3 * k + 1), steps + 1

    return pf.while_loop(odd, step, (n, np.int64(0)))[1]


def clipped_sums(x, most):
    """A branch in a loop: the sum starts over where it exceeds a bound."""

    def step(i, c):
        s, out = c
        s = pf.cond(s + x[i] > most, lambda: x[i] * 0.0, lambda: s + x[i])
        out[i] = s
        return s, out

    return pf.fori_loop(0, x.shape[0], step, (np.float64(0.0), np.zeros_like(x)))[1]


def bubble_pass(x):
    """Elements change places under a condition."""

    def step(i, x):
        a, b = x[i], x[i + 1]

        def swap():
            y = x.copy()
            y[i] = b
            y[i + 1] = a
            return y

        return pf.cond(a > b, swap, lambda: x)

    return pf.fori_loop(0, x.shape[0] - 1, step, x.copy())


def running_maximum(x):
    def step(i, c):
        best, out = c
        best = np.maximum(best, x[i])
        out[i] = best
        return best, out

    return pf.fori_loop(0, x.shape[0], step, (x[0], np.zeros_like(x)))[1]


def newton(x, tolerance):
    """Until it converges: the number of rounds depends on data."""

    def far(c):
        y, rounds = c
        return np.logical_and(np.abs(y * y - x).max() > tolerance, rounds < 50)

    def step(c):
        y, rounds = c
        return 0.5 * (y + x / y), rounds + 1

    return pf.while_loop(far, step, (x * 0.5 + 0.5, np.int64(0)))


def sieve(n):
    """Strided writes with a step that is the index of a loop."""
    out = np.ones(n.shape[0], bool)

    def outer(i, out):
        def inner(j, out):
            out[i * j] = False
            return out

        return pf.fori_loop(2, (n.shape[0] + i - 1) // i, inner, out)

    return pf.fori_loop(2, n.shape[0], outer, out)


def _positive_definite(rng, n):
    made = rng.random((n, n))
    return made @ made.T + n * np.eye(n)


def _sparse(rng, n):
    starts = np.zeros(n + 1, np.int64)
    starts[1:] = np.cumsum(rng.integers(0, 5, n))
    count = starts[-1]
    return rng.random(count), rng.integers(0, n, count), starts, rng.random(n)


# Name -> a function of a random generator and a size, which makes arguments.
ARGUMENTS = {
    "jacobi_1d": lambda r, n: (r.random(n), r.random(n), 7),
    "jacobi_2d": lambda r, n: (r.random((n, n + 1)), r.random((n, n + 1)), 7),
    "jacobi_in_one": lambda r, n: (r.random(n), 7),
    "iir": lambda r, n: (r.random(n), r.random(n)),
    "seidel": lambda r, n: (r.random((n, n)), 3),
    "lu": lambda r, n: (_positive_definite(r, n),),
    "lu_of_slices": lambda r, n: (_positive_definite(r, n),),
    "cholesky": lambda r, n: (_positive_definite(r, n),),
    "triangular_solve": lambda r, n: (np.tril(_positive_definite(r, n)), r.random(n)),
    "floyd_warshall": lambda r, n: (r.random((n, n)),),
    "edit_distance": lambda r, n: (r.integers(0, 4, n), r.integers(0, 4, n + 2)),
    "csr_product": _sparse,
    "mandelbrot": lambda r, n: (r.uniform(-2, 1, n), r.uniform(-1, 1, n), 30),
    "recurrence": lambda r, n: (r.random((n, 5)), r.random(5), r.random(5)),
    "swapped": lambda r, n: (r.random(n), r.random(n), 5),
    "fibonacci": lambda r, n: (n,),
    "collatz": lambda r, n: (np.int64(n),),
    "clipped_sums": lambda r, n: (r.random(n), 2.0),
    "bubble_pass": lambda r, n: (r.random(n),),
    "running_maximum": lambda r, n: (r.random(n),),
    "newton": lambda r, n: (r.random(n) + 0.5, 1e-12),
    "sieve": lambda r, n: (np.zeros(n),),
}
