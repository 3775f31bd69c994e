"""Functions of libraries that run on real arrays, between kernels: tiers, sizes, errors, files."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from profuse.dialect.errors import TraceError


def picked(x):
    y = x[x > 0]
    return np.tanh(y * 2).sum() + y.sum()


def solved(a, b):
    return np.linalg.solve(a * 2, b + 1) * 3 + 1


def counts(f):
    return f.state().counters


def vector(positive, negative=3):
    return np.concatenate([np.arange(1.0, positive + 1), -np.ones(negative)])


def system(n):
    return np.eye(n) * 3 + np.arange(float(n * n)).reshape(n, n) / n, np.arange(float(n))


def test_groups_before_and_after_a_call_are_fused():
    f = pf.jit(solved)
    for _ in range(4):
        np.testing.assert_allclose(f(*system(5)), solved(*system(5)))
        f.wait()
    found = counts(f)
    assert (found["compiles"], found["kernels_compiled"], found["guard_misses"]) == (1, 2, 0)
    assert found["kernel_launches"] >= 4
    (reason,) = f.state().reasons
    assert reason.endswith("np.linalg.solve (NumPy) runs on the host, between kernels (1x)")
    assert "np.linalg.solve (NumPy) runs on the host" in f.explain()
    assert "Not fused: host_call at" in f.explain()


def test_sizes_that_contents_decide_become_dynamic():
    f = pf.jit(picked, strategy=[("static", 1), ("dynamic", 2)])
    for positive in (4, 4, 5, 5):
        np.testing.assert_allclose(f(vector(positive)), picked(vector(positive)))
        f.wait()
    before = counts(f)
    for positive in (6, 9, 2, 30, 7, 6):
        np.testing.assert_allclose(f(vector(positive)), picked(vector(positive)))
        f.wait()
    after = counts(f)
    assert after["compiles"] == before["compiles"]
    assert after["traces"] == 1
    assert after["kernel_launches"] - before["kernel_launches"] >= 6
    # No element, all elements, and one are right as well.
    for x in (vector(0), vector(4, 0), vector(1), vector(0, 0)):
        for _ in range(3):
            np.testing.assert_allclose(f(x), picked(x))
            f.wait()


def test_changing_contents_of_one_size_miss_no_guard_twice():
    """Only the number of elements that are picked changes, not the size of the argument."""
    f = pf.jit(picked)
    for shift in (0, 1, 2, 3, 4, 5, 6):
        x = np.arange(10.0) - 7 + shift / 2
        np.testing.assert_allclose(f(x), picked(x))
        f.wait()
    before = counts(f)
    for shift in range(4, 12):
        x = np.arange(10.0) - 7 + shift / 2
        np.testing.assert_allclose(f(x), picked(x))
        f.wait()
    assert counts(f)["compiles"] == before["compiles"]


def test_errors_are_those_of_numpy_at_each_tier():
    f = pf.jit(lambda a: np.linalg.inv(a) * 2 + 1)
    good = np.eye(3)
    for _ in range(4):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as caught:
            f(np.zeros((3, 3)))
        assert "test_host_calls.py" in str(caught.value)
        np.testing.assert_allclose(f(good), np.linalg.inv(good) * 2 + 1)
        f.wait()
    assert f.state().tier == "optimized"
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        f(np.ones((3, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="two-dimensional"):
        pf.jit(np.linalg.inv)(np.ones(3))
    with pytest.raises(TypeError, match="float16"):
        pf.jit(np.linalg.inv)(np.eye(3, dtype=np.float16))


def test_what_fails_by_contents_below_an_except_is_refused():
    def f(a):
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return a

    with pytest.raises(TraceError, match="depends on array contents"):
        pf.jit(f)(np.eye(2))


def test_the_keyed_executor_runs_calls():
    pf.set_profiling_mode(False)
    try:
        f, g = pf.jit(solved), pf.jit(picked)
        for n in (3, 5, 4):
            np.testing.assert_allclose(f(*system(n)), solved(*system(n)))
            np.testing.assert_allclose(g(vector(n)), picked(vector(n)))
        assert counts(f)["cache_misses"] == counts(g)["cache_misses"] == 1
        assert counts(f)["compile_failures"] == counts(g)["compile_failures"] == 0
    finally:
        pf.set_profiling_mode(True)


def test_stored_code_and_saved_files_serve_calls(tmp_path):
    with pf.knobs.override(cache=True, cache_dir=str(tmp_path / "cache")):
        first = pf.jit(solved)
        for _ in range(3):
            first(*system(4))
            first.wait()
        second = pf.jit(solved)
        np.testing.assert_allclose(second(*system(4)), solved(*system(4)))
        assert counts(second)["profiles_restored"] == 1
        assert counts(second)["disk_hits"] == 1
        first.save(tmp_path / "solved.pf")
        loaded = pf.load(tmp_path / "solved.pf")
        np.testing.assert_allclose(loaded(*system(4)), solved(*system(4)))


def test_sorting_in_place_writes_to_the_function_s_own_array():
    def f(x):
        y = x * 2
        z = y[1:]
        z.sort()
        y.partition(0)
        return y + 1, z

    x = np.array([3.0, 5.0, 1.0, 4.0])
    g = pf.jit(f)
    for _ in range(3):
        for a, b in zip(g(x), f(x), strict=True):
            np.testing.assert_array_equal(a, b)
        g.wait()
    with pytest.raises(TraceError, match="the caller"):
        pf.jit(lambda x: x.sort())(x)


def test_numbers_of_a_call_do_not_trace_again():
    f = pf.jit(lambda x, k, q: np.partition(x, k)[k] + np.percentile(x, q))
    x = np.arange(9.0)[::-1].copy()
    for k in (2, 3, 4):
        assert f(x, k, 10.0 * k) == x[8 - k] + np.percentile(x, 10 * k)
    assert counts(f)["traces"] == 1


def test_numbers_that_decide_ranks_are_guarded():
    f = pf.jit(lambda x, axis: np.median(x, axis) * 2)
    x = np.arange(12.0).reshape(3, 4)
    for axis in (0, 1, 0):
        np.testing.assert_array_equal(f(x, axis), np.median(x, axis) * 2)
    assert counts(f)["traces"] == 2


def test_the_number_of_variables_decides_the_rank_of_covariances():
    f = pf.jit(lambda x: np.cov(x) * 2)
    for rows in (1, 3, 1, 2):
        x = np.arange(rows * 5.0).reshape(rows, 5) ** 2
        np.testing.assert_allclose(f(x), np.cov(x) * 2)


def test_dtypes_that_contents_decide_are_refused():
    with pytest.raises(TypeError, match="real or complex"):
        pf.jit(lambda a: np.linalg.eig(a)[0])(np.eye(2))


def test_arguments_that_no_graph_holds_are_refused():
    with pytest.raises(TraceError, match="cannot be part of a graph"):
        pf.jit(lambda x: np.insert(x, object(), 1))(np.ones(3))


def test_functions_of_scipy_are_elementwise():
    special = pytest.importorskip("scipy.special")
    f = pf.jit(lambda x, y: special.gamma(x) * 2 + special.jv(y, x + 1))
    for dtype in (np.float32, np.float64):
        x, y = np.linspace(0.5, 3, 6, dtype=dtype), np.ones((2, 1), dtype)
        for _ in range(3):
            found = f(x, y)
            f.wait()
            expected = special.gamma(x) * 2 + special.jv(y, x + 1)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_call_is_evaluated_once_per_call():
    f = pf.jit(lambda x: np.sort(x))
    for _ in range(3):
        f(np.ones(4))
        f.wait()
    assert executor_of(f).counters.evaluated_ops == 3
