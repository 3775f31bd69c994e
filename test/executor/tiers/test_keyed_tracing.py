"""Jitted functions inside of traces, and the state of the spec-keyed executor (R2.14, R2.16)."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from keyed_graphs import add_executor, f32, scaled

pytestmark = pytest.mark.usefixtures("profiling_off")


def repeated(x, n):
    return pf.fori_loop(0, n, lambda i, v: v * 0.5 + x, x)


def test_tracing_inlines_the_original_graph():
    """R2.14: a loop survives, outputs are bound, and no cache counter moves."""
    inner = pf.jit(repeated)
    inner(f32(3), 2)
    before = inner.state().counters
    outer = pf.jit(lambda x, n: inner(x * 2, n) + 1)
    want = repeated(f32(4) * 2, 3) + 1
    np.testing.assert_allclose(outer(f32(4), 3), want, rtol=1e-6)
    assert outer.ir("graph").count("scf.for") == 1
    after = inner.state().counters
    for name in ("cache_hits", "cache_misses", "compiles", "traces", "kernel_launches"):
        assert after[name] == before[name]
    assert after["invocations"] == before["invocations"] + 1


def test_tracing_specialises_types():
    """R2.14: the inlined graph has the dtypes that it gets here."""
    inner = pf.jit(lambda x: np.tanh(x) * 0.5)
    inner(f32(3))
    outer = pf.jit(lambda x: inner(x))
    x = f32(3).astype(np.float64)
    out = outer(x)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, np.tanh(x) * 0.5, rtol=1e-12)


@pytest.mark.parametrize("positive", [True, False])
def test_tracing_keeps_branches(positive):
    """R2.14: scf.if and scf.while of the graph are in the outer one."""

    def halve(x):
        return pf.while_loop(lambda v: v.max() > 0.25, lambda v: v * 0.5, x)

    def chosen(x):
        return pf.cond(x.sum() > 0, lambda: halve(x), lambda: -x)

    inner = pf.jit(chosen)
    outer = pf.jit(lambda x: {"out": inner(x) + inner(x)})
    x = f32(2, 3) + (2 if positive else -2)
    np.testing.assert_allclose(outer(x)["out"], chosen(x) * 2, rtol=1e-6)
    text = outer.ir("graph")
    assert (text.count("scf.if"), text.count("scf.while")) == (2, 2)


def test_tracing_guards_what_was_baked():
    """R2.14: a number that the inner trace baked in is guarded by the outer one."""

    def powers(x):
        out = x
        for _ in [*range(x.shape[0])]:
            out = out * 2
        return out

    inner = pf.jit(powers)
    outer = pf.jit(lambda x: inner(x + 1))
    for size in (2, 3, 2):
        np.testing.assert_allclose(outer(f32(size)), powers(f32(size) + 1), rtol=1e-6)
    assert outer.state().counters["traces"] == 2


def test_tracing_with_captured_arrays_and_constants():
    """R2.14: arrays that the inner function closes over become inputs of the outer graph."""
    weights = f32(3)
    inner = pf.jit(lambda x, scale: np.tanh(x * scale + weights))
    outer = pf.jit(lambda x: inner(x, 2.0) - inner(x, weights))
    want = np.tanh(f32(3) * 2 + weights) - np.tanh(f32(3) * weights + weights)
    np.testing.assert_allclose(outer(f32(3)), want, rtol=1e-5)
    weights[:] = 0
    np.testing.assert_allclose(outer(f32(3)), np.tanh(f32(3) * 2), rtol=1e-5)


def test_functions_that_use_the_outer_trace():
    """R2.14: what closes over traced values has no graph of its own: its ops are recorded."""

    @pf.jit
    def outer(x):
        inner = pf.jit(lambda y: y + x)
        return inner(x * 2)

    np.testing.assert_allclose(outer(f32(3)), f32(3) * 3, rtol=1e-6)


def test_a_graph_made_while_profiling_is_not_inlined():
    """R2.14: the profiling executor's functions record their operations, as they always did."""
    pf.set_profiling_mode(True)
    inner = pf.jit(repeated)
    outer = pf.jit(lambda x, n: inner(x, n) + 1)
    np.testing.assert_allclose(outer(f32(4), 3), repeated(f32(4), 3) + 1, rtol=1e-6)
    assert inner.state().counters["traces"] == 0


def test_tracing_a_loaded_graph(tmp_path):
    """R2.14: the graph of a file joins the trace, too."""
    path = tmp_path / "add.mlir"
    path.write_text(add_executor().module.to_mlir(locations=False))
    loaded = pf.load(str(path))
    outer = pf.jit(lambda x: loaded(x, x) * 2)
    np.testing.assert_allclose(outer(f32(3)), np.tanh(f32(3) * 2) * 2, rtol=1e-6)
    assert "profuse.tanh" in outer.ir("graph")
    assert loaded.state().counters["invocations"] == 1
    assert loaded.state().counters["cache_misses"] == 0


def test_debug_state():
    """R2.16: original graph, fallback plan if built, and as many pairs as misses."""
    f = pf.jit(scaled)
    with pytest.raises(pf.ArgumentError, match="no optimised plan"):
        f.debug_state()
    f(f32(2, 3), f32(3))
    state = f.debug_state()
    assert state.graph == f.ir("graph")
    assert state.fallback is None
    executor = add_executor()
    for x in (f32(2), f32(2, 2), f32(3), f32(2).astype(np.float64)):
        executor.run([x, x])
    executor.fallback_plan()
    state = executor.debug_state()
    assert len(state.plans) == executor.counters.cache_misses == 3
    assert [str(spec) for spec in state.plans] == ["f32[?], f32[?]", "f32[?, ?], f32[?, ?]", "f64[?], f64[?]"]
    assert state.fallback is executor.fallback_plan()


def test_last_executed_graph():
    """R2.4: it is that of the plan that ran, fallback plans included."""
    f = pf.jit(scaled)
    f(f32(2, 3), f32(3))
    graph = pf.last_executed_graph()
    assert graph is not None and "fusion_group" in graph.to_mlir()
    with pf.knobs.override(optimize=False):
        pf.jit(scaled)(f32(2, 3), f32(3))
    graph = pf.last_executed_graph()
    assert graph is not None and "fusion_group" not in graph.to_mlir()


def test_strict_fusion():
    """R1.46: what cannot be one group raises on this executor, too, and leaves no entry."""

    @pf.jit
    def two_groups(x):
        with pf.strict_fusion():
            return np.exp(np.tanh(x).reshape(3, -1)) + 1

    with pytest.raises(pf.StrictFusionError):
        two_groups(f32(2, 3))
    assert two_groups.state().counters["cache_misses"] == 0

    @pf.jit
    def one_group(x):
        with pf.strict_fusion():
            return np.exp(np.tanh(x)) + 1

    np.testing.assert_allclose(one_group(f32(5)), np.exp(np.tanh(f32(5))) + 1, rtol=1e-6)


def test_state_and_explain():
    """R2.16: what users ask for works on this executor as well."""
    f = pf.jit(scaled)
    f(f32(2, 3), f32(3))
    f(f32(4, 3), f32(1))
    state = f.state()
    assert state.tier == "optimized"
    assert state.remaining_depth == 0
    (made,) = state.specializations
    assert (made.behavior, made.hits, made.misses, made.kernels) == ("dynamic", 1, 1, ("fusion_0",))
    text = f.explain()
    assert "profiling mode was off: it has 1 plan" in text
    assert "2 runs, 1 cache hit, 1 miss" in text
    assert "for f32[?, ?], f32[?]:" in text
    assert "The latest miss, which ran one by one" in text
    for stage in ("optimized", "linalg", "llvm"):
        assert f.ir(stage)
    with pytest.raises(pf.ArgumentError, match="profiled"):
        f.ir("profiled")


def test_flush():
    """R2.16: plans go, and the next call compiles."""
    f = pf.jit(scaled)
    f(f32(2, 3), f32(3))
    f.flush()
    assert f.debug_state().plans == {}
    f(f32(2, 3), f32(3))
    assert f.state().counters["cache_misses"] == 2
