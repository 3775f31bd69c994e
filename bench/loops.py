"""Loops of scalar code and of slices: Profuse, numba and NumPy on the same programs.

``python bench/loops.py [NAME ...]``: for each program the least time of a call in microseconds, all
on one thread and interleaved, and the seconds until the first native call. Programs of Profuse are
those of `test/executor/loops/loop_programs.py`; numba runs loops over elements, where it is faster
with these, and NumPy is plain Python on the steps as they are written here.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import profuse as pf

sys.path.insert(0, str(Path(__file__).parents[1] / "test" / "executor" / "loops"))
import loop_programs
from loop_programs import ARGUMENTS

try:
    import numba
except ImportError:
    numba = None

# Program -> size of its arguments.
SIZES = {
    "jacobi_1d": 4000,
    "jacobi_2d": 250,
    "seidel": 200,
    "lu": 200,
    "lu_of_slices": 200,
    "cholesky": 200,
    "floyd_warshall": 200,
    "triangular_solve": 1000,
    "edit_distance": 500,
    "csr_product": 20000,
    "iir": 100000,
    "mandelbrot": 40000,
    "swapped": 4000,
    "recurrence": 2000,
}
ROUNDS = 15
SLOW = {"seidel", "lu", "cholesky", "edit_distance", "mandelbrot", "csr_product", "iir"}


# --- the same steps for numba ----------------------------------------------------------------


def jacobi_1d(a, b, rounds):
    a, b = a.copy(), b.copy()
    for _ in range(rounds):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return a, b


def jacobi_2d(a, b, rounds):
    a, b = a.copy(), b.copy()
    for _ in range(rounds):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return a, b


def seidel(a, rounds):
    a = a.copy()
    n = a.shape[0]
    for _ in range(rounds):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j]
                    + a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0  # fmt: skip
    return a


def lu(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def lu_of_slices(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
    return a


def cholesky(a):
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] = a[i, j] - a[i, k] * a[j, k]
            a[i, j] = a[i, j] / a[j, j]
        for k in range(i):
            a[i, i] = a[i, i] - a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    return a


def floyd_warshall(d):
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        d[:] = np.minimum(d, d[:, k].copy().reshape(n, 1) + d[k, :].copy().reshape(1, n))
    return d


def triangular_solve(a, b):
    x = np.zeros_like(b)
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(i):
            s += a[i, j] * x[j]
        x[i] = (b[i] - s) / a[i, i]
    return x


def edit_distance(s, t):
    n, m = s.shape[0], t.shape[0]
    d = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if s[i - 1] == t[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d


def csr_product(values, columns, starts, x):
    n = starts.shape[0] - 1
    y = np.zeros(n)
    for i in range(n):
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += values[k] * x[columns[k]]
        y[i] = s
    return y


def iir(x, y):
    y = y.copy()
    for i in range(2, x.shape[0]):
        y[i] = x[i] * 0.5 + y[i - 1] * 0.25 - y[i - 2] * 0.1
    return y


def mandelbrot(re, im, limit):
    out = np.zeros(re.shape[0], np.int64)
    for k in range(re.shape[0]):
        n, zr, zi = 0, 0.0, 0.0
        while n < limit and zr * zr + zi * zi < 4.0:
            zr, zi = zr * zr - zi * zi + re[k], 2.0 * zr * zi + im[k]
            n += 1
        out[k] = n
    return out


def swapped(a, b, rounds):
    a, b = a.copy(), b.copy()
    for _ in range(rounds):
        a, b = b, a * 0.5 + b
    return a, b


def recurrence(x, w, u):
    h, s = np.zeros_like(w), np.zeros_like(w)
    for t in range(x.shape[0]):
        gate = 1.0 / (1.0 + np.exp(-(w * x[t] + u * h)))
        s = gate * s + (1.0 - gate) * np.tanh(x[t] + h)
        h = np.tanh(s) * gate
    return h, s


# --- where numba is faster with loops than with slices -----------------------------------------


def jacobi_1d_loops(a, b, rounds):
    a, b = a.copy(), b.copy()
    n = a.shape[0]
    for _ in range(rounds):
        for i in range(1, n - 1):
            b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1])
        for i in range(1, n - 1):
            a[i] = 0.33333 * (b[i - 1] + b[i] + b[i + 1])
    return a, b


def jacobi_2d_loops(a, b, rounds):
    a, b = a.copy(), b.copy()
    n, m = a.shape
    for _ in range(rounds):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])
    return a, b


def floyd_warshall_loops(d):
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                s = d[i, k] + d[k, j]
                if s < d[i, j]:
                    d[i, j] = s
    return d


def swapped_loops(a, b, rounds):
    a, b = a.copy(), b.copy()
    for _ in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.5 + b[i]
        a, b = b, a
    return a, b


def recurrence_loops(x, w, u):
    h, s = np.zeros_like(w), np.zeros_like(w)
    for t in range(x.shape[0]):
        for k in range(w.shape[0]):
            gate = 1.0 / (1.0 + np.exp(-(w[k] * x[t, k] + u[k] * h[k])))
            s[k] = gate * s[k] + (1.0 - gate) * np.tanh(x[t, k] + h[k])
            h[k] = np.tanh(s[k]) * gate
    return h, s


LOOPS = {
    "jacobi_1d": jacobi_1d_loops,
    "jacobi_2d": jacobi_2d_loops,
    "lu_of_slices": lu,
    "floyd_warshall": floyd_warshall_loops,
    "swapped": swapped_loops,
    "recurrence": recurrence_loops,
}


# --- timing -----------------------------------------------------------------------------------


def _first(function, args):
    begun = time.perf_counter()
    function(*args)
    return time.perf_counter() - begun


def _times(functions, args, rounds):
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            best[name] = min(best[name], _first(function, args))
    return best


def _worst(found, expected):
    pairs = zip(
        found if isinstance(found, tuple) else (found,),
        expected if isinstance(expected, tuple) else (expected,), strict=True,
    )  # fmt: skip
    return max(float(np.max(np.abs(np.asarray(f) - np.asarray(e)), initial=0)) for f, e in pairs)


def main(names):
    print(f"numpy {np.__version__}, numba {getattr(numba, '__version__', 'absent')}, one thread")
    print(f"{'program':18s}{'profuse':>11s}{'numba':>11s}{'numpy':>13s}   ratio  compile s   error")
    for name in names or SIZES:
        args = ARGUMENTS[name](np.random.default_rng(0), SIZES[name])
        if name in ("jacobi_1d", "jacobi_2d", "swapped"):
            args = (*args[:-1], 100)
        if name == "mandelbrot":
            args = (*args[:-1], 100)
        plain = globals()[name]
        with pf.knobs.override(background=False, cache=False, unsupported="raise", threads=1):
            jitted = pf.jit(getattr(loop_programs, name))
            jitted(*args)
            made = _first(jitted, args)
            jitted.wait()
            functions = {"profuse": jitted}
            compiled = 0.0
            if numba is not None:
                functions["numba"] = numba.njit(LOOPS.get(name, plain))
                compiled = _first(functions["numba"], args)
            expected = plain(*args)
            numpy_time = _first(plain, args)
            if name not in SLOW:
                numpy_time = min(numpy_time, *(_first(plain, args) for _ in range(3)))
            best = _times(functions, args, ROUNDS)
            error = _worst(jitted(*args), expected)
            counters = jitted.state().counters
            note = " voided" if counters["voided_launches"] else ""
            if not counters["kernel_launches"]:
                raise SystemExit(f"{name} has no kernel: {jitted.explain()}")
            numba_time = best.get("numba", float("nan"))
            print(
                f"{name:18s}{best['profuse'] * 1e6:11.1f}{numba_time * 1e6:11.1f}"
                f"{numpy_time * 1e6:13.1f}{best['profuse'] / numba_time:8.2f}"
                f"   {made:4.2f}/{compiled:4.2f}  {error:.1e}{note}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
