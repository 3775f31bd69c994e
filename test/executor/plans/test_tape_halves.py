"""What tools show of the halves of differentiable subgraphs, and what reaches them."""

from __future__ import annotations

import os
import threading
import time
from itertools import pairwise

import numpy as np
import profuse as pf
import pytest
from cached_graphs import caching_in
from internals import noted_executor_of, set_clock
from profuse.dialect.errors import GradientError
from profuse.executor.settings.knobs import knobs
from profuse.tools.report import collect
from small_executors import Clock

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 3))
NAMES = ["loss/gradients", "loss/gradients/diff_0_forward", "loss/gradients/diff_0_reverse"]


def loss(x, y):
    return (np.tanh(x + y) * x).sum()


def leaf(data):
    return pf.array(data, requires_grad=True)


def step(f, x=X, y=Y):
    """One training step, whose gradients must be right."""
    p, q = leaf(x), leaf(y)
    f(p, q).backward()
    for got, want in zip((p.grad, q.grad), joint(x, y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def joint(x, y):
    t = np.tanh(x + y)
    return t + x * (1 - t * t), x * (1 - t * t)


def trained(steps=5, **options):
    f = pf.jit(loss, **options)
    for _ in range(steps):
        step(f)
    return f


def parts(f):
    """The executors of the graph and of the two halves of its subgraph, by name."""
    on_tape = noted_executor_of(f)
    found = {e.options.name: e for e in on_tape.chain() if "fallback" not in e.options.name}
    assert list(found) == NAMES
    return list(found.values())


def test_state_and_explanation_name_both_halves():
    f = trained()
    state = f.state()
    assert [s.executor for s in state.specializations] == NAMES
    # Of five steps the graph was profiled in one, and the halves in another.
    assert [(s.hits, s.misses) for s in state.specializations] == [(4, 0), (3, 0), (3, 0)]
    assert [s.behavior for s in state.specializations] == ["gradients", "static", "static"]
    assert (state.tier, state.emitted) == ("optimized", True)
    counters = {k: state.counters[k] for k in ("calls", "profiled_runs", "compiles", "traces")}
    assert counters == {"calls": 5, "profiled_runs": 3, "compiles": 3, "traces": 1}
    text = f.explain()
    for words in (
        "differentiates 1 subgraph, each as one node of the tape",
        f"Half {NAMES[1]}",
        f"Half {NAMES[2]}",
        "keeps 0 bytes for its gradient",
        "3 hits, 0 misses",
    ):
        assert words in text


def test_the_debug_state_of_reverse_halves():
    """R2.16, R2.17: the optimised plan hands out the executors, each with a state of its own."""
    f = trained()
    (plan,) = f.debug_state().plans.values()
    assert "profuse.diff_graph" in f.debug_state().graph
    (reverse,) = [g.reverse for g in plan.graphs]
    found = reverse.debug_state()
    assert "profuse.fusion_group" in found.graph and "profuse.tanh" in found.graph
    (inner,) = found.plans.values()
    assert inner.kind == "optimized" and inner.graphs == ()


def test_the_debug_state_of_reverse_halves_that_are_keyed():
    """R2.16, R2.17: pairs of spec and plan are as many as misses."""
    f = pf.jit(lambda x, y: (np.tanh(np.exp(x) * y) * np.sin(x) + np.cos(y)).sum())
    with knobs.override(profiling_mode=False):
        for rank in (2, 2, 1, 1):
            data = X if rank == 2 else X[0]
            f(leaf(data), leaf(data)).backward()
    on_tape = [n for e in f._executors() for n in e.noted.values()]
    reverse = [r for e in on_tape for s in e.compiled() for r in (g.reverse for g in s.plan.graphs)]
    assert len(reverse) == 2
    for executor in reverse:
        state = executor.debug_state()
        assert len(state.plans) == executor.counters.cache_misses == 1
        assert executor.counters.cache_hits == 1


def test_halves_of_each_spec_stay():
    """R2.16, R2.19: counters never fall while specs alternate."""
    f = pf.jit(lambda x, y: (np.tanh(np.exp(x) * y) * np.sin(x) + np.cos(y)).sum())
    seen = []
    with knobs.override(profiling_mode=False):
        for is_frozen in (False, True) * 3:
            f(leaf(X), pf.array(Y) if is_frozen else leaf(Y)).backward()
            seen.append(dict(f.state().counters))
    for before, after in pairwise(seen):
        assert all(after[name] >= count for name, count in before.items())
    on_tape = noted_executor_of(f)
    assert len(on_tape.cache) == 2
    halves = [e for e in on_tape.chain() if e is not on_tape]
    # The forward half, which is the same, serves both.
    assert [e.counters.invocations for e in halves] == [6, 3, 3]
    assert [e.options.name.rpartition("_")[2] for e in halves] == ["forward", "reverse", "reverse"]
    assert seen[-1]["compiles"] == seen[1]["compiles"]


def test_dumps_and_passes_name_both_halves(tmp_path):
    """R1.50: graphs before and after, and every pass between, for each of three compiles."""
    with knobs.override(dump=str(tmp_path)):
        trained(3)
    files = sorted(os.listdir(tmp_path))
    for name in NAMES:
        own = [n for n in files if n.endswith(f"-{name.replace('/', '-')}.mlir")]
        titles = [n.split("-", 2)[2].removesuffix(f"-{name.replace('/', '-')}.mlir") for n in own]
        assert titles[0] == "profiled" and titles[-1] == "optimised"
        passes = [title for title in titles if title.startswith("after-")]
        is_half = name != NAMES[0]
        assert any("after-form-fusions" in p for p in passes) == is_half
        assert any("after-differentiate-diff-graphs" in p for p in passes) == (not is_half)


def test_the_report_of_a_run_has_all_compiles(tmp_path, monkeypatch):
    f = trained()
    # A report shows so many compiles; those of functions of other tests would take their place.
    monkeypatch.setattr(collect.live_functions, "functions", lambda: [f])
    (found,) = collect.collect(None, "a run").functions
    assert [c.executor for c in found.compiles] == NAMES
    assert [len(c.kernels) for c in found.compiles] == [0, 1, 1]
    page = pf.report(tmp_path / "page.html").read_text()
    for name in NAMES:
        assert name in page
    assert f.state().counters["calls"] == 5


def test_release_reaches_both_halves():
    """R1.13, A2: each is released at its own next request; results and counts stay."""
    f = trained()
    clock = Clock(1000)
    for executor in parts(f):
        set_clock(executor, clock, 1000)
    with knobs.override(release_profiling_graph=True, release_delay_seconds=0):
        assert not f.state().emitted, "emitted code asks for no plan"
        step(f)
        assert [e.released for e in parts(f)] == [False] * 3
        clock.now += 1
        step(f)
        assert [e.released for e in parts(f)] == [True] * 3
        assert all(e.record is None for e in parts(f))
        step(f)
        assert f.state().emitted
        before = f.state().counters
        step(f)
        assert f.state().counters["kernel_launches"] == before["kernel_launches"] + 2
        assert f.state().counters["compiles"] == 3
    f.flush()
    for _ in range(4):
        step(f)
    assert f.state().counters["compiles"] == 6, "what was released can be profiled again"


def test_a_flush_between_forward_and_backward():
    """R1.14: the node keeps its halves; the counts of both stay with the function."""
    f = trained()
    p, q = leaf(X), leaf(Y)
    value = f(p, q)
    before = f.state().counters["kernel_launches"]
    f.flush()
    assert noted_executor_of(f) is None
    value.backward()
    np.testing.assert_allclose(p.grad, joint(X, Y)[0], rtol=1e-10)
    assert f.state().counters["kernel_launches"] == before + 1
    step(f)
    assert noted_executor_of(f).tier == "profiling"


@pytest.mark.parametrize("every", [1, 2])
def test_stress_fails_the_guards_of_all_three(every):
    """Results stay, forced misses are counted apart, and such plans are not emitted."""
    with knobs.override(stress=f"guards:k={every},seed=1"):
        f = trained(12)
        state = f.state()
        assert not state.emitted
        forced = {s.executor: s.forced for s in state.specializations if s.executor in NAMES}
        assert forced["loss/gradients"] > 0
        if every == 2:
            assert all(forced[name] > 0 for name in NAMES)
        assert state.counters["forced_misses"] == sum(s.forced for s in state.specializations)
        assert state.counters["guard_misses"] == state.counters["forced_misses"]


def test_a_saved_function_has_the_code_of_both_halves(tmp_path):
    f = trained()
    f.save(tmp_path / "loss.pf")
    g = pf.load(tmp_path / "loss.pf")
    step(g)
    counters = g.state().counters
    assert counters["profiled_runs"] == 0 and counters["profiles_restored"] == 3
    assert counters["kernel_launches"] == 2
    assert [s.executor for s in g.state().specializations] == NAMES
    assert all(e.result.found_in.endswith("loss.pf") for e in parts(g))
    step(g)
    assert g.state().emitted


def test_the_disk_cache_has_the_code_of_both_halves(tmp_path):
    with caching_in(tmp_path):
        assert trained(3).state().counters["disk_misses"] == 3
        g = trained(1)
        counters = g.state().counters
        wanted = {"disk_hits": 3, "disk_misses": 0, "profiles_restored": 3, "profiled_runs": 0}
        assert {name: counters[name] for name in wanted} == wanted
        assert counters["kernel_launches"] == 2, "the first call is fused"


# --- threads ------------------------------------------------------------------------------------


def test_several_threads_train_with_one_function():
    """Each has a tape of its own; all counts add up."""
    f, errors, steps, threads = trained(), [], 60, 6
    before = f.state().counters

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(steps):
                step(f, rng.standard_normal((6, 3)), rng.standard_normal((6, 3)))
        except BaseException as error:
            errors.append(error)

    run_all([threading.Thread(target=work, args=(k,)) for k in range(threads)])
    assert not errors
    after = f.state().counters
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    total = steps * threads
    assert grown == {"calls": total, "guard_hits": 3 * total, "kernel_launches": 2 * total}


@pytest.mark.parametrize("background", [False, True])
def test_one_thread_flushes_while_others_train(background):
    f, errors, done = trained(background=background), [], threading.Event()

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            while not done.is_set():
                rows = 6 if rng.random() < 0.8 else 4
                step(f, rng.standard_normal((rows, 3)), rng.standard_normal((rows, 3)))
        except BaseException as error:
            errors.append(error)

    def flush():
        for _ in range(12):
            time.sleep(0.05)
            f.flush()
        done.set()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    run_all([*threads, threading.Thread(target=flush)])
    assert not errors
    f.flush()
    for _ in range(5):
        step(f)
        f.wait()
    assert [e.tier for e in parts(f)] == ["optimized"] * 3


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


# --- errors -------------------------------------------------------------------------------------


def test_errors_in_backward_leave_everything_usable():
    """A hook's error, a freed node, a gradient that does not fit: counts go on as they were."""
    f = trained()
    p, q = leaf(X), leaf(Y)

    def fails(gradient):
        raise ZeroDivisionError("a hook of the user's")

    handle = p.register_hook(fails)
    for _ in range(3):
        value = f(p, q)
        with pytest.raises(ZeroDivisionError):
            value.backward()
    handle.remove()
    value = f(p, q)
    value.backward()
    with pytest.raises(GradientError, match="freed by an earlier backward"):
        value.backward()
    with pytest.raises(pf.ArgumentError, match="shape"):
        f(p, q).backward(np.ones(3))
    before = f.state().counters
    step(f)
    after = f.state().counters
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert grown == {"calls": 1, "guard_hits": 3, "kernel_launches": 2}
    assert after["compiles"] == 3 and after["guard_misses"] == after["fallback_calls"] == 0


# --- what changes -------------------------------------------------------------------------------

COUNTED = ("compiles", "guard_misses", "fallback_calls", "profiled_runs", "kernel_launches")


def counts(f):
    counters = f.state().counters
    return tuple(counters[name] for name in COUNTED)


def test_counts_while_sizes_alone_change():
    """Each half misses once per call; its fallback profiles, compiles, and is met in turn."""
    f, found = trained(4), []
    assert counts(f) == (3, 0, 0, 3, 4)
    for rows in (4, 4, 4, 6, 4):
        step(f, X[:rows], Y[:rows])
        found.append(counts(f))
    assert found == [
        (3, 2, 2, 5, 4),  # both halves miss, and profile the new sizes
        (5, 4, 4, 5, 6),  # both compile
        (5, 6, 6, 5, 8),
        (5, 6, 6, 5, 10),  # the first sizes hit
        (5, 8, 8, 5, 12),
    ]
    assert f.state().emitted


def test_counts_while_requirements_alone_change():
    """Other requirements have a plan of their own; the forward half, which is the same, serves."""
    f, found = trained(4), []

    def half(p, q):
        f(p, q).backward()
        found.append(counts(f))

    for _ in range(4):
        half(leaf(X), Y)
    half(leaf(X), leaf(Y))
    assert found == [
        (3, 0, 0, 4, 4),  # the graph profiles
        (4, 0, 0, 5, 5),  # it compiles, and its reverse half profiles
        (5, 0, 0, 5, 7),  # which compiles
        (5, 0, 0, 5, 9),
        (5, 0, 0, 5, 11),
    ]
    assert f.state().emitted


def test_counts_while_definedness_alone_changes():
    """R1.43: the reverse half alone misses, and its fallback specialises for what arrives."""
    f, found = pf.jit(lambda x, y: (np.exp(x * y).sum(), (x * y * y).sum())), []

    def half(*chosen):
        p, q = leaf(X), leaf(Y)
        results = f(p, q)
        pf.gradients([results[k] for k in chosen], [p, q])
        found.append(counts(f))

    for _ in range(4):
        half(0, 1)
    assert found.pop() == (3, 0, 0, 3, 4)
    found.clear()
    for _ in range(4):
        half(0)
    half(0, 1)
    misses = [c[1] for c in found]
    assert misses == [0] * 5, "a test of definedness is no guard"
    assert [c[2] for c in found] == [1, 2, 3, 4, 4]
    assert [c[0] for c in found] == [3, 4, 4, 4, 4]
    assert [c[4] for c in found] == [5, 7, 9, 11, 13]
