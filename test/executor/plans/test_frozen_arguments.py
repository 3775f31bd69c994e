"""Jitted functions whose parameters are frozen and thawed: a plan for each combination."""

from __future__ import annotations

import gc
import itertools
import time
import weakref

import numpy as np
import profuse as pf
import pytest
from cached_graphs import caching_in
from every_case import EVERY_CASE
from internals import executor_of, last_executor, reverse_hits
from profuse.dialect.errors import LoweringError
from profuse.executor.settings.knobs import knobs
from profuse.executor.tiers import tape_executors

RNG = np.random.default_rng(5)
X = RNG.standard_normal((5, 4))
LAYERS = [RNG.standard_normal((4, 4)) / 2 for _ in range(4 if EVERY_CASE else 3)]
COUNT = len(LAYERS)
COMBINATIONS = [m for m in itertools.product((False, True), repeat=COUNT) if any(m)]


def network(x, *layers):
    for w in layers:
        x = np.tanh(x @ w) + x
    return (x * x).mean()


def step(f, thawed, x=X):
    """A training step of a function; the gradients must be those of the eager tape."""
    found, want = [], []
    for function, gradients in ((f, found), (network, want)):
        params = [pf.array(w, requires_grad=on) for w, on in zip(LAYERS, thawed, strict=True)]
        value = function(x, *params)
        value.backward()
        gradients += [float(value), *(p.grad for p in params)]
    for got, wanted in zip(found, want, strict=True):
        assert (got is None) == (wanted is None)
        if got is not None:
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-13)


def counts(f, *names):
    counters = f.state().counters
    return tuple(counters[name] for name in names)


def halves(f):
    """The names of the halves of a function, each executor once."""
    names = [e.options.name.rpartition("/")[2] for e in executor_of(f).chain()]
    return sorted(name for name in names if name.startswith("diff") and "fallback" not in name)


def test_each_combination_runs_as_native_code_from_its_third_step_on():
    f = pf.jit(network)
    for thawed in COMBINATIONS:
        for _ in range(2):
            step(f, thawed)
        before = counts(f, "compiles", "evaluated_ops")
        step(f, thawed)  # its halves compile, as far as no other combination has them
        assert counts(f, "compiles")[0] - before[0] <= 2
        assert counts(f, "evaluated_ops")[0] == before[1]
    before = counts(f, "compiles", "profiled_runs", "evaluated_ops")
    launches = counts(f, "kernel_launches")[0]
    for thawed in COMBINATIONS * 2:
        step(f, thawed)
    assert counts(f, "compiles", "profiled_runs", "evaluated_ops") == before
    assert counts(f, "kernel_launches")[0] == launches + 4 * len(COMBINATIONS)
    assert counts(f, "guard_misses", "fallback_calls", "python_calls", "traces") == (0, 0, 0, 1)


def test_equal_halves_are_profiled_and_compiled_once():
    """The forward half is the same for all that begin at the same layer, reverse halves are not."""
    f = pf.jit(network)
    for thawed in COMBINATIONS:
        for _ in range(3):
            step(f, thawed)
    every = len(COMBINATIONS)
    assert halves(f).count("diff_0_reverse") == every == 2**COUNT - 1
    assert halves(f).count("diff_0_forward") == COUNT
    assert counts(f, "compiles", "profiled_runs") == (every + every + COUNT, every + every + COUNT)
    sizes = X[:3]
    for _ in range(2):  # other sizes are the business of the halves
        step(f, COMBINATIONS[-1], sizes)
    before = counts(f, "compiles")[0]
    step(f, COMBINATIONS[-2], sizes)  # the forward half knows them already
    step(f, COMBINATIONS[-2], sizes)
    assert counts(f, "compiles")[0] == before + 1


def test_combinations_in_turn_run_in_emitted_code():
    f = pf.jit(network)
    turns = COMBINATIONS[:3]
    for _ in range(4):
        for thawed in turns:
            step(f, thawed)
    assert f.state().emitted
    hits, before = reverse_hits(f), counts(f, "calls", "guard_hits")
    for thawed in turns:
        step(f, thawed)
        assert f._router.emission.current_native() is last_executor(f) is not None
        assert last_executor(f).options.noted == f"0{''.join(str(int(on)) for on in thawed)}"
    assert reverse_hits(f) == hits + 3
    assert counts(f, "calls")[0] == before[0] + 3
    assert counts(f, "guard_misses") == (0,)


def test_a_call_without_gradients_keeps_the_plans_of_the_others():
    f = pf.jit(network)
    for _ in range(4):
        for thawed in COMBINATIONS[:2]:
            step(f, thawed)
    before = counts(f, "compiles")[0]
    with pf.no_grad():
        value = f(X, *(pf.array(w, requires_grad=True) for w in LAYERS))
    assert not value.requires_grad
    assert executor_of(f).noted.keys() == {"0" * COUNT + "1", "0" * (COUNT - 1) + "10"}
    assert counts(f, "compiles")[0] == before and executor_of(f).tier == "profiling"


def test_a_stored_profile_serves_its_combination_alone(tmp_path):
    """A profile says what requires gradients: that of another combination would miss for ever."""
    with caching_in(tmp_path):
        for first in (True, False):
            f = pf.jit(network)
            for thawed in COMBINATIONS[:3]:
                for _ in range(3):
                    step(f, thawed)
            misses, hits = counts(f, "disk_misses", "disk_hits")
            assert counts(f, "guard_misses", "fallback_calls") == (0, 0)
            assert (misses > 0) == first and (hits > 0) != first
            assert counts(f, "profiled_runs")[0] == (8 if first else 0)


def test_of_many_combinations_the_latest_stay(monkeypatch):
    monkeypatch.setattr(tape_executors, "MOST_PATTERNS", 2)
    f, seen, start = pf.jit(network), [], time.time()
    kept = [pf.array(w, requires_grad=True) for w in LAYERS]
    for _ in range(3):
        step(f, (True,) * COUNT)
    value = f(X, *kept)  # a node of plans that are dropped before it runs backwards
    for thawed in (*COMBINATIONS[:4], COMBINATIONS[-2]):
        for _ in range(3):
            step(f, thawed)
            seen.append(dict(f.state().counters))
    assert len(executor_of(f).noted) == 2
    dropped = [e for e in pf.events() if e.kind == "dropped" and e.time >= start]
    assert len(dropped) == 4 and "2 patterns" in dropped[0].reason
    for before, after in itertools.pairwise(seen):
        assert all(after[name] >= count for name, count in before.items())
    value.backward()
    params = [pf.array(w, requires_grad=True) for w in LAYERS]
    network(X, *params).backward()
    for p, q in zip(kept, params, strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=1e-10)
    step(f, (True,) * COUNT)  # profiled anew


def test_what_is_dropped_is_freed(monkeypatch):
    monkeypatch.setattr(tape_executors, "MOST_PATTERNS", 2)
    f, gone = pf.jit(network), []
    turns = COMBINATIONS[:12]
    for thawed in turns:
        for _ in range(3):
            step(f, thawed)
        kept = [*executor_of(f).noted.values()]
        gone += [weakref.ref(e) for e in kept[-1].chain()]
    kept = {id(e) for noted in kept for e in noted.chain()}
    for _ in range(3):  # what emitted code holds is garbage once that is freed
        gc.collect()
    assert not [e for ref in gone if (e := ref()) is not None and id(e) not in kept]
    assert len(gone) > 5 * len(turns)


def test_the_explanation_tells_combinations_apart():
    f = pf.jit(lambda x, w, v: np.tanh(np.tanh(x @ w) @ v).sum())
    w, v = LAYERS[:2]
    for _ in range(3):
        f(X, pf.array(w, requires_grad=True), v).backward()
    assert "serves calls with arrays that require gradients" in f.explain()
    for _ in range(3):
        f(X, pf.array(w, requires_grad=True), pf.array(v, requires_grad=True)).backward()
    text = f.explain()
    assert "serves calls in which w requires gradients" in text
    assert "serves calls in which w, v require gradients" in text
    names = {s.executor.rpartition("/")[2] for s in f.state().specializations}
    assert {"gradients", "gradients_1"} <= names


def test_the_explanation_of_many_combinations_is_short():
    f = pf.jit(network)
    for thawed in COMBINATIONS:
        step(f, thawed)
    assert f.explain().count("This graph serves") == 4
    assert f"plans for {len(COMBINATIONS) - 4} earlier combinations" in f.explain()


def test_specs_tell_combinations_apart():
    """Without profiling one executor has them all, as specs say what requires gradients."""
    with knobs.override(profiling_mode=False):
        f = pf.jit(network)
        for thawed in COMBINATIONS * 2:
            step(f, thawed)
    (executor,) = executor_of(f).noted.values()
    assert len(executor.cache) == executor.counters.cache_misses == len(COMBINATIONS)
    assert executor.counters.cache_hits == len(COMBINATIONS)
    assert halves(f).count("diff_0_forward") == COUNT


@pytest.mark.parametrize("thawed", [(True, False), (False, True), (True, True)], ids=str)
def test_gradients_of_gradients_of_each_combination(thawed):
    f = pf.jit(lambda a, b: (np.tanh(a * b) * a).sum())
    data = LAYERS[:2]
    for _ in range(4):
        for turn in ((True, True), thawed):
            found = []
            for function in (f, lambda a, b: (np.tanh(a * b) * a).sum()):
                given = [pf.array(w, requires_grad=on) for w, on in zip(data, turn, strict=True)]
                wanted = [p for p in given if p.requires_grad]
                firsts = pf.gradients(function(*given), wanted, create_graph=True)
                total = sum((g * g).sum() for g in firsts)
                found.append([np.asarray(g) for g in pf.gradients(total, wanted)])
            for got, want in zip(*found, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_a_failed_compile_of_plain_calls_leaves_those_of_the_tape(monkeypatch):
    f = pf.jit(network)
    for _ in range(4):
        step(f, COMBINATIONS[-1])
    before = counts(f, "compiles", "kernel_launches", "profiled_runs")

    def fails(*_):
        raise LoweringError("not today")

    f(X, *LAYERS)
    monkeypatch.setattr(type(executor_of(f)), "_compile", fails)
    f(X, *LAYERS)
    assert counts(f, "compile_failures") == (1,)
    compiles, launches, runs = before
    assert counts(f, "compiles", "kernel_launches", "profiled_runs") == (compiles, launches, runs + 1)
    step(f, COMBINATIONS[-1])
    assert counts(f, "compiles", "kernel_launches") == (compiles, launches + 2)
