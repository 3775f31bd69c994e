"""Ints that decide sizes are constants of the first graph, inputs of the later ones (R1.16)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest

X = np.random.default_rng(3).standard_normal(40)
jit = pf.jit(unsupported="python")


def moving_average(x, n):
    total = np.cumsum(x)
    total[n:] = total[n:] - total[:-n]
    return total[n - 1 :] / n


def settled(function, *args):
    for _ in range(4):
        found = function(*args)
        function.wait()
    return found


def test_the_first_graph_is_for_one_number():
    function = jit(moving_average)
    np.testing.assert_allclose(settled(function, X, 5), moving_average(X, 5), rtol=1e-12)
    state = function.state()
    assert state.tier == "optimized"
    assert state.counters["traces"] == 1
    assert len(state.specializations[0].kernels) == 1  # one kernel, and nothing is left outside
    assert "n = 5 was baked into the graph" in function.explain()


def test_later_graphs_are_for_all_numbers():
    function = jit(moving_average)
    for n in (5, 6, 7, 3, 6, 5):
        np.testing.assert_allclose(settled(function, X, n), moving_average(X, n), rtol=1e-12)
    assert function.state().counters["traces"] == 2


def test_numbers_that_decide_no_sizes_are_free():
    @jit
    def scaled(x, n):
        return x * n + x[n]

    for n in (1, 2, 3):
        np.testing.assert_allclose(settled(scaled, X, n), X * n + X[n], rtol=1e-12)
    assert scaled.state().counters["traces"] == 1


def test_numbers_that_sizes_follow_from():
    @jit
    def grid(n, m, scale):
        return np.ones((n + 1, m * 2)) * scale

    for args in ((3, 4, 1), (3, 4, 2), (5, 4, 2), (3, 4, 3)):
        np.testing.assert_array_equal(settled(grid, *args), np.ones((args[0] + 1, args[1] * 2)) * args[2])
    assert grid.state().counters["traces"] == 2


def test_numbers_that_calls_assign_are_inputs():
    state, plain = ({"n": 1, "sum": 0.0} for _ in range(2))

    def step(state, x):
        state["sum"] += x[: state["n"]].sum()
        state["n"] += 1

    function = jit(step)
    for _ in range(6):
        function(state, X)
        function.wait()
        step(plain, X)
    assert state["n"] == plain["n"]
    assert state["sum"] == pytest.approx(plain["sum"])
    assert function.state().tier != "python"


def test_attributes_that_calls_assign_are_inputs():
    held, plain = (SimpleNamespace(n=1, sum=0.0) for _ in range(2))

    def step(held, x):
        held.sum = held.sum + x[: held.n].sum()
        held.n = held.n + 1

    function = jit(step)
    for _ in range(6):
        function(held, X)
        function.wait()
        step(plain, X)
    assert (held.n, held.sum) == (plain.n, pytest.approx(plain.sum))


def test_graphs_with_loops_are_for_all_numbers():
    @jit
    def windows(x, n, m):
        total = 0.0
        for k in range(m):
            total = total + x[k : k + n].sum() + x[:n].max()
        return total, np.zeros(n)

    for n, m in ((3, 20), (3, 25), (4, 20), (3, 20)):
        found, wanted = settled(windows, X, n, m), windows.__wrapped__(X, n, m)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    assert windows.state().counters["traces"] == 1


def test_where_any_error_is_caught():
    @jit
    def first(x, n):
        try:
            return x[:n].sum()
        except Exception:
            return 0.0

    for n in (3, 3, 4, 5, 3):
        assert settled(first, X, n) == pytest.approx(X[:n].sum())


def test_errors_are_those_of_numpy():
    @jit
    def filled(x, n):
        return x + np.ones(n)

    for n in (40, -1, 3, 40, 1):
        try:
            wanted = filled.__wrapped__(X, n)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)[:12]):
                filled(X, n)
        else:
            np.testing.assert_array_equal(settled(filled, X, n), wanted)
