"""Tiers, counts and accuracy of the functions that must fuse into one kernel."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from kernels import FUNCTIONS, arguments


def as_double(args):
    return [a.astype(np.float64) if a.dtype == np.float32 else a for a in args]


def leaves(out):
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_call_1_profiles_call_2_is_native(name):
    """R1.12: with the default settings the second call runs the optimised plan."""
    fn = FUNCTIONS[name]
    f = pf.jit(fn)
    args = arguments(name)
    expected = leaves(fn(*args))

    first = leaves(f(*args))
    state = f.state()
    assert state.tier == "profiling"
    assert state.counters["profiled_runs"] == 1
    assert state.counters["compiles"] == 0
    evaluated = state.counters["evaluated_ops"]
    assert evaluated > 0

    second = leaves(f(*args))
    state = f.state()
    assert state.tier == "optimized"
    assert state.counters["compiles"] == 1
    assert state.counters["evaluated_ops"] == evaluated, "call 2 evaluated ops on tier 0"
    assert state.counters["compile_failures"] == 0
    assert state.counters["kernel_launches"] >= 1
    assert state.counters["guard_misses"] == 0
    if name != "mlp":
        assert state.counters["kernels_compiled"] == 1
        assert state.counters["kernel_launches"] == 1
    for out in (first, second):
        for found, want in zip(out, expected, strict=True):
            assert np.asarray(found).dtype == np.asarray(want).dtype
            np.testing.assert_allclose(found, want, rtol=2e-5, atol=5e-6)


@pytest.mark.sampled(3)
@pytest.mark.optimised  # sums in lanes are closer
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [(33, 48), (257, 1000)])
def test_as_close_to_float64_as_numpy(name, size):
    fn = FUNCTIONS[name]
    args = arguments(name, *size)
    f = pf.jit(fn)
    f(*args)
    for found, plain, exact in zip(leaves(f(*args)), leaves(fn(*args)), leaves(fn(*as_double(args))), strict=True):
        ours = np.abs(found.astype(np.float64) - exact).max()
        theirs = np.abs(np.asarray(plain, np.float64) - exact).max()
        # half an ulp of the largest value: what rounding the exact result to float32 costs
        floor = np.abs(exact).max() * 2.0**-24
        assert ours <= 4 * max(theirs, floor), (ours, theirs)


def sum_rows(x):
    return np.exp(x).sum(axis=1)


def run_shapes(f, shapes):
    for n, m in shapes:
        x = np.linspace(-1, 1, n * m, dtype=np.float32).reshape(n, m)
        np.testing.assert_allclose(f(x), sum_rows(x), rtol=1e-5)


def test_static_chain_down_to_depth_0():
    """R1.44: A,A,B,B,C,C under [(static, 2)]: two guards, then C runs unguarded."""
    f = pf.jit(sum_rows, strategy=[("static", 2)])
    a, b, c = (4, 5), (6, 5), (7, 9)
    run_shapes(f, [a, a])
    assert f.state().counters["compiles"] == 1
    assert f.state().remaining_depth == 1
    run_shapes(f, [b, b])
    state = f.state()
    assert state.counters["compiles"] == 2
    assert state.remaining_depth == 0
    assert [s.behavior for s in state.specializations] == ["static", "static"]
    assert [s.depth for s in state.specializations] == [2, 1]
    run_shapes(f, [c, c])
    state = f.state()
    assert state.counters["compiles"] == 2
    assert len(state.specializations) == 2
    hits = [s.hits for s in state.specializations]
    run_shapes(f, [a])
    after = f.state()
    assert [s.hits for s in after.specializations] == [hits[0] + 1, hits[1]]
    assert after.counters["guard_misses"] == state.counters["guard_misses"]


def test_dynamic_kernel_serves_new_sizes():
    """R1.40: after one static and one dynamic specialisation new sizes hit without a compile."""
    f = pf.jit(sum_rows, strategy=[("static", 1), ("dynamic", 1)])
    run_shapes(f, [(4, 5), (4, 5), (6, 7), (6, 7)])
    state = f.state()
    assert state.counters["compiles"] == 2
    assert [s.behavior for s in state.specializations] == ["static", "dynamic"]
    evaluated = state.counters["evaluated_ops"]
    run_shapes(f, [(8, 9), (10, 11), (3, 200)])
    state = f.state()
    assert state.counters["compiles"] == 2
    assert state.counters["evaluated_ops"] == evaluated
    assert state.specializations[1].hits == 4


@pytest.mark.parametrize("strategy", [[("static", 2)], [("static", 1), ("dynamic", 1)], []])
def test_never_more_compiles_than_the_strategy_allows(strategy):
    f = pf.jit(sum_rows, strategy=strategy)
    for n in range(2, 12):
        run_shapes(f, [(n, n + 1)] * 3)
    assert f.state().counters["compiles"] <= sum(count for _, count in strategy)


def test_depth_0_has_no_observer_and_no_guard():
    """R1.10: an empty strategy runs the graph as it is, on every call."""
    f = pf.jit(sum_rows, strategy=[])
    run_shapes(f, [(2, 3)] * 3)
    state = f.state()
    assert state.tier == "simple"
    assert state.counters["profiled_runs"] == 0
    assert state.specializations == ()


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_profiled_run_count(runs):
    """R1.12: with N profiled runs the optimised plan appears on call N + 1."""
    f = pf.jit(sum_rows, profiled_runs=runs)
    tiers = []
    for _ in range(runs + 1):
        run_shapes(f, [(3, 4)])
        tiers.append(f.state().tier)
    assert tiers == ["profiling"] * runs + ["optimized"]


def test_optimisation_off_then_on():
    """R1.8: off, nothing is profiled; on again, profiling starts."""
    f = pf.jit(sum_rows)
    assert pf.set_optimize(False) is True
    try:
        run_shapes(f, [(3, 4)] * 2)
        assert f.state().tier == "no-opt"
        assert f.state().counters["profiled_runs"] == 0
    finally:
        assert pf.set_optimize(True) is False
    run_shapes(f, [(3, 4)] * 2)
    assert f.state().tier == "optimized"


def test_flush_profiles_again():
    """R1.14"""
    f = pf.jit(sum_rows)
    run_shapes(f, [(3, 4)] * 2)
    f.flush()
    assert f.state().tier == "profiling"
    run_shapes(f, [(3, 4)] * 2)
    assert f.state().counters["compiles"] == 2
    assert f.state().counters["profiled_runs"] == 2


def test_strategy_is_copied_at_construction():
    """R1.4, R1.5"""
    f = pf.jit(sum_rows)
    run_shapes(f, [(3, 4)])
    previous = pf.set_fusion_strategy([("static", 1)])
    try:
        assert previous == (("static", 2), ("dynamic", 10))
        assert f.state().remaining_depth == 12
        g = pf.jit(sum_rows)
        run_shapes(g, [(3, 4)])
        assert g.state().remaining_depth == 1
    finally:
        assert pf.set_fusion_strategy(previous) == (("static", 1),)
