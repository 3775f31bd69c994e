"""Strict fusion (R1.46): one guarded group and nothing else, or an error."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.reasons import Kind, Reason
from profuse.executor.settings.strict import check_strict, is_strict
from profuse.executor.tiers import executor_base

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def fused(x, y):
    return np.exp(x) * y + 1


def unfused(x, z):
    """Inverse functions of complex numbers are not lowered."""
    return np.exp(x) + 1, np.arcsin(z)


def fused_twice(x):
    return np.exp(np.arcsin(np.tanh(x) * 2 + 1j).real) + 1


def strictly(f, *args):
    f(*args)
    with pf.strict_fusion():
        return f(*args)


def test_a_function_that_fuses_as_a_whole_passes():
    """R1.46"""
    f = pf.jit(fused)
    np.testing.assert_allclose(strictly(f, X, X), fused(X, X), rtol=1e-6)
    assert f.state().tier == "optimized"


def test_an_unfused_op_raises():
    """R1.46: the error names the op and the user's line."""
    f = pf.jit(unfused)
    with pytest.raises(pf.StrictFusionError, match=r"profuse\.asin \(.*test_strict\.py:25\)"):
        strictly(f, X, X + 1j)


def test_two_groups_raise():
    """R1.46"""
    f = pf.jit(fused_twice)
    with pytest.raises(pf.StrictFusionError, match="has 2 guarded groups, strict fusion asks for"):
        strictly(f, X)


GROUP = """
  %{n}c:2 = "profuse.type_check"(%{x}) {{types = [tensor<4xf32>]}}
      : (!profuse.tensor) -> (tensor<4xf32>, i1)
  %{n} = scf.if %{n}c#1 -> !profuse.tensor {{
    %g = "profuse.fusion_group"(%{n}c#0) {{callee = @body}} : (tensor<4xf32>) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  }} else {{
    %g = "profuse.call_fallback"(%{x}) {{callee = @plain}} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  }}
"""
FUNCTIONS = """
func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @plain(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}
"""


def graph(body: str, out: str):
    text = (
        f"func.func @main(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {{{body}\n"
        f"  return %{out} : !profuse.tensor\n}}{FUNCTIONS}"
    )
    return decode_module(parse_module(text))


TANH = '%{n} = "profuse.tanh"(%{x}) : (!profuse.tensor) -> !profuse.tensor\n'


def test_what_computes_the_operands_of_the_guard_is_allowed():
    """R1.46: an op before the guard is used by it; the same op after it is not."""
    before = TANH.format(n="t", x="x") + GROUP.format(n="a", x="t")
    check_strict(graph(before, "a"), {}, "f")
    after = GROUP.format(n="a", x="x") + TANH.format(n="t", x="a")
    with pytest.raises(pf.StrictFusionError, match=r"profuse\.tanh outside of the group"):
        check_strict(graph(after, "t"), {}, "f")


def test_two_groups_side_by_side_raise_though_nothing_is_unfused():
    """R1.46: a double fusion; the second group computes no operand of the first one's guard."""
    both = GROUP.format(n="a", x="x") + GROUP.format(n="b", x="y")
    with pytest.raises(pf.StrictFusionError, match="2 guarded groups"):
        check_strict(graph(both, "b"), {}, "f")
    check_strict(graph(GROUP.format(n="a", x="x"), "a"), {}, "f")


UNGUARDED = """
  %{n} = "profuse.fusion_group"(%{x}) {{callee = @body}} : (!profuse.tensor) -> !profuse.tensor
"""


def test_a_group_without_a_guard_beside_another_raises():
    """R1.46: it is neither the guarded `if` nor computes its guard; alone there is none to miss."""
    both = GROUP.format(n="a", x="x") + UNGUARDED.format(n="b", x="a")
    with pytest.raises(pf.StrictFusionError, match="without a guard beside the guarded one"):
        check_strict(graph(both, "b"), {}, "f")
    two = UNGUARDED.format(n="a", x="x") + UNGUARDED.format(n="b", x="a")
    with pytest.raises(pf.StrictFusionError, match="without a guard beside another"):
        check_strict(graph(two, "b"), {}, "f")
    check_strict(graph(UNGUARDED.format(n="a", x="x"), "a"), {}, "f")


def test_a_group_without_a_kernel_raises():
    """R1.46: an interpreted group is not fused."""
    module = graph(GROUP.format(n="a", x="x"), "a")
    with pytest.raises(pf.StrictFusionError, match="@body has no kernel: too odd"):
        check_strict(module, {"body": Reason(Kind.NOT_LOWERED, detail="too odd")}, "f")


def test_a_failing_pipeline_raises(monkeypatch):
    """R1.46: where otherwise the graph would run op by op with a reason."""

    def fail(request):
        raise pf.PipelineError("pass dce failed")

    monkeypatch.setattr("profuse.executor.compile.compiler.compile_graph", fail)
    f = pf.jit(fused)
    with pytest.raises(pf.StrictFusionError, match="cannot be compiled: pass dce failed"):
        strictly(f, X, X)


def test_outside_the_scope_the_same_function_is_optimised_as_usual():
    """R1.46: the failed call keeps nothing; neither is there a check once there is a plan."""
    f = pf.jit(unfused)
    for _ in range(2):
        with pytest.raises(pf.StrictFusionError):
            strictly(f, X, X + 1j) if f.state().counters["profiled_runs"] == 0 else again(f)
    assert f.state().counters["compiles"] == 0
    first, second = f(X, X + 1j)
    np.testing.assert_allclose(first, np.exp(X) + 1, rtol=1e-6)
    np.testing.assert_allclose(second, np.arcsin(X + 1j), rtol=1e-6)
    assert f.state().counters["compiles"] == 1
    assert f.state().counters["profiled_runs"] == 1
    again(f)


def again(f):
    with pf.strict_fusion():
        f(X, X + 1j)


def test_fallbacks_specialised_in_the_scope_are_checked_as_well(monkeypatch):
    """R1.46"""
    f = pf.jit(fused)
    f(X, X), f(X, X), f(X[:2], X[:2])
    names = []
    monkeypatch.setattr(executor_base, "check_strict", lambda module, failures, name: names.append(name))
    with pf.strict_fusion():
        f(X[:2], X[:2])
    assert names == ["fused/fallback_0"]


def test_the_scope_inside_a_traced_function_holds_for_it():
    """R1.46: at every call, though the body runs only while it is traced."""

    @pf.jit
    def f(x, z):
        with pf.strict_fusion():
            return unfused(x, z)

    @pf.jit
    def g(x, y):
        with pf.strict_fusion():
            return fused(x, y)

    f(X, X + 1j)
    for _ in range(2):
        with pytest.raises(pf.StrictFusionError, match="outside of the group"):
            f(X, X + 1j)
    for _ in range(2):
        np.testing.assert_allclose(g(X, X), fused(X, X), rtol=1e-6)
    assert g.state().tier == "optimized"


def test_scopes_nest_and_belong_to_their_thread():
    """R1.46: an exception ends them as well."""
    seen = []
    with pf.strict_fusion():
        with pf.strict_fusion():
            assert is_strict()
        assert is_strict()
        thread = threading.Thread(target=lambda: seen.append(is_strict()))
        thread.start()
        thread.join()
    assert seen == [False]
    with pytest.raises(KeyError), pf.strict_fusion():
        raise KeyError
    assert not is_strict()


def test_a_function_that_no_graph_can_hold_raises_by_default():
    """R1.46: with ``unsupported="python"`` as well, at each call in the scope, at none outside."""

    def reads(x):
        with open(__file__) as file:
            return np.tanh(x) * len(file.readline())

    f = pf.jit(reads, unsupported="python")
    for _ in range(3):
        with pf.strict_fusion(), pytest.raises(pf.StrictFusionError, match="cannot be compiled"):
            f(np.ones(3))
    assert f.state().counters["python_calls"] == 0
    for _ in range(3):
        f(np.ones(3))
    with pf.strict_fusion(), pytest.raises(pf.StrictFusionError):
        f(np.ones(3))
    assert f.state().counters["python_calls"] == 3


@pytest.mark.parametrize("first", [True, False])
def test_the_scope_inside_a_function_that_no_graph_can_hold(first):
    """R1.46: Python runs the body, which raises where it asks for strict fusion, at each call."""

    def reads(x):
        if first:
            with pf.strict_fusion(), open(__file__) as file:
                return np.tanh(x) * len(file.readline())
        with open(__file__) as file:
            y = np.tanh(x) * len(file.readline())
        with pf.strict_fusion():
            return y * 2

    f = pf.jit(reads, unsupported="python")
    for _ in range(4):
        with pytest.raises(pf.StrictFusionError, match="reads runs in Python"):
            f(np.ones(3))
    assert not is_strict()
    with pf.disable_jit():
        f(np.ones(3))


def test_the_scope_inside_a_function_whose_code_is_not_there_yet():
    """R1.46: Python runs small calls meanwhile, which is no refusal."""

    @pf.jit
    def f(x):
        with pf.strict_fusion():
            return fused(x, x)

    for _ in range(4):
        np.testing.assert_allclose(f(X), fused(X, X), rtol=1e-6)
    f.wait()
    assert f.state().tier == "optimized"
