"""Graphs of more ops than a group may have are cut into groups, and all of them fuse (R1.48)."""

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.passes.speculate import form_fusions
from profuse.executor.settings.knobs import knobs

X = np.random.default_rng(0).standard_normal((24, 8))


@pytest.fixture(autouse=True)
def rounds():
    """Each round of a loop is recorded, so that graphs are as large as loops are long."""
    with pf.knobs.override(source_loops=False):
        yield


def chain(x):
    for k in range(49):
        x = x + 1 if k % 2 else x * 1.01
    return x


def fan(x):
    return tuple((x + k) * 0.5 for k in range(25))


def reductions(x):
    return sum((x * (1.0 + k)).sum(axis=0) for k in range(16))


def windows(x):
    """Into an array of literal sizes: other groups know them, too."""
    out = np.zeros((12, 8))
    for k in range(12):
        out[k] = x[k : k + 3].sum(axis=0) * 2
    return out


def windows_of_its_size(x):
    """The sizes are computed, and each group needs the numbers."""
    rows = x.shape[0] - 3
    out = np.zeros((rows, x.shape[1]))
    for k in range(rows):
        out[k] = x[k : k + 3].sum(axis=0) * 2
    return out


def windows_of_all(x):
    rows = x.shape[0] - 3 + 1
    out = np.empty(rows, x.dtype)
    for k in range(rows):
        out[k] = x[k : k + 3].sum() * 2
    return out


def check(fn, strategy, limit, calls=4):
    """A jitted function of which everything fused into about as many groups as its ops need."""
    with knobs.override(max_fusion_ops=limit):
        f = pf.jit(fn, strategy=[(strategy, 2)])
        f(X)
        ops = f.state().counters["evaluated_ops"]
        for k in range(calls):
            for got, want in zip(f(X + k), fn(X + k), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-9)
    counters = f.state().counters
    kernels = counters["kernels_compiled"]
    assert -(-ops // limit) - 1 <= kernels <= -(-ops // limit) * 2
    assert kernels > 1
    assert counters["compiles"] == 1
    assert counters["kernel_launches"] == calls * kernels
    assert counters["evaluated_ops"] == ops, f.state().reasons
    assert counters["guard_misses"] == 0
    reasons = f.state().reasons
    assert any(f"groups of more than {limit} ops together" in reason for reason in reasons)
    assert not [reason for reason in reasons if reason.startswith(("refused", "dissolved"))]
    assert "profile calls" not in f.explain()
    return f


@pytest.mark.sampled(4)
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("fn", [chain, fan, reductions, windows])
def test_r1_48_graphs_beyond_the_bound_fuse(fn, strategy):
    f = check(fn, strategy, 16)
    assert f.state().emitted


@pytest.mark.parametrize("fn", [windows_of_its_size, windows_of_all])
def test_r1_48_numbers_are_in_the_group_that_computes_with_them(fn):
    check(fn, "static", 20)


def test_r1_48_one_op_more_than_the_bound():
    """129 ops and computed sizes: types of no group are lost, and the plan is kernels alone."""
    assert check(windows_of_its_size, "static", 100).state().emitted


def test_r1_40_a_dynamic_group_serves_other_sizes_than_those_made_elsewhere():
    """Literal sizes of arrays that the graph makes are no sizes of its arguments."""
    with knobs.override(max_fusion_ops=16):
        f = pf.jit(windows, strategy=[("dynamic", 1)])
        for rows in (14, 14, 20, 40):
            x = np.random.default_rng(rows).standard_normal((rows, 8))
            np.testing.assert_allclose(f(x), windows(x), rtol=1e-9)
    counters = f.state().counters
    assert (counters["compiles"], counters["guard_misses"]) == (1, 0)
    assert counters["kernel_launches"] == 3 * counters["kernels_compiled"]


def test_an_op_without_its_numbers_stays_outside_alone(monkeypatch):
    """Ops that share a number that no group may have are refused one by one, not their groups."""
    monkeypatch.setattr(form_fusions, "MAX_COPIES", 0)

    def fn(x):
        n = x.shape[0] // 2
        return np.tanh(x[:n] * 2) + np.exp(x[n:] + 1)

    f = pf.jit(fn, strategy=[("static", 2)])
    for _ in range(3):
        np.testing.assert_allclose(f(X), fn(X), rtol=1e-12)
    counters = f.state().counters
    assert counters["kernels_compiled"] >= 1
    assert counters["kernel_launches"] == 2 * counters["kernels_compiled"]
    assert "numbers that are used too often to be copied" in f.explain()
