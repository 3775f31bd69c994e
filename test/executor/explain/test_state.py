"""`state()`, `pf.counters()`, `pf.events()` and `pf.last_executed_graph()` tell one story."""

from __future__ import annotations

import gc
import statistics
import threading
import timeit

import numpy as np
import profuse as pf
import pytest
from internals import last_executor

F32 = np.float32


def difference(after, before):
    return {name: after[name] - before[name] for name in after}


def make(name, strategy=(("static", 2),)):
    return pf.jit(lambda x: np.exp(x).sum(axis=1), name=name, strategy=list(strategy))


def call(f, *sizes):
    for n in sizes:
        f(np.ones((n, 3), F32))


def test_specialisations_are_a_flat_list():
    f = make("flat")
    call(f, 4, 4, 4, 6, 6, 6)
    first, second = f.state().specializations
    assert (first.guard, second.guard) == ("f32[4, 3] contiguous", "f32[6, 3] contiguous")
    assert (first.behavior, first.depth, second.depth) == ("static", 2, 1)
    assert (first.hits, first.misses, second.hits, second.misses) == (2, 3, 2, 0)
    assert (first.executor, second.executor) == ("flat", "flat/fallback_0")
    for spec in (first, second):
        assert spec.kernels == (spec.callee,)
        assert spec.object_bytes > 200
        assert spec.seconds > 0


@pytest.mark.parametrize("every", [1, 2, 8])
def test_running_time_is_taken_from_some_of_the_hits(every):
    with pf.knobs.override(time_every=every):
        f = pf.jit(lambda x: np.exp(np.sin(x)).sum())
        x = np.ones(200_000)
        for _ in range(18):
            f(x)
    (spec,) = f.state().specializations
    (guard,) = last_executor(f).optimized.guards
    assert spec.hits == 17
    assert guard.timed == {1: 17, 2: 8, 8: 2}[every]
    one = statistics.median(timeit.repeat(lambda: f(x), number=1, repeat=17))
    assert 17 * one / 20 < spec.run_seconds < 17 * one * 20


def test_a_group_that_has_not_run_twice_has_no_running_time():
    f = make("once")
    call(f, 4, 4)
    assert f.state().specializations[0].run_seconds == 0.0


def test_process_totals_are_the_sums_of_the_states():
    before = pf.counters()
    f, g = make("sum_f"), make("sum_g")
    call(f, 4, 4, 5, 5, 6)
    call(g, 7, 7)
    f(np.ones((4, 3), ">f4"))
    sums = {k: v + g.state().counters[k] for k, v in f.state().counters.items()}
    assert difference(pf.counters(), before) == sums
    assert sums["calls"] == 8
    assert sums["input_copies"] == 1


def test_totals_outlive_flushes_and_functions():
    before = pf.counters()
    f = make("gone")
    call(f, 4, 4, 5, 5, 6)
    counted = dict(f.state().counters)
    f.flush()
    assert dict(f.state().counters) == counted
    assert difference(pf.counters(), before) == counted
    del f
    gc.collect()
    assert difference(pf.counters(), before) == counted


def test_events_agree_with_counters():
    f = make("told")
    call(f, 4, 4, 5, 5, 6)
    mine = [e for e in pf.events() if e.function.split("/")[0] == "told"]
    counters = f.state().counters
    assert sum(e.kind == "compile" for e in mine) == counters["compiles"] == 2
    assert sum(e.kind == "trace" for e in mine) == counters["traces"] == 1
    assert sum(e.details["kernels"] for e in mine if e.kind == "compile") == 2
    # R1.42: a fallback has its first plan before the plan around it is installed.
    assert [(e.function, e.details["tier"]) for e in mine if e.kind == "tier"] == [
        ("told", "profiling"),
        ("told/fallback_0", "profiling"),
        ("told", "optimized"),
        ("told/fallback_0/fallback_1", "simple"),
        ("told/fallback_0", "optimized"),
    ]


def test_last_executed_graph():
    """R2.4: per thread, weak, and that of the plan which ran."""
    f = make("latest")
    call(f, 4)
    assert "profuse.profile_counter" in pf.last_executed_graph().to_mlir()
    call(f, 4)
    assert "profuse.type_check" in pf.last_executed_graph().to_mlir()
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(pf.last_executed_graph()))
    thread.start()
    thread.join()
    assert elsewhere == [None]
    del f
    gc.collect()
    assert pf.last_executed_graph() is None
