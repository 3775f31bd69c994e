"""Which plan serves a call (R1.7 - R1.15), and what fallbacks are given (R1.42, R1.44)."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
import pytest
from internals import keeps_graphs, last_executor, make_unguarded_plan
from profuse.executor.compile import compiler as compile_module
from profuse.executor.settings.knobs import knobs
from profuse.executor.tiers import profiling as engine
from profuse.executor.tiers.profiling import Executor, Options
from small_executors import Clock, ones, optimized, run
from small_graphs import add_graph

# --- R1.7 --------------------------------------------------------------------------------------


def test_the_third_call_makes_no_new_plan(background):
    """R1.7"""
    executor = optimized(background=background)
    plan = executor.optimized
    seen = len(pf.events())
    run(executor, 2, 3)
    assert executor.plan() is plan
    assert executor.counters.compiles == 1
    assert len(pf.events()) == seen


def test_racing_requests_get_one_plan(monkeypatch):
    """R1.7: whoever comes second waits and gets the plan of the first."""
    executor = Executor(add_graph(), Options())
    run(executor, 2, 3)
    entered = threading.Event()
    compile_graph = compile_module.compile_graph

    def slowly(request):
        entered.set()
        second.start()
        second.join(0.2)  # it cannot finish: this thread holds the lock
        assert second.is_alive()
        return compile_graph(request)

    monkeypatch.setattr(compile_module, "compile_graph", slowly)
    plans = []
    second = threading.Thread(target=lambda: plans.append(executor.plan()))
    plans.append(executor.plan())
    second.join()
    assert entered.is_set()
    assert plans[0] is plans[1]
    assert executor.counters.compiles == 1


# --- R1.8 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("knob", ["optimize", "profiling_mode"])
def test_off_there_is_a_plan_apart_and_on_again_profiling_starts(knob, background):
    """R1.8: tested before anything about depth; made once."""
    executor = Executor(add_graph(), Options(strategy=(("static", 5),), background=background))
    with knobs.override(**{knob: False}):
        plan = executor.plan(2)
        assert plan.kind == "no-opt"
        assert executor.plan() is plan
        run(executor, 2, 3)
        assert executor.record is None
        assert executor.depth == 5, "no depth is stored while off"
    assert executor.plan().kind == "profiling"
    run(executor, 2, 3), run(executor, 2, 3)
    assert executor.optimized.kind == "optimized"
    with knobs.override(**{knob: False}):
        assert executor.plan() is executor.optimized, "an optimised plan that exists still wins"


def test_off_beats_an_empty_strategy():
    """R1.8: depth 0 is not even looked at."""
    executor = Executor(add_graph(), Options(strategy=()))
    with knobs.override(profiling_mode=False):
        assert executor.plan().kind == "no-opt"
    assert executor.plan().kind == "simple"


# --- R1.9 --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fuser", "expected"), [(True, 5), (False, 9)])
def test_depth_of_two_requests(fuser, expected):
    """R1.9, A5: request 5 then 9."""
    executor = Executor(add_graph(), Options())
    with knobs.override(general_fuser=fuser):
        executor.plan(5)
        executor.plan(9)
        assert executor.depth == expected


def test_the_first_request_without_a_depth_stores_the_total():
    """R1.9"""
    executor = Executor(add_graph(), Options(strategy=(("dynamic", 4),)))
    executor.plan()
    executor.plan(2)
    assert executor.depth == 4


def test_without_the_general_fuser_there_is_no_group_and_no_guard():
    """R1.9, R1.36"""
    with knobs.override(general_fuser=False):
        executor = optimized()
    assert executor.optimized.kind == "optimized"
    assert executor.optimized.guards == []
    assert "fusion_group" not in executor.result.ir
    run(executor, 4, 5)


# --- R1.10 - R1.12 -----------------------------------------------------------------------------


def test_depth_0_is_optimised_for_good():
    """R1.10: no observer, guard or fallback on any call, as executor of its own or as callee."""
    for executor in (Executor(add_graph(), Options(strategy=())), Executor(add_graph(), Options())):
        executor.plan(0)
        plan = executor.optimized
        for shape in ((2, 3), (2, 3), (4, 5)):
            run(executor, *shape)
        assert executor.plan() is plan
        assert (plan.kind, plan.guards, executor.fallbacks) == ("simple", [], {})
        assert executor.counters.profiled_runs == 0
        assert executor.counters.compiles == 0


def test_the_plan_of_call_1_has_observers_and_one_counter():
    """R1.11"""
    executor = Executor(add_graph(), Options())
    run(executor, 2, 3)
    text = executor.record.module.to_mlir()
    assert text.count('"profuse.profile"') == 3
    assert text.count('"profuse.profile_counter"') == 1
    assert '"profuse.profile' not in executor.module.to_mlir(), "the original is left alone"


@pytest.mark.parametrize("runs", [0, 1, 4])
def test_optimised_on_the_call_after_the_last_profiled_one(runs, background):
    """R1.12: with 0 profiled runs all of it happens in the first call, or begins there."""
    executor = Executor(add_graph(), Options(profiled_runs=runs, background=background))
    kinds = []
    for _ in range(runs + 2):
        kinds.append(executor.plan().kind)
        run(executor, 2, 3)  # waits for what is compiled
    made = ["compiling", "optimized"] if background else ["optimized"] * 2
    assert kinds == ["profiling"] * runs + made
    assert executor.counters.profiled_runs == runs


def test_no_observer_is_left_in_a_final_plan():
    """R1.12, R1.22"""
    executor = optimized()
    assert '"profuse.profile' not in executor.result.ir
    assert "fallback_graph" not in executor.result.ir


def test_creation_is_stamped_in_whole_seconds(background):
    """R1.12"""
    executor = Executor(add_graph(), Options(background=background), clock=Clock(1000.75))
    run(executor, 2, 3)
    assert executor.created is None
    run(executor, 2, 3)
    assert executor.created == 1000


def test_a4_the_number_of_runs_is_read_when_the_record_is_made():
    """R1.12, A4: neither at construction nor later."""
    with knobs.override(profiled_runs=7):
        executor = Executor(add_graph(), Options())
    with knobs.override(profiled_runs=2):
        run(executor, 2, 3)
    with knobs.override(profiled_runs=5):
        kinds = []
        for _ in range(3):
            run(executor, 2, 3)
            kinds.append(executor.tier)
    assert executor.record.runs == executor.counters.profiled_runs == 2
    assert kinds == ["profiling", "optimized", "optimized"]


@pytest.mark.parametrize("release", [False, True])
def test_a4_a_failing_compile_pins_with_one_reason(background, release, failing_compiles):
    """R1.12, A1, A4: no second attempt, and one more after a flush; the plan is stamped."""
    clock = Clock(1000)
    executor = Executor(add_graph(), Options(background=background), clock=clock)
    for attempts in (1, 2):
        for _ in range(4):
            run(executor, 2, 3)
        assert len(failing_compiles) == attempts
        assert (executor.tier, executor.created) == ("simple", 1000)
        assert [str(r) for r in executor.reasons] == ["not compiled: no"]
        assert executor.counters.compile_failures == attempts
        assert executor.counters.profiled_runs == attempts
        with knobs.override(release_profiling_graph=release, release_delay_seconds=0):
            clock.now += 1
            run(executor, 2, 3)
            assert (executor.released, executor.record is None) == (release, release)
        clock.now -= 1
        executor.flush()


# --- R1.14, R1.15 ------------------------------------------------------------------------------


def test_a_flush_forgets_everything_and_reads_the_settings_anew():
    """R1.14"""
    executor = optimized()
    run(executor, 4, 5), run(executor, 4, 5)
    with knobs.override(profiling_mode=False):
        make_unguarded_plan(executor)
    assert executor.fallbacks
    previous = pf.set_fusion_strategy([("dynamic", 3)])
    try:
        executor.flush()
        assert executor.depth == 3
    finally:
        pf.set_fusion_strategy(previous)
    assert executor.record is executor.optimized is None
    assert keeps_graphs(executor) == (False, False)
    assert executor.fallbacks == {}
    assert executor.created is None
    with knobs.override(profiled_runs=2):
        kinds = [executor.plan().kind]
    for _ in range(2):
        run(executor, 2, 3)
        kinds.append(executor.plan().kind)
    assert kinds == ["profiling", "profiling", "optimized"]
    assert "dynamic_guard" in executor.result.ir


def test_a_flush_keeps_what_was_counted():
    """R1.14: counts of dropped fallbacks go to the executor they belonged to."""
    f = pf.jit(lambda x: np.exp(x) + 1)
    for shape in ((2, 3), (2, 3), (4, 5), (4, 5)):
        f(ones(*shape))
    before = f.state().counters
    assert before["compiles"] == 2
    f.flush()
    assert f.state().counters == before


def test_debug_state():
    """R1.15: an error before there is an optimised plan, afterwards exactly that one."""
    f = pf.jit(lambda x: np.exp(x) + 1)
    with pytest.raises(pf.ArgumentError, match="no optimised plan"):
        f.debug_state()
    f(ones(3))
    with pytest.raises(pf.ArgumentError, match="no optimised plan"):
        f.debug_state()
    f(ones(3))
    state = f.debug_state()
    assert dict(state.plans) == {(): last_executor(f).optimized}
    assert state.graph == f.ir("optimized")
    assert state.created == last_executor(f).created


# --- fallbacks (R1.42, R1.44) ------------------------------------------------------------------


def test_a_callee_has_a_plan_and_a_depth_before_it_ever_runs(background):
    """R1.42: stored at conversion, immune to later requests."""
    executor = optimized(background=background)
    (callee,) = executor.fallbacks.values()
    assert callee.counters.profiled_runs == 0
    assert callee.record is not None
    assert keeps_graphs(callee)[0]
    assert callee.depth == 11
    callee.plan(5)
    assert callee.depth == 11


@pytest.mark.parametrize("knob", ["optimize", "profiling_mode"])
def test_r1_42_a_callee_has_its_depth_whatever_is_switched_off_meanwhile(knob, background, monkeypatch):
    """R1.42, R1.44: switched off just when the callee is made, and on again."""
    executor = Executor(add_graph(), Options(strategy=(("static", 2),), background=background))
    link = engine.link

    def switching(*args, **more):
        knobs.exchange(knob, False)
        return link(*args, **more)

    monkeypatch.setattr(engine, "link", switching)
    try:
        for size in range(2, 7):
            for _ in range(3):
                run(executor, size, 3)
                knobs.exchange(knob, True)
    finally:
        knobs.exchange(knob, True)
    assert [e.depth for e in executor.chain()] == [2, 1, 0]
    assert [e.counters.compiles for e in executor.chain()] == [1, 1, 0]


def test_r1_42_a_callee_keeps_its_depth_while_the_fuser_is_off():
    """R1.9, A5: each request of a run overwrites the depth with what the callee was given."""
    executor = optimized(strategy=(("static", 2),))
    (callee,) = executor.fallbacks.values()
    with knobs.override(general_fuser=False):
        callee.plan()
        assert callee.depth == 1
        callee.plan(7)
        assert callee.depth == 7
        callee.plan()
    assert callee.depth == 1


def test_a_callee_of_depth_0_has_its_final_plan_at_once(background):
    """R1.42"""
    executor = optimized(strategy=(("static", 1),), background=background)
    (callee,) = executor.fallbacks.values()
    assert callee.optimized.kind == "simple"
    run(executor, 4, 5)
    assert callee.counters.profiled_runs == 0


def test_a_callee_copies_the_strategy_current_at_that_moment():
    """R1.42, R1.5: depth comes from the parent, the behaviour from the new strategy."""
    executor = Executor(add_graph(), Options())
    run(executor, 2, 3)
    previous = pf.set_fusion_strategy([("dynamic", 20)])
    try:
        run(executor, 2, 3)
    finally:
        pf.set_fusion_strategy(previous)
    (callee,) = executor.fallbacks.values()
    assert executor.strategy == previous
    assert callee.strategy == (("dynamic", 20),)
    assert callee.depth == 11
    run(executor, 4, 5), run(executor, 4, 5)
    assert "dynamic_guard" in callee.result.ir


def test_only_what_has_depth_left_is_specialised(background):
    """R1.42: conversion asserts it; that stops the compile, not the call."""
    executor = Executor(add_graph(), Options(strategy=(("static", 3),), background=background))
    executor.plan(-1)
    run(executor, 2, 3)
    run(executor, 2, 3)
    assert executor.optimized.kind == "simple" and not executor.fallbacks
    assert executor.counters.compile_failures == 1
    assert "depth -1" in str(executor.reasons[-1])


def test_the_chain_down_to_depth_0(background):
    """R1.44: A,A,B,B,C,C under [(static, 2)]: each tier in turn, and A still hits its guard."""
    executor = Executor(add_graph(), Options(strategy=(("static", 2),), background=background))
    a, b, c = (2, 3), (4, 5), (6, 7)
    tiers = []
    for shape in (a, a, b, b, c, c):
        run(executor, *shape)
        tiers.append([e.optimized.kind if e.optimized else "profiling" for e in executor.chain()])
    assert tiers == [
        ["profiling"],
        ["optimized", "profiling"],
        ["optimized", "profiling"],
        *[["optimized", "optimized", "simple"]] * 3,
    ]
    first, second, last = executor.chain()
    assert [e.depth for e in (first, second, last)] == [2, 1, 0]
    assert [e.counters.profiled_runs for e in (first, second, last)] == [1, 1, 0]
    assert last.counters.evaluated_ops == 2, "C ran unguarded twice"
    for shape, hits in ((a, [2, 1]), (b, [2, 2])):
        run(executor, *shape)
        # The call that asks for a plan in the background is not yet served by it.
        found = [e.optimized.guards[0].hits + background for e in (first, second)]
        assert found == hits
    assert last.counters.evaluated_ops == 2
