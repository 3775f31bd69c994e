"""What is kept is bounded: measured as live objects, traced Python memory and resident pages."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from internals import counters_alive, executors, graph_count, last_executor, plain_graph_count, size_classes
from profuse.executor.memory import output_pool

CALLS = 10_000 if EVERY_CASE else 5_000
SHAPES = [(n, m) for n in range(1, 26) for m in range(1, 21)]  # 500
DEPTH = 12  # of the default strategy, hence at most 13 executors
KIB, MIB = 1 << 10, 1 << 20
COUNTED = ("Executor", "Plan", "Guard", "Record", "Module", "Program", "Trace", "Counters", "Loaded", "Dispatching")


def live():
    """Live objects of the package's classes, by class name; code of dispatchers is told apart."""
    gc.collect()
    ours = (o for o in gc.get_objects() if str(type(o).__module__).startswith("profuse."))
    return Counter(map(name_of, ours))


def name_of(value):
    name = type(value).__name__
    return "Dispatching" if name == "Loaded" and "table" in value.symbols else name


def resident():
    """Bytes of this process in memory."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("resident memory is read from /proc")
    line = next(t for t in status.read_text().splitlines() if t.startswith("VmRSS"))
    return int(line.split()[1]) * KIB


def call_over_shapes(f, calls):
    made = {shape: np.ones(shape, np.float32) for shape in SHAPES}
    for k in range(calls):
        f(made[SHAPES[k % len(SHAPES)]])


@pytest.mark.parametrize("strategy", [[("static", 2), ("dynamic", 10)], [("static", DEPTH)]], ids=["default", "static"])
def test_calls_over_500_shapes(strategy):
    """R1.5: depth bounds what is kept; call 10,000 (5,000 by default) leaves no more behind than call 1,000."""
    before = live()
    f = pf.jit(lambda x: np.exp(x).sum(axis=1) + 1, strategy=strategy)
    call_over_shapes(f, 1_000)
    settled, pages = live(), resident()
    call_over_shapes(f, CALLS - 3_000)
    more_pages = resident() - pages
    tracemalloc.start()
    try:
        call_over_shapes(f, 500)
        start = tracemalloc.get_traced_memory()[0]
        call_over_shapes(f, 1_500)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert {n: live()[n] for n in COUNTED} == {n: settled[n] for n in COUNTED}
    assert settled["Executor"] - before["Executor"] <= DEPTH + 1
    assert settled["Plan"] - before["Plan"] <= 2 * (DEPTH + 1)  # profiling and optimised
    assert settled["Guard"] - before["Guard"] <= DEPTH
    assert settled["Loaded"] - before["Loaded"] <= DEPTH
    assert grown < 64 * KIB
    assert more_pages < 8 * MIB
    assert f.state().counters["calls"] == CALLS
    assert f.state().counters["compiles"] <= DEPTH


def weighted(x):
    """A function whose loop bakes a size into each trace."""
    total = x[0] * 0
    for k in range(x.shape[0]):
        total = total + x[k] * k
    return total


def test_traces_are_bounded():
    before = live()
    with pf.knobs.override(max_traces=6, source_loops=False):
        f = pf.jit(weighted)
        often, counted = np.ones((2, 2)), 0
        for n in range(3, 18):
            for x in (often, np.ones((n, 2)), np.ones((n, 2))):
                np.testing.assert_array_equal(f(x), weighted(x))
                counted += 1
        after, c = live(), f.state().counters
        told = f.explain().splitlines()[-1]
    assert after["Executor"] - before["Executor"] <= 6 * 2  # each with one fallback
    assert after["Trace"] - before["Trace"] <= 6
    assert c["calls"] == counted
    assert c["traces"] == 16, "the graph that is called often was dropped"
    assert c["compiles"] == 16
    assert c["dropped_traces"] == 16 - 6
    assert told == (
        "weighted has dropped 10 traces, as 6 are kept: each new static argument, and each size "
        "that Python code reads as a number, makes one. To fix it, pass numbers as arguments, "
        "loop with pf.fori_loop, or raise pf.knobs.max_traces."
    )


def test_static_arguments_are_bounded():
    with pf.knobs.override(max_traces=4):
        f = pf.jit(lambda x, name: x + len(name))
        for k in range(20):
            assert f(np.zeros(2), "a" * k)[0] == k
        assert len(executors(f)) == graph_count(f) == 4
        assert plain_graph_count(f) == 0
        for dtype in (np.float32, np.float64, np.int32, np.int64, np.int16, np.uint8):
            g = pf.jit(lambda x: x + 1)
            for kind in (dtype, np.float32, np.float64, np.int32, np.int64, np.int16, np.uint8):
                g(np.zeros(2, kind))
            assert plain_graph_count(g) <= 4


def test_dead_functions_leave_nothing():
    def use():
        f = pf.jit(lambda x: np.exp(x) + 1)
        for n in (3, 3, 4, 4):
            f(np.ones(n))

    def left():
        pf.counters()  # which folds the counts of what has died
        return live()

    use()
    left()
    before, tracked = left(), counters_alive()
    for _ in range(5):
        use()
    left()
    after = left()
    assert {n: after[n] - before[n] for n in COUNTED} == dict.fromkeys(COUNTED, 0)
    assert counters_alive() == tracked


def test_compiles_leave_little_behind():
    """Pass managers, modules and code of kernels that are gone are freed."""
    f = pf.jit(lambda x: np.exp(x) + 1)

    def compile_again(times):
        for _ in range(times):
            x = np.ones((3, 4), np.float32)
            f(x), f(x)
            f.flush()
        gc.collect()

    compile_again(10)
    before = resident()
    compile_again(60)
    assert (resident() - before) / 60 < 50 * KIB
    assert f.state().counters["compiles"] == 70


def test_output_pool_over_500_sizes():
    pool = output_pool.BlockPool()
    limit = 16 * MIB
    sizes = [(1 << 17) + 4_096 * k for k in range(500)]
    with pf.knobs.override(output_pool_bytes=limit):
        for nbytes in sizes:
            kept = [pool.lend(nbytes) for _ in range(3)]
            assert all(len(lent) >= nbytes for lent in kept)
            del kept
            gc.collect(0)
            assert pool.held <= limit
        assert pool.held > limit // 2
        assert size_classes(pool) <= 4 * 5 + 1  # four classes for each of five octaves
        held = pool.held
        recent = pool.lend(sizes[-1])
        assert pool.held < held, "the class used last was not kept"
        del recent


@pytest.mark.parametrize("nbytes", [1 << 17, (1 << 17) + 1, 200_000, (1 << 30) - 1, 1 << 30])
def test_size_classes(nbytes):
    size = output_pool.size_class(nbytes)
    assert nbytes <= size <= nbytes * 1.25
    assert output_pool.size_class(size) == size


def test_work_log_is_bounded():
    f = pf.jit(lambda x: x + 1, profiled_runs=10_000)
    for _ in range(500):
        f(np.ones(2))
    assert sum(map(len, last_executor(f).work.slow_calls())) == 64
