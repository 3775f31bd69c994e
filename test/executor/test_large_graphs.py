"""Graphs of thousands of ops compile in groups, and no error of the compiler reaches a call."""

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from profuse.dialect.errors import InternalError, StrictFusionError
from profuse.dialect.passes.cleanup.cse import Cse
from profuse.executor.compile.request import compiler_errors
from profuse.executor.settings.knobs import knobs
from profuse.executor.settings.strict import strict_fusion

X = np.random.default_rng(0).random((8, 16))


@pytest.fixture(autouse=True)
def rounds():
    """Each round of a loop is recorded, so that graphs are as large as loops are long."""
    with pf.knobs.override(source_loops=False):
        yield


def chain(count):
    def f(x):
        for _ in range(count // 2):
            x = x * 0.999 + 0.5
        return x

    return f


def run(f, *args, calls=3, profiling=True):
    """The jitted function after some calls, each compared with NumPy."""
    with knobs.override(profiling_mode=profiling):
        j = pf.jit(f, profiled_runs=1)
        for _ in range(calls):
            np.testing.assert_allclose(j(*args), f(*args), rtol=1e-9)
    return j


def counts(j):
    return j.state().counters


@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
def test_a_long_chain_is_cut_into_groups(profiling):
    """R1.48: bounded groups; what the bound keeps apart is counted with the reason."""
    ops = 600 if EVERY_CASE else 300
    j = run(chain(ops), X, profiling=profiling)
    found = counts(j)
    assert found["compiles"] == 1
    assert found["compile_failures"] == found["guard_misses"] == 0
    assert found["kernels_compiled"] == -(-ops // knobs.max_fusion_ops)
    assert f"kept apart: groups of more than 128 ops together ({ops // 128}x)" in j.state().reasons
    assert j.state().tier == "optimized"


def test_the_bound_is_a_knob():
    with knobs.override(max_fusion_ops=200):
        assert counts(run(chain(200), X))["kernels_compiled"] == 1
    with knobs.override(max_fusion_ops=50):
        assert counts(run(chain(200), X))["kernels_compiled"] == 4


def wide(x):
    level = [x + float(k) for k in range(200)]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [a + b for a, b in pairs] + level[len(level) // 2 * 2 :]
    return level[0]


def sums(x):
    total = 0.0
    for k in range(150):
        total = total + (x * float(k)).sum(axis=0)
    return total


def views(x):
    for _ in range(200):
        x = x.T[::-1] * 0.99
    return x


def size_arithmetic(x):
    n = x.shape[0]
    for _ in range(100):
        n = n + n - n // 2
    return x + n % 7


def writes(x):
    x = x.copy()
    for _ in range(200):
        x += 0.5
    return x


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [wide, sums, views, size_arithmetic, writes])
def test_large_graphs_compile(f):
    j = run(f, X)
    found = counts(j)
    assert (found["compiles"], found["compile_failures"], found["guard_misses"]) == (1, 0, 0)
    assert found["kernels_compiled"] >= 1


def test_a_number_is_needed_far_from_the_arguments():
    """The trace guard of a size after many ops is found without recursion, and holds."""

    def f(x):
        for _ in range(1200):
            x = x[: x.shape[0]] + 1.0
        return x * 2.0 if x.shape[0] > 4 else x

    j = pf.jit(f)
    with knobs.override(optimize=False):
        for x in (X, X[:3], X):
            np.testing.assert_allclose(j(x), f(x))
    assert counts(j)["traces"] == 2


# --- errors of the compiler ----------------------------------------------------------------------

FAULTS = [RecursionError("too deep"), MemoryError("no memory"), KeyError("x"), AssertionError()]


def name(fault):
    return type(fault).__name__


def broken(fault):
    def fail(*args, **kwargs):
        raise fault

    return fail


@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
@pytest.mark.parametrize("fault", FAULTS, ids=name)
@pytest.mark.parametrize(
    "where", ["profuse.executor.plans.link.build_plan", "profuse.dialect.mlir.decode.decode_module", "pass"]
)
def test_a_fault_pins_the_graph_to_tier_0(monkeypatch, where, fault, profiling):
    """Counted, explained, not tried again; values are NumPy's."""
    if where == "pass":
        monkeypatch.setattr(Cse, "run", broken(fault))
    else:
        monkeypatch.setattr(where, broken(fault))
    j = run(lambda x: np.tanh(x) + 1.0, X, profiling=profiling)
    found = counts(j)
    assert found["compiles"] == 0 < found["compile_failures"]
    assert found["evaluated_ops"] >= 6
    assert j.state().tier in ("simple", "no-opt")
    failed = [r for r in j.state().reasons if "not compiled" in r]
    assert len(failed) == 1
    assert name(fault) in failed[0] and "please report it" in failed[0]
    assert name(fault) in j.explain()


@pytest.mark.parametrize("fault", FAULTS, ids=name)
def test_a_fault_in_lowering_costs_one_group_its_kernel(monkeypatch, fault):
    """The graph is compiled, its group interpreted, with the reason."""
    monkeypatch.setattr("profuse.lowering.schedule.scheduling.choose_anchors", broken(fault))
    j = run(lambda x: np.tanh(x) + 1.0, X)
    found = counts(j)
    assert (found["compiles"], found["compile_failures"], found["kernels_compiled"]) == (1, 1, 0)
    (reason,) = [r for r in j.state().reasons if "is interpreted" in r]
    assert name(fault) in reason and "please report it" in reason


def test_a_fault_in_profiling_pins_the_graph(monkeypatch):
    monkeypatch.setattr("profuse.executor.tiers.profiling.instrument", broken(RecursionError("deep")))
    j = run(lambda x: x + 1.0, X)
    assert (counts(j)["compile_failures"], j.state().tier) == (1, "simple")


def test_strict_fusion_still_raises(monkeypatch):
    monkeypatch.setattr("profuse.dialect.mlir.decode.decode_module", broken(KeyError("x")))

    def f(x):
        return x + 1.0

    j = pf.jit(f)
    with strict_fusion():
        j(X)
        with pytest.raises(StrictFusionError, match="KeyError"):
            j(X)


def test_only_errors_are_caught():
    with pytest.raises(KeyboardInterrupt), compiler_errors("testing"):
        raise KeyboardInterrupt
    said = "testing failed: ZeroDivisionError: no"
    with pytest.raises(InternalError, match=said) as caught, compiler_errors("testing"):
        raise ZeroDivisionError("no")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
