"""Control flow on values through all tiers: groups and guards inside branches and loops."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest


def run(f, plain, calls):
    for args in calls:
        np.testing.assert_allclose(f(*args), plain(*args), rtol=1e-5, atol=1e-6)


def test_branches_are_specialised_as_they_are_met():
    def plain(x):
        return np.exp(x) * 2 if x.sum() > 0 else np.tanh(x) - 1

    f = pf.jit(lambda x: pf.cond(x.sum() > 0, lambda y: np.exp(y) * 2, lambda y: np.tanh(y) - 1, x))
    up, down = np.ones((3, 4), np.float32), -np.ones((3, 4), np.float32)
    run(f, plain, [(up,), (up,), (down,), (down,), (up,)])
    counters = f.state().counters
    assert counters["compile_failures"] == 0
    assert counters["kernel_launches"] >= 4


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_counted_loop(steps):
    def plain(x, n):
        for k in range(n):
            x = np.sin(x) * 0.9 + k
        return x

    f = pf.jit(lambda x, n: pf.fori_loop(0, n, lambda k, y: np.sin(y) * 0.9 + k, x))
    x = np.linspace(0, 1, 12).reshape(3, 4)
    run(f, plain, [(x, steps), (x, steps), (x, steps + 2), (x, 0)])
    assert f.state().counters["traces"] == 1


def test_loop_with_a_tensor_condition():
    def plain(x):
        while np.abs(x).max() > 0.1:
            x = x * 0.5 + np.sin(x) * 0.01
        return x

    f = pf.jit(lambda x: pf.while_loop(lambda y: np.abs(y).max() > 0.1, lambda y: y * 0.5 + np.sin(y) * 0.01, x))
    x = np.linspace(-3, 3, 10, dtype=np.float32)
    run(f, plain, [(x,), (x,), (x * 100,), (x * 0,)])
    assert f.state().counters["compile_failures"] == 0
    assert f.state().counters["kernel_launches"] > 0


def test_value_of_growing_size_in_a_loop():
    """R1.19: an unstable size is no speculation and no error."""

    def plain(x, n):
        for _ in range(n):
            x = np.concatenate([x, x * 2])
        return x

    f = pf.jit(lambda x, n: pf.fori_loop(0, n, lambda k, y: np.concatenate([y, y * 2]), x))
    x = np.arange(3.0)
    run(f, plain, [(x, 3), (x, 3), (x, 1), (x, 4)])


def test_jitted_function_inside_a_jitted_function():
    inner = pf.jit(lambda x: np.tanh(x) + 1)
    outer = pf.jit(lambda x: inner(x) * inner(x * 2))
    x = np.linspace(-1, 1, 7)
    for _ in range(3):
        np.testing.assert_allclose(outer(x), (np.tanh(x) + 1) * (np.tanh(x * 2) + 1))
    assert inner.state().counters["calls"] == 0
    assert outer.state().counters["kernels_compiled"] == 1


def test_baked_size_makes_a_trace_of_its_own_and_says_so():
    @pf.jit
    def f(x):
        total = x[0] * 0
        for k in [*range(x.shape[0])]:
            total = total + x[k] * k
        return total

    for n in (3, 3, 5, 5, 3):
        x = np.ones((n, 2))
        np.testing.assert_allclose(f(x), sum(x[k] * k for k in range(n)))
    assert f.state().counters["traces"] == 2
    assert "x.shape[0] = 3 was baked" in f.explain()


def test_complex_functions_without_lowering_run_on_tier_0_and_are_counted():
    f = pf.jit(lambda x: np.arctan(np.arcsin(x)))
    x = np.ones(3) + 1j
    for _ in range(3):
        np.testing.assert_allclose(f(x), np.arctan(np.arcsin(x)))
    state = f.state()
    assert state.tier == "optimized"
    assert state.counters["kernels_compiled"] == 0
    assert state.counters["refusals"] == 2
    assert any("complex is not lowered" in reason for reason in state.reasons)
