"""Parts of arrays whose sizes numbers tell while a loop runs, and runs that end on the way."""

from __future__ import annotations

import resource

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from native_loops import native, same

pytestmark = pytest.mark.optimised


@pytest.fixture(autouse=True)
def as_users_call_it():
    """What writes to arguments is no error."""
    with pf.knobs.override(unsupported="python"):
        yield


def kernels(jitted):
    return [name for name in executor_of(jitted).result.kernels if "fusion_loop" in name]


def rows_of_a_sparse_matrix(data, columns, ends, x):
    out = np.zeros(len(ends))
    begin = 0
    for i in range(len(ends)):
        end = ends[i]
        out[i] = (data[begin:end] * x[columns[begin:end]]).sum()
        begin = end
    return out


def sparse(rng, sizes):
    count = int(np.sum(sizes))
    return rng.random(count), rng.integers(0, 30, count), np.cumsum(sizes), rng.random(30)


def test_rows_of_a_sparse_matrix():
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 9, 50)
    f = native(rows_of_a_sparse_matrix, *sparse(rng, sizes))
    same(f, rows_of_a_sparse_matrix, sparse(rng, rng.permutation(sizes)))
    data, columns, ends, x = sparse(rng, sizes)
    columns[3] = 30
    same(f, rows_of_a_sparse_matrix, (data, columns, ends, x))  # IndexError
    ends[4] = -3  # which counts from the end: Python does that
    same(f, rows_of_a_sparse_matrix, (data, np.minimum(columns, 29), ends, x))


def means_of_groups(values, counts):
    out, at = np.empty(counts.size), 0
    for k, n in enumerate(counts):
        n = int(n)
        group = values[at : at + n]
        spread = group - values[at]
        out[k] = np.abs(spread).sum() / (n + 1) + group.sum()
        at += n
    return out


def test_groups_of_sizes_in_an_array():
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 12, 40)
    f = native(means_of_groups, rng.random(int(counts.sum())), counts)
    same(f, means_of_groups, (rng.random(int(counts.sum())), counts[::-1].copy()))


def transposed_heat(steps, n, u, v):
    for _ in range(steps):
        v[1 : n - 1, 1 : n - 1] = 0.25 * (
            u[0 : n - 2, 1 : n - 1] + u[2:n, 1 : n - 1] + u[1 : n - 1, 0 : n - 2] + u[1 : n - 1, 2:n]
        )
        u[1 : n - 1, 1 : n - 1] = v[1 : n - 1, 1 : n - 1]
    return u.sum()


def test_an_argument_that_is_the_size_of_an_array():
    """A number that is handed over beside the array whose size it is."""
    rng = np.random.default_rng(2)
    f = native(transposed_heat, 6, 20, rng.random((20, 20)), np.zeros((20, 20)))
    launches = f.state().counters["kernel_launches"]
    same(f, transposed_heat, (3, 20, rng.random((20, 20)), np.zeros((20, 20))))
    assert f.state().counters["kernel_launches"] > launches
    for n in (0, 1, 2, 3, 7, 19, -1):
        same(f, transposed_heat, (3, n, rng.random((20, 20)), np.zeros((20, 20))))


def adaptive(x, d, taps, mu):
    w, error = np.zeros(taps), np.zeros(len(x))
    for i in range(taps, len(x)):
        window = x[i - taps : i][::-1]
        error[i] = d[i] - np.dot(w, window)
        w += mu * error[i] * window
    return w, error


def test_a_window_as_wide_as_an_argument_says():
    rng = np.random.default_rng(3)
    f = native(adaptive, rng.random(200), rng.random(200), 8, 0.1, tolerance=1e-9)
    for taps in (8, 5, 8, 0, 1):
        same(f, adaptive, (rng.random(200), rng.random(200), taps, 0.1), 1e-9)


def smoothed_parts(x, widths, after):
    total = 0.0
    for k in range(widths.size):
        part = np.sqrt(x[: int(widths[k])])
        total += (part * part[::-1]).sum() + x[: int(after[k])].sum()
    return total


def test_void_runs_leave_no_memory_behind():
    """A run ends at a size below 0, in a round whose temporary has been allocated."""
    rng = np.random.default_rng(4)
    x, widths = rng.random(100_000), np.full(3, 90_000)
    f = native(smoothed_parts, x, widths, np.array([1, 2, 3]), tolerance=1e-12)
    bad = np.array([1, 2, -1])
    with pf.knobs.override(demote="off"):  # else most of these calls are Python's alone
        for _ in range(20):
            same(f, smoothed_parts, (x, widths, bad), 1e-12)
        voided = f.state().counters["voided_launches"]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(150):  # of 720 kB each, at least
            f(x, widths, bad)
    assert f.state().counters["voided_launches"] >= voided + 150
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def table_of_steps(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a) + 1):
        d[i, 0] = i
    for j in range(len(b) + 1):
        d[0, j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d


def test_loops_that_fill_an_array_one_after_the_other_are_one_kernel():
    rng = np.random.default_rng(5)
    f = native(table_of_steps, rng.integers(0, 3, 20), rng.integers(0, 3, 30))
    assert len(kernels(f)) == 1
    before = f.state().counters["kernel_launches"]
    same(f, table_of_steps, (rng.integers(0, 3, 20), rng.integers(0, 3, 30)))
    assert f.state().counters["kernel_launches"] == before + 1


def two_of_which_one_is_returned(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = 2 * x[i]
    z = y.copy()
    for i in range(1, len(x)):
        z[i] += z[i - 1]
    return y, z


def test_what_is_returned_as_well_stays_as_it_was():
    f = native(two_of_which_one_is_returned, np.arange(30.0))
    same(f, two_of_which_one_is_returned, (np.linspace(-1, 1, 30),))


def down_to_the_left(a, start):
    seen = 0
    k = start
    while a[k] > 0:
        a[k + 1] = a[k] * 0.5
        seen += 1
        k -= 1
    return seen, k


def test_places_that_count_from_the_end():
    """A place that becomes negative is one from the end, until there is none."""
    a = np.ones(12)
    a[5] = -1.0
    f = native(down_to_the_left, a, 9)
    for start in (9, 3, 0, -1, -5):
        for at in (5, 11, 0):
            b = np.ones(12)
            b[at] = -1.0
            same(f, down_to_the_left, (b, start))
    same(f, down_to_the_left, (np.ones(12), 9))  # IndexError, and what was written before it


def doubled_until(n, most):
    steps = 0
    while n < most:
        n = n * n + 1
        steps += 1
    return n, steps


def test_ints_that_leave_64_bits_in_a_while_loop():
    f = native(doubled_until, 2, 10**6)
    same(f, doubled_until, (2, 10**30))
    same(f, doubled_until, (3, 2**63 - 1))


def sums_of_products(n, k):
    total, last = 0, 0
    for i in range(n):
        last = k + i
        total += last * 3
    return total, last


def test_ints_that_leave_64_bits_in_straight_rounds():
    f = native(sums_of_products, 100, 5)
    same(f, sums_of_products, (100, 2**60))
    same(f, sums_of_products, (1000, 2**53))
    same(f, sums_of_products, (2, 2**63 - 1))


def sums_in_branches(n, k):
    total = 0
    for i in range(n):
        if i % 3 > 0:
            total += k * i
        else:
            total -= i
    return total


def test_ints_that_leave_64_bits_in_branches():
    f = native(sums_in_branches, 100, 5)
    same(f, sums_in_branches, (100, 2**60))
    same(f, sums_in_branches, (1000, 2**53))


def counted_above(x, limit):
    count = best = 0
    for i in range(len(x)):
        if x[i] > limit:
            count += 1
        else:
            count = 0
        if count > best:
            best = count
    return best


def test_counters_in_branches():
    rng = np.random.default_rng(7)
    f = native(counted_above, rng.random(300), 0.3)
    same(f, counted_above, (rng.random(300), 0.6))


def best_pair(x, rounds):
    best, where = -np.inf, (0, 0)
    sums = (0.0, 1.0)
    for i in range(rounds):
        for j in range(i):
            if x[i] * x[j] > best:
                best, where = x[i] * x[j], (i, j)
        sums = (sums[1], sums[0] + x[i])
    return best, where, sums


def test_tuples_that_rounds_replace():
    rng = np.random.default_rng(8)
    f = native(best_pair, rng.standard_normal(30), 30)
    same(f, best_pair, (rng.standard_normal(30), 30))
    same(f, best_pair, (rng.standard_normal(30), 12))


def grown(x, rounds):
    t = (1, 2)
    for i in range(rounds):
        t = (*t, i)
    return t, x


def test_a_tuple_that_grows_is_no_variable_of_a_loop():
    f = pf.jit(grown)
    for rounds in (3, 40, 0):
        same(f, grown, (np.ones(3), rounds))


def scattered(x, k, y):
    for i in range(len(k)):
        if y[i] > 0.5:
            x[k[i]] += y[i]
        else:
            x[k[i] - 1] = x[k[i]] - 1
    return x


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_places_of_any_dtype(dtype):
    rng = np.random.default_rng(9)
    f = native(scattered, np.zeros(20), rng.integers(1, 20, 50).astype(dtype), rng.random(50))
    same(f, scattered, (np.zeros(20), rng.integers(1, 20, 50).astype(dtype), rng.random(50)))
    k = rng.integers(1, 20, 50).astype(dtype)
    k[30] = 20
    same(f, scattered, (np.zeros(20), k, rng.random(50)))  # IndexError


def kept_in_a_copy(a, k):
    total = 0.5
    for i in range(len(k)):
        before = a.copy()
        a[i] = total
        total += before[k[i]]
    return a, total


def test_elements_of_an_array_as_it_was():
    rng = np.random.default_rng(10)
    f = native(kept_in_a_copy, rng.random(12), rng.integers(0, 12, 9))
    same(f, kept_in_a_copy, (rng.random(12), np.arange(9)))
    k = rng.integers(-12, 12, 9)
    same(f, kept_in_a_copy, (rng.random(12), k))
    k[5] = 10**12
    same(f, kept_in_a_copy, (rng.random(12), k))  # IndexError


def steps_of_lorenz(x, y, z, dt, out):
    for k in range(out.shape[0]):
        x, y, z = x + dt * 10.0 * (y - x), y + dt * (x * (28.0 - z) - y), z + dt * (x * y - z * 2.5)
        out[k, 0] = x
        out[k, 1] = y * z - x
        out[k, 2] = z
    return x, y, z


def solved_by_elements(a, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = b[i]
        for j in range(i):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x


def test_single_elements_are_rounded_as_in_python():
    """A product that is fused with its sum would differ in the last bit, and soon in all."""
    rng = np.random.default_rng(11)
    native(steps_of_lorenz, 1.0, 1.0, 1.0, 1e-2, np.zeros((500, 3)), tolerance=0)
    native(solved_by_elements, rng.random((60, 60)) + 0.1, rng.random(60), tolerance=0)


def weighted(n, x, w):
    total = 0.0
    for i in range(len(x)):
        total += (x[0:n] * w).sum() * x[i]
    return total


def test_what_runs_op_by_op_takes_numbers_as_they_are():
    """Neither a fallback nor what is evaluated after a void run holds a number to a size."""
    rng = np.random.default_rng(12)
    with pf.knobs.override(unsupported="raise"):
        f = native(weighted, 8, rng.random(20), rng.random(8))
        for n in (5, 12, 8, 1):
            same(f, weighted, (n, rng.random(20), rng.random(n)))
        same(f, weighted, (1, rng.random(20), rng.random(8)))
        same(f, weighted, (-12, rng.random(20), rng.random(8)))
        same(f, weighted, (5, rng.random(20), rng.random(8)))  # ValueError
