"""When the profiling graph of an optimised executor is dropped (R1.13)."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from internals import executor_of, keeps_graphs, set_clock
from profuse.executor.settings.knobs import knobs
from profuse.executor.settings.strategy import total_depth
from profuse.executor.tiers.profiling import Executor, Options
from small_executors import Clock, ones, run
from small_graphs import add_graph, loop_graph


def with_release(clock, delay=0, runs=1):
    executor = Executor(add_graph(), Options(profiled_runs=runs), clock=clock)
    with knobs.override(release_profiling_graph=True, release_delay_seconds=delay):
        for _ in range(runs + 1):
            run(executor, 2, 3)
    return executor


def test_released_strictly_after_the_delay():
    """R1.13: delay 0 and a fake clock: held at +0 s, released at +1 s, result unchanged."""
    clock = Clock(1000)
    executor = with_release(clock)
    with knobs.override(release_profiling_graph=True, release_delay_seconds=0):
        run(executor, 2, 3)
        assert not executor.released
        assert executor.record is not None
        clock.now += 1
        run(executor, 2, 3)
    assert executor.released
    assert executor.record is None and keeps_graphs(executor) == (False, False)
    run(executor, 2, 3), run(executor, 4, 5)
    assert executor.counters.guard_hits == 4
    assert executor.counters.guard_misses == 1


@pytest.mark.parametrize(("seconds", "released"), [(59, False), (60, False), (61, True)])
def test_the_delay_is_the_knobs(seconds, released):
    """R1.13: 60 seconds by default, and no sooner."""
    clock = Clock(1000)
    executor = with_release(clock, delay=60)
    clock.now += seconds
    with knobs.override(release_profiling_graph=True):
        run(executor, 2, 3)
    assert executor.released is released


def test_released_at_once_when_recorded_and_optimised_in_one_call():
    """R1.13 (a)"""
    executor = with_release(Clock(), delay=60, runs=0)
    assert executor.released
    run(executor, 2, 3)


def test_nothing_is_released_by_default():
    """R1.13: the knob is off."""
    clock = Clock(1000)
    executor = Executor(add_graph(), Options(), clock=clock)
    run(executor, 2, 3), run(executor, 2, 3)
    clock.now += 10_000
    run(executor, 2, 3)
    assert not executor.released
    assert executor.record is not None


def test_a1_a_plan_of_depth_0_is_stamped_and_released():
    """R1.13, A1: also where the graph was pinned; the graph that such a plan runs is not packed."""
    clock = Clock(1000)
    executor = Executor(add_graph(), Options(strategy=()), clock=clock)
    assert total_depth(executor.strategy) == 0
    with knobs.override(release_profiling_graph=True, release_delay_seconds=5):
        run(executor, 2, 3)
        assert (executor.created, executor.released) == (1000, False)
        clock.now += 6
        run(executor, 2, 3)
    assert executor.released
    assert executor.module is executor.optimized.graph
    assert [e.kind for e in pf.events()].count("release") == 1
    executor.flush()
    assert (executor.released, executor.created) == (False, None)
    run(executor, 2, 3)


@pytest.mark.parametrize("native", [False, True])
def test_a2_the_switch_and_its_delay_are_read_at_every_request(native):
    """R1.13, A2: on after optimisation: released past the delay; off again in time: not.

    Emitted code asks for no plan: while the switch is on, Python serves calls until the release.
    """
    clock = Clock(1000)
    with knobs.override(native_dispatch=native):
        f = pf.jit(lambda x: np.exp(x) + 1)
        for _ in range(3):
            f(ones(3))
        executor = executor_of(f)
        set_clock(executor, clock, 1000)
        clock.now += 100
        assert f.state().emitted is native
        with knobs.override(release_profiling_graph=True, release_delay_seconds=200):
            f(ones(3)), f(ones(3))
            assert not executor.released
        f(ones(3)), f(ones(3))
        assert not executor.released, "the switch is off again"
        assert f.state().emitted is native
        with knobs.override(release_profiling_graph=True, release_delay_seconds=99):
            f(ones(3))
            assert executor.released
            f(ones(3)), f(ones(3))
            assert f.state().emitted is native, "nothing is left to ask for"
        counters = f.state().counters
        assert (counters["calls"], counters["guard_hits"]) == (10, 9)
        assert (counters["compiles"], counters["guard_misses"]) == (1, 0)


def test_a_released_executor_can_be_flushed():
    """R1.13 (hazard): a packed private copy of the graph is there to start over from."""
    executor = with_release(Clock(), runs=0)
    assert executor.released
    executor.flush()
    assert not executor.released
    assert executor.created is None
    run(executor, 4, 5)
    assert executor.optimized.kind == "optimized"
    assert executor.module.to_mlir() == add_graph().to_mlir()


def test_a_released_graph_with_blocks_is_what_it_was():
    """R1.13"""
    graph = loop_graph()
    before = graph.to_mlir()
    executor = Executor(graph, Options(profiled_runs=0))
    with knobs.override(release_profiling_graph=True):
        executor.run([np.ones((2, 3)), 2])
    assert executor.released
    assert executor.module.to_mlir() == before


def test_what_is_released_is_said_so():
    """R1.13: asking for a dropped stage is a clear error."""
    f = pf.jit(lambda x: np.exp(x) + 1, profiled_runs=0)
    with knobs.override(release_profiling_graph=True):
        f(ones(3))
    with pytest.raises(pf.ArgumentError, match="released after optimisation"):
        f.ir("profiled")
    assert "profuse.exp" in f.ir("graph")
    assert "release" in [e.kind for e in pf.events()]
