"""Background compiles that lose workers, find code on disk, or meet an odd clock."""

from __future__ import annotations

import time

import numpy as np
import profuse as pf
import pytest
from cached_graphs import output_of, start

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

pytestmark = pytest.mark.usefixtures("pool")


def fn(x):
    return np.tanh(x) + 1


def right(f, x=X):
    np.testing.assert_allclose(f(x), fn(x), rtol=1e-6)


@pytest.fixture
def two_groups():
    """A function of which two ops each make a group."""
    with pf.knobs.override(max_fusion_ops=2):
        yield lambda x, w: np.tanh(np.tanh(x) + 1) * w


def test_a_group_that_costs_a_worker_is_pinned_and_the_others_compile(pool, two_groups):
    f = pf.jit(two_groups, name="two")
    lost = pool.counts.lost
    seen = len(pf.events())
    for _ in range(3):
        np.testing.assert_allclose(f(X, X), two_groups(X, X), rtol=1e-6)
        assert f.wait(30)
    state = f.state()
    assert state.tier == "optimized"
    assert pool.counts.lost == lost + 1
    (event,) = [e for e in pf.events()[seen:] if e.kind == "worker-lost"]
    assert event.details["group"] == "fusion_1"
    assert (state.counters["kernels_compiled"], state.counters["compile_failures"]) == (1, 1)
    assert state.counters["kernel_launches"] == 1
    (reason,) = [r for r in state.reasons if "is interpreted" in r]
    assert reason.startswith("group @fusion_1 is interpreted: the compile worker was killed")
    assert "replay with: profuse-opt -p " in reason


def test_every_group_may_cost_a_worker(pool, two_groups):
    f = pf.jit(two_groups, name="all")
    lost = pool.counts.lost
    for _ in range(3):
        np.testing.assert_allclose(f(X, X), two_groups(X, X), rtol=1e-6)
        assert f.wait(30)
    counters = f.state().counters
    assert (pool.counts.lost, counters["compile_failures"]) == (lost + 2, 2)
    assert (counters["compiles"], counters["kernels_compiled"]) == (1, 0)


def test_a_hit_on_disk_needs_neither_worker_nor_mlir(tmp_path):
    """One process compiles in a worker and stores, the next does not even ask the pool."""
    program = (
        "import sys, numpy as np, profuse as pf\n"
        "from profuse.executor.compile.worker import shared_pool\n"
        "f = pf.jit(lambda x: np.tanh(x) + 1)\n"
        "f.warmup(np.ones((3, 4), np.float32))\n"
        "assert f.state().tier == 'optimized'\n"
        "assert 'mlir' not in sys.modules\n"
        "c, p = pf.counters(), shared_pool().counts\n"
        "print(c['disk_hits'], c['disk_misses'], p.started, p.from_disk)\n"
    )
    said = [output_of(start(program, tmp_path, environment={"PROFUSE_BACKGROUND": "on"})) for _ in range(2)]
    assert said == ["0 1 1 0\n", "1 0 0 0\n"]


def test_a_clock_that_goes_backwards_changes_nothing(monkeypatch, folder):
    """Neither waits, nor limits, nor what is stored."""
    now = [2e9]

    def backwards():
        now[0] -= 1000.0
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    for hits in (0, 1):
        f = pf.jit(fn)
        f.warmup(X)
        right(f)
        state = f.state()
        assert (state.tier, state.counters["disk_hits"]) == ("optimized", hits)
    with pf.knobs.override(release_profiling_graph=True, release_delay_seconds=0):
        g = pf.jit(fn)
        g.warmup(X)
        right(g), right(g)
        assert g.state().tier == "optimized"
