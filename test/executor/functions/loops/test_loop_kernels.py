"""Loops as kernels: each program is one kernel, whatever the number of rounds, and right."""

from __future__ import annotations

import loop_programs
import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from loop_programs import ARGUMENTS


def _same(found, expected, exact=False):
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for f, e in zip(found, expected, strict=True):
        assert np.asarray(f).dtype == np.asarray(e).dtype
        assert np.shape(f) == np.shape(e)
        if exact:
            np.testing.assert_array_equal(f, e)
        else:
            np.testing.assert_allclose(f, e, rtol=1e-11, atol=1e-12)


def _run(name, sizes, calls=3):
    """Call a program with arguments of these sizes; returns it, jitted."""
    function = getattr(loop_programs, name)
    jitted = pf.jit(function)
    for size in sizes:
        args = ARGUMENTS[name](np.random.default_rng(size), size)
        given = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        expected = function(*args)
        for _ in range(calls):
            _same(jitted(*args), expected)
        for a, b in zip(args, given, strict=True):
            np.testing.assert_array_equal(a, b)  # arguments are never written
    return jitted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_loop_is_one_kernel(name):
    jitted = _run(name, [11])
    counters = jitted.state().counters
    before = counters["kernel_launches"], counters["evaluated_ops"]
    args = ARGUMENTS[name](np.random.default_rng(11), 11)
    jitted(*args)
    counters = jitted.state().counters
    assert counters["kernel_launches"] == before[0] + 1
    assert counters["evaluated_ops"] == before[1]
    assert counters["voided_launches"] == counters["compile_failures"] == 0
    assert len(executor_of(jitted).result.kernels) == 1


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_loops_of_other_sizes(name):
    jitted = _run(name, [9, 12, 5, 7, 3])
    assert jitted.state().counters["compile_failures"] == 0


def _calls(function, *calls, exact=True):
    """Call a function plainly and jitted; returns it, jitted."""
    jitted = pf.jit(function)
    for args in calls:
        with np.errstate(all="ignore"):
            expected = function(*args)
        for _ in range(3):
            _same(jitted(*args), expected, exact)
    return jitted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["jacobi_1d", "jacobi_in_one", "swapped", "jacobi_2d"])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_few_rounds(name, rounds):
    """Zero rounds give what went in; one kernel serves any number of rounds."""
    function = getattr(loop_programs, name)
    rng = np.random.default_rng(3)
    *args, _ = ARGUMENTS[name](rng, 9)
    jitted = _calls(function, (*args, rounds), (*args, 5), (*args, 0))
    assert jitted.state().counters["compiles"] == 1
    assert jitted.state().counters["voided_launches"] == 0


def test_ops_do_not_grow_with_rounds():
    texts = []
    for rounds in (100, 10_000):
        jitted = pf.jit(lambda x, n=rounds: pf.fori_loop(0, n, lambda i, y: y * 0.5 + i, x))
        for _ in range(2):
            jitted(np.ones(3))
        texts.append(executor_of(jitted).result.ir.replace(str(rounds), "N"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8, np.complex128, np.complex64])
def test_dtypes(dtype):
    def function(x, w):
        def body(i, c):
            y, total = c
            y[i] = x[i] * w[0] + y[i - 1]
            return y, total + y[i]

        return pf.fori_loop(1, x.shape[0], body, (x.copy(), x[0]))

    rng = np.random.default_rng(1)
    x = (rng.random(9) * 20).astype(dtype)
    jitted = _calls(function, (x, np.array([3], dtype)), exact=np.dtype(dtype).kind in "iu")
    assert jitted.state().counters["kernel_launches"] >= 1


def test_bools():
    def function(x):
        """Whether any element so far is true, and where the next one is."""

        def body(i, c):
            seen, out = c
            seen = np.logical_or(seen, x[i])
            out[i] = seen
            return seen, out

        return pf.fori_loop(0, x.shape[0], body, (np.bool_(False), np.zeros(x.shape[0], bool)))

    x = np.array([False, False, True, False, True])
    jitted = _calls(function, (x,), (~x,))
    assert jitted.state().counters["compile_failures"] == 0


@pytest.mark.parametrize("size", [5, 8])
def test_an_index_out_of_range(size):
    """The kernel stays within its buffers and its results are dropped; NumPy raises."""

    def function(x, places):
        def body(i, y):
            y[i] = x[places[i]]
            return y

        return pf.fori_loop(0, places.shape[0], body, np.zeros(places.shape[0]))

    x = np.arange(float(size))
    good, bad = np.array([0, 4, -1, -size, 2]), np.array([0, 4, size, 1, 2])
    jitted = _calls(function, (x, good))
    voided = jitted.state().counters["voided_launches"]
    assert voided == 0
    with pytest.raises(IndexError, match=f"index {size} is out of bounds"):
        jitted(x, bad)
    assert jitted.state().counters["voided_launches"] == voided + 1
    _same(jitted(x, good), function(x, good), True)


def test_a_loop_that_leaves_an_array():
    """That is found out before the first round, for all of them."""

    def function(x, n):
        def body(i, y):
            y[i] = y[i] + 1.0
            return y

        return pf.fori_loop(0, n, body, x.copy())

    x = np.zeros(6)
    jitted = _calls(function, (x, 6), (x, 3), (x, 0), (x, -2))
    with pytest.raises(IndexError, match="index 6 is out of bounds"):
        jitted(x, 7)
    assert jitted.state().counters["voided_launches"] == 1


def test_indices_count_from_the_end():
    def function(x):
        def body(i, y):
            y[i - 3] = x[i] + y[i - 2]
            return y

        return pf.fori_loop(0, x.shape[0], body, x.copy())

    _calls(function, (np.arange(7.0),), exact=True)


def test_bounds_from_data():
    def function(starts, x):
        def group(g, out):
            def inner(k, s):
                return s + x[k]

            out[g] = pf.fori_loop(starts[g], starts[g + 1], inner, np.float64(0.0))
            return out

        return pf.fori_loop(0, starts.shape[0] - 1, group, np.zeros(starts.shape[0] - 1))

    x = np.arange(10.0)
    jitted = _calls(function, (np.array([0, 3, 3, 10]), x), (np.array([2, 1, 4, 4]), x))
    assert jitted.state().counters["compiles"] == 1
    with pytest.raises(IndexError):
        jitted(np.array([0, 3, 3, 11]), x)


def test_huge_bounds_are_left_to_python():
    """A kernel counts in 64 bits; a loop that would take hours is not begun by a check."""

    def function(x, n):
        def unfinished(c):
            i, y = c
            return np.logical_and(i < n, y.sum() < 10.0)

        return pf.while_loop(unfinished, lambda c: (c[0] + 1, c[1] + 1.0), (np.int64(0), x))

    _calls(function, (np.zeros(3), 2**40), (np.zeros(3), 2))


def test_an_array_of_no_elements():
    def function(x, n):
        return pf.fori_loop(0, n, lambda i, y: y * 2.0 + 1.0, x)

    _calls(function, (np.zeros((0, 3)), 4), (np.ones((2, 3)), 4))


def test_strided_and_reversed_arguments():
    def function(x, w):
        def body(i, y):
            return y + x[i] * w

        return pf.fori_loop(0, x.shape[0], body, np.zeros_like(w))

    base = np.arange(24.0).reshape(4, 6)
    jitted = _calls(function, (base[:, ::2], np.ones(6)[::2]), (base.T[::-1], np.ones(8)[::2]), (base, np.arange(6.0)))
    assert jitted.state().counters["compile_failures"] == 0


def test_host_calls_keep_a_loop_in_the_plan():
    def function(x, n):
        return pf.fori_loop(0, n, lambda i, y: np.sort(y)[::-1] + i, x)

    jitted = _calls(function, (np.random.default_rng(0).random(6), 3))
    assert any("runs on the host" in str(r) for r in jitted.state().reasons)


def test_writes_that_would_copy_stay_in_the_plan():
    """An element of the array before the write is needed behind it: the loop is not in a kernel,
    and no round copies the array, as before."""

    def function(x):
        def body(i, c):
            y, last = c
            old = y[i]
            z = y.copy()
            z[i] = last
            return z, y[0] + old

        return pf.fori_loop(0, x.shape[0], body, (x.copy(), np.float64(0.0)))

    jitted = _calls(function, (np.arange(6.0),), exact=False)
    assert jitted.state().counters["compile_failures"] == 0


def test_gradients_of_loops():
    def loss(x):
        def body(i, y):
            return np.sin(y) * 1.5 + x[i]

        return pf.fori_loop(0, x.shape[0], body, x * 1.0).sum()

    x = np.linspace(0.1, 0.7, 5)
    gradient = pf.jit(pf.grad(loss))
    found = [gradient(x) for _ in range(3)][-1]
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-6
        np.testing.assert_allclose(found[k], (loss(x + step) - loss(x - step)) / 2e-6, rtol=1e-5)


def test_a_loop_whose_result_is_a_number():
    """Python numbers are no results of kernels: the loop runs in the plan, as before."""

    def function(x, n):
        return pf.fori_loop(0, n, lambda i, k: k + i, 0) + x

    _calls(function, (np.ones(2), 5))


def test_exact_kernels_have_no_loops():
    """PROFUSE_EXACT: a loop runs in the plan, and gives the very bits of NumPy."""
    args = ARGUMENTS["jacobi_1d"](np.random.default_rng(0), 11)
    with pf.knobs.override(exact=True):
        jitted = pf.jit(loop_programs.jacobi_1d)
        for _ in range(3):
            _same(jitted(*args), loop_programs.jacobi_1d(*args), True)
    assert not any("fusion_loop" in name for name in executor_of(jitted).result.kernels)


def test_rounds_hand_on_what_numpy_has_rounded():
    # A product that is fused with a sum has one rounding less: here, after a thousand rounds, all
    # digits would be others.
    def lorenz(n):
        x, y, z = 1.0, 1.0, 1.0
        out = np.zeros((n, 3))
        for i in range(n):
            dx, dy, dz = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
            x, y, z = x + dx * 0.01, y + dy * 0.01, z + dz * 0.01
            out[i, 0], out[i, 1], out[i, 2] = x, y, z
        return out

    f = pf.jit(lorenz)
    for _ in range(4):
        np.testing.assert_array_equal(f(2000), lorenz(2000))
    assert f.state().counters["kernel_launches"] > 0


def test_a_function_that_returns_from_its_loop_is_part_of_a_kernel():
    def first_above(row, least):
        for k in range(row.shape[0]):
            if row[k] > least:
                return k
        return -1

    def each(x, least):
        found = np.zeros(x.shape[0], dtype=np.int64)
        for i in range(x.shape[0]):
            found[i] = first_above(x[i], least)
        return found

    f = pf.jit(each)
    x = np.random.default_rng(0).random((12, 20))
    for least in (0.9, 0.5, 1.5, 0.99, 0.0):
        np.testing.assert_array_equal(f(x, least), each(x, least))
    counters = f.state().counters
    assert counters["kernels_compiled"] == 1 and counters["python_calls"] == 0


def sums_of_rows(y):
    total = y * 2
    for i in range(1, len(total)):
        total[i] += total[i - 1]
    return total


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.float64])
def test_arrays_that_go_backwards(dtype):
    """LLVM must not be told that no offset is negative: it read bytes at address -1."""
    y = np.arange(36).reshape(6, 2, 3).astype(dtype)[::-1, ::-1, ::-1]
    f = pf.jit(sums_of_rows)
    with pf.knobs.override(unroll_rounds=2):
        for _ in range(4):
            np.testing.assert_array_equal(f(y), sums_of_rows(y))
    assert f.state().counters["kernel_launches"] > 0
