"""Products in loops: vectors are loops of the kernel, large matrices calls of the library."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from internals import executor_of

pytestmark = pytest.mark.optimised


def settled(function, *args, calls=3, tolerance=1e-11):
    """Call a function plainly and jitted; returns it, jitted, with its loop in a kernel."""
    jitted = pf.jit(function)
    expected = function(*args)
    for _ in range(calls):
        found = jitted(*args)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, tolerance, tolerance)
    counters = jitted.state().counters
    assert counters["compile_failures"] == counters["voided_launches"] == 0
    assert any("fusion_loop" in name for name in executor_of(jitted).result.kernels)
    before = counters["evaluated_ops"]
    jitted(*args)
    assert jitted.state().counters["evaluated_ops"] == before
    return jitted


def steps(left, y, n):
    for _ in range(n):
        y = np.tanh(left @ y)
    return y


def steps_from_the_right(left, y, n):
    for _ in range(n):
        y = np.tanh(y @ left)
    return y


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", [steps, steps_from_the_right])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(5,), (5, 5), (40, 40)])
def test_matrices_and_vectors(function, dtype, shape):
    rng = np.random.default_rng(0)
    n = shape[0]
    left = (rng.standard_normal((n, n)) / n).astype(dtype)
    y = rng.standard_normal(shape).astype(dtype)
    tolerance = 1e-11 if dtype is np.float64 else 1e-4
    jitted = settled(function, left, y, 20, tolerance=tolerance)
    calls = sum(k.library_calls for k in executor_of(jitted).result.kernels.values())
    assert calls == (shape == (40, 40))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 7, 8, 9])
def test_rows_are_summed_up_four_at_a_time(n):
    rng = np.random.default_rng(n)
    left, y = rng.standard_normal((n, n)) / n, rng.standard_normal(n)
    jitted = settled(steps, left, y, 5)
    assert (jitted.ir("loops").count("(f64, f64, f64, f64)") > 0) == (n >= 4)
    for other in (5, 13):
        left, y = rng.standard_normal((other, other)) / other, rng.standard_normal(other)
        for _ in range(4):
            np.testing.assert_allclose(jitted(left, y, 5), steps(left, y, 5), 1e-12, 1e-12)
            jitted.wait()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a[::2, ::2].T.copy().T],
    ids=["transposed", "turned", "columns turned", "small"],
)
@pytest.mark.parametrize("columns", [None, 1, 30])
def test_layouts(view, columns):
    """Transposed, reversed and strided operands, also of matrices that the library gets."""
    rng = np.random.default_rng(1)
    left = view(rng.standard_normal((30, 30)) / 30)
    n = left.shape[0]
    y = rng.standard_normal(n if columns is None else (n, columns))
    settled(steps, left, y, 20)


def test_transposed_in_the_loop():
    def descend(x, y, w, n):
        for _ in range(n):
            w = w - 0.1 * (x.T @ (x @ w - y)) / len(y)
        return w

    rng = np.random.default_rng(2)
    x = rng.standard_normal((50, 6))
    settled(descend, x, rng.standard_normal(50), np.zeros(6), 30)
    settled(descend, x, rng.standard_normal((50, 40)), np.zeros((6, 40)), 30)


def test_a_transposed_matrix_is_not_copied():
    """The generic that would transpose it is gone, and with it the memory of the copy."""

    def f(a, y, n):
        for _ in range(n):
            y = np.tanh(a.T @ y)
        return y

    a = np.random.default_rng(2).standard_normal((40, 40)) / 40
    jitted = settled(f, a, np.ones(40), 20)
    text = jitted.ir("loops")
    assert 'profuse.workspace = "0"' in text


def test_a_view_is_read_by_the_loop_and_before_it():
    """A kernel before the loop would hand on the transposed matrix as an array of its own."""

    def f(a, y, n):
        y = np.tanh(a.T @ np.tanh(y))
        for _ in range(n):
            y = np.tanh(a.T @ y)
        return y

    a = np.random.default_rng(2).standard_normal((9, 9)) / 9
    jitted = settled(f, a, np.ones(9), 20)
    assert jitted.state().counters["guard_misses"] == 0


def test_parts_of_rows_and_columns():
    """LU by dots: parts whose sizes follow from the loop, down to none, of what it writes."""

    def lu(a):
        a = a.copy()
        n = a.shape[0]
        for i in range(n):
            for j in range(i):
                a[i, j] -= a[i, :j] @ a[:j, j]
                a[i, j] /= a[j, j]
            for j in range(i, n):
                a[i, j] -= a[i, :i] @ a[:i, j]
        return a

    rng = np.random.default_rng(3)
    jitted = settled(lu, rng.random((20, 20)) + 20 * np.eye(20))
    for n in (1, 2, 33, 19):
        a = rng.random((n, n)) + n * np.eye(n)
        np.testing.assert_allclose(jitted(a), lu(a), 1e-11, 1e-11)


@pytest.mark.parametrize("depth", [0, 1])
def test_sums_of_nothing(depth):
    def f(a, b, n):
        y = np.zeros((a.shape[0], b.shape[1]))
        for _ in range(n):
            y = y + a @ b
        return y

    settled(f, np.ones((3, depth)), np.ones((depth, 4)), 20)


def test_integers_and_bools():
    def f(a, y, n):
        for _ in range(n):
            y = (a @ y) % 7
        return y

    def reach(a, y, n):
        for _ in range(n):
            y = y | (a @ y)
        return y

    rng = np.random.default_rng(4)
    settled(f, rng.integers(0, 9, (6, 6)), rng.integers(0, 9, 6), 20)
    settled(reach, rng.random((8, 8)) < 0.2, np.arange(8) == 0, 20)


def test_batches_stay_in_the_plan():
    def f(a, y, n):
        for _ in range(n):
            y = np.tanh(a @ y)
        return y

    rng = np.random.default_rng(5)
    args = rng.random((3, 4, 4)), rng.random((3, 4, 4)), 20
    jitted = pf.jit(f)
    for _ in range(3):
        np.testing.assert_allclose(jitted(*args), f(*args), 1e-11)
    assert any("batches of matrices" in str(r) for r in jitted.state().reasons)


def branches_around_products(x, y, a, n):
    m, s, t, k = len(x), x[0] * 0.5, x[0] + 1.0, 0
    for i in range(len(y)):
        s = (a[:, 0]).sum() * 0.25
        if i < n:
            if k % 2 != 0:
                if not a[(i + 1) % m, i % m] < 0.5:
                    t = abs(a[k % m, -(i % m) - 1]) * 0.5
                else:
                    x[:] = a @ x * 0.1 * 0.5
            k = (k + 2) % 7
    return s, t, k


def test_products_in_branches_of_branches():
    """For one element, what is left of a branch has no results, and there is no other one."""
    rng = np.random.default_rng(0)
    with pf.knobs.override(unsupported="python"):
        f = pf.jit(branches_around_products)
        for size in (1, 1, 1, 4, 4, 4):
            a, y, ours = rng.random((size, size)), rng.random(size), rng.random(size)
            theirs = ours.copy()
            found, expected = f(ours, y, a, 2), branches_around_products(theirs, y, a, 2)
            for one, other in zip((*found, ours), (*expected, theirs), strict=True):
                np.testing.assert_allclose(one, other)
    assert f.state().counters["kernel_launches"] > 0
    assert "interpreted" not in f.explain()


def test_rows_that_overlap_are_no_matrix_of_the_library():
    """The library wants rows apart; windows of a vector begin one element behind each other."""
    rng = np.random.default_rng(4)
    y = rng.standard_normal((40, 40))
    windows = np.lib.stride_tricks.sliding_window_view(rng.standard_normal(79) / 40, 40)
    for left in (windows, windows.T):
        settled(steps, left, y, 5)
        settled(steps_from_the_right, left, y, 5)
