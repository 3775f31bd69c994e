"""Forms of loops that users write: each is in a kernel, and does what Python does."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import native, same


@pytest.fixture(autouse=True)
def as_users_call_it():
    """What writes to arguments is no error."""
    with pf.knobs.override(unsupported="python"):
        yield


def smoothed(u, steps):
    for _ in range(steps):
        new = u.copy()
        new[1:-1] = 0.5 * (u[:-2] + u[2:])
        u = new
    return u


def test_a_new_array_per_round():
    """What the round before has made is read behind writes to what this one makes."""
    f = native(smoothed, np.arange(9.0) ** 2, 30)
    for steps in (0, 1, 2, 31):
        same(f, smoothed, (np.arange(9.0) ** 3, steps))


def test_an_array_that_is_kept_from_the_round_before():
    def f(u, steps):
        old = u
        for _ in range(steps):
            new = u.copy()
            new[0] = old[1] + 1
            new[1:] += old[:-1]
            old = u
            u = new
        return u, old

    jitted = native(f, np.arange(5.0), 20)
    for steps in (0, 1, 2, 21):
        same(jitted, f, (np.arange(5.0), steps))


def handed_on(x, steps):
    new, u = x.copy(), x
    for _ in range(steps):
        new[1:-1] += u[:-2]
        new[0] = u[1] * 0.5
        u = new
    return new


def test_an_array_that_is_handed_to_the_next_round_and_written_there():
    f = pf.jit(handed_on)
    for steps in (20, 20, 20, 1, 2):
        same(f, handed_on, (np.arange(6.0), steps))


def life(board, generations):
    n, m = board.shape
    for _ in range(generations):
        new = np.zeros_like(board)
        for i in range(n):
            for j in range(m):
                alive = board[i - 1, j] + board[(i + 1) % n, j] + board[i, j - 1]
                if alive == 2 or (alive == 1 and board[i, j] == 1):
                    new[i, j] = 1
        board = new
    return board


def test_an_array_that_loops_fill():
    native(life, np.random.default_rng(0).integers(0, 2, (7, 8)), 20)


def swept(a, n):
    for i in range(1, n - 1):
        a[i, 1:-1] += a[i - 1, :-2] + a[i, 2:] + a[i + 1, 1:-1]
        for j in range(1, n - 1):
            a[i, j] += a[i, j - 1]
            a[i, j] /= 9.0


def test_rows_that_are_written_and_read_by_element():
    f = native(swept, np.random.default_rng(1).random((24, 24)), 24)
    same(f, swept, (np.random.default_rng(2).random((24, 24)), 20))
    same(f, swept, (np.random.default_rng(2).random((24, 24)), 30))  # IndexError


def shuffled(a, order):
    for i in range(len(order)):
        row = a[order[i]].copy()
        row[1] = i
        row[2] += row[1]
        a[i] = row
    return a


def test_rows_that_are_put_elsewhere():
    rng = np.random.default_rng(9)
    f = native(shuffled, rng.random((20, 5)), rng.permutation(20))
    same(f, shuffled, (rng.random((20, 5)), np.arange(20)))
    same(f, shuffled, (rng.random((20, 5)), np.zeros(20, int)))


def columns(c, d, g):
    for k in range(1, c.shape[1]):
        c[:, k] = g[:, k] * 0.5
        beta = 1.0 / (2.0 - c[:, k - 1] * g[:, k])
        c[:, k] = c[:, k] * beta
        d[:, k] = (d[:, k] - d[:, k - 1]) * beta


def test_columns_that_are_written_twice_in_a_round():
    rng = np.random.default_rng(3)
    native(columns, *rng.random((3, 6, 20)))


def limits(x):
    y = x.copy()
    for i in range(1, len(x) - 1):
        a, b, c = x[i - 1], x[i], x[i + 1]
        if a > b:
            a, b = b, a
        if b > c:
            b = c
        y[i] = max(a, b)
    return y


def test_choices_between_values():
    native(limits, np.random.default_rng(4).random(40))


def filled(n, x):
    out = np.zeros(n)
    for i in range(n):
        out[i] = x * i
    return out


def test_an_array_whose_size_is_an_argument():
    f = native(filled, 30, 1.5)
    for n in (31, 33, 0, 1, 30):
        same(f, filled, (n, 2.5))


def until(matrix, x, tol):
    moved, k = 1.0, 0
    while moved > tol:
        new = np.tanh(matrix @ x) + 0.1
        moved = np.abs(new - x).max()
        x = new
        k += 1
    return x, k


def test_an_array_that_each_round_replaces():
    rng = np.random.default_rng(5)
    native(until, rng.random((5, 5)) / 5, np.ones(5), 1e-9)


def powers(u, dx, steps):
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 1e-3 * (u[2:] - 2 * u[1:-1] + u[:-2]) / dx**2
    return u


@pytest.mark.parametrize("dx", [1e-3, 1e200, 0.0, np.inf, -2.0, 1e-170])
def test_powers_of_floats(dx):
    """Python raises OverflowError and ZeroDivisionError where a kernel has infinities."""
    f = native(powers, np.arange(9.0), 0.5, 20)
    same(f, powers, (np.arange(9.0), dx, 20))
    same(f, powers, (np.arange(9.0), dx, 0))


def stored(out, start, n):
    k = start
    for i in range(n):
        out[i] = k
        k = k + 1
    return k


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64])
def test_ints_that_become_fewer_bits(dtype):
    """NumPy raises for what does not fit, and keeps what has been written before."""
    f = native(stored, np.zeros(20, dtype), 5, 20)
    top = np.iinfo(dtype).max
    for start in (0, top - 19, top - 18, -1, -(2**70), 2**70):
        same(f, stored, (np.zeros(20, dtype), start, 20))


def learnt(x, y, w):
    mistakes = 0
    for i in range(len(x)):
        if y[i] * (x[i] @ w) <= 0:
            w = w + y[i] * x[i]
            mistakes += 1
        elif mistakes > 4:
            w = w * 0.5
    return w, mistakes


def test_arrays_of_branches():
    """One of several arrays, new ones and the one that was there, is left by a round."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((40, 3))
    f = native(learnt, x, np.sign(rng.standard_normal(40)), np.zeros(3))
    same(f, learnt, (x, np.ones(40), np.ones(3)))
    same(f, learnt, (x, -np.ones(40), np.ones(3)))


def one_of_two(x, n):
    total = np.zeros_like(x)
    for i in range(n):
        if x[0] > i:
            y = np.sin(x + i)
        else:
            y = x * i
        total += y
    return total


def test_two_new_arrays_of_branches():
    f = native(one_of_two, np.arange(5.0) + 7, 20)
    same(f, one_of_two, (np.arange(5.0) - 7, 20))


def counted(rows, columns, values, dense):
    for k in range(len(rows)):
        dense[rows[k], columns[k]] += values[k]
        dense[0, columns[k]] -= 1
    return dense.sum()


def test_elements_that_arrays_name():
    rng = np.random.default_rng(7)
    rows, columns = rng.integers(-6, 6, (2, 40))
    f = native(counted, rows, columns, rng.random(40), np.zeros((6, 7)))
    rows[20] = 6  # IndexError, behind twenty rounds that have written
    same(f, counted, (rows, columns, rng.random(40), np.zeros((6, 7))))


def windows(x, size):
    out = np.zeros(len(x) - 3)
    for i in range(len(x) - 3):
        out[i] = np.max(x[i : i + 4]) - x[len(x) - 4 - i : len(x) - i].min() + np.argmax(x[i:])
    return out


def test_windows_have_sizes_that_hold_for_all_rounds():
    f = native(windows, np.random.default_rng(8).random(30), 4)
    for n in (30, 31, 4, 5, 29):
        same(f, windows, (np.random.default_rng(n).random(n), 4))


def distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), int)
    d[:, 0], d[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i in range(len(a)):
        for j in range(len(b)):
            change = d[i, j] + (a[i] != b[j])
            d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, change)
    return d[-1, -1]


def test_loops_with_choices_are_kernels_for_other_sizes_as_well():
    f, rng = pf.jit(distance), np.random.default_rng(0)
    for size in (6, 6, 6, 9, 9, 9, 12, 12, 12):
        same(f, distance, (rng.integers(0, 3, size), rng.integers(0, 3, size)))
    assert "round by round" not in f.explain()
    ran = f.state().counters["evaluated_ops"]
    same(f, distance, (rng.integers(0, 3, 9), rng.integers(0, 3, 9)))
    assert f.state().counters["evaluated_ops"] - ran < 30  # of 81 rounds, none


@pytest.mark.parametrize("n", [0, -2])
def test_what_a_loop_without_rounds_leaves_unbound(n):
    """The body has been tried, and has bound a constant, which Python has not."""

    def constant(x, n):
        for k in range(n):
            x = x * 0.5 + k
            z = 3
        return x, z

    def exchanged(x, n):
        y = x.copy()
        for k in range(n):
            y[0] = x[1] + k
            x, y = y, x
            k = 3
        return x, k

    for function in (constant, exchanged):
        jitted = pf.jit(function)
        for rounds in (n, 20, n, 20, n):
            same(jitted, function, (np.arange(5.0), rounds))
