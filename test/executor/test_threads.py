"""Many threads on one jitted function: values, counts, no deadlock, whatever else goes on."""

from __future__ import annotations

import gc
import sys
import threading
import time

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from internals import executors, last_executor, name_of, spy_on_writes
from profuse.executor.plans import threads
from profuse.executor.settings.events import Counters
from profuse.executor.tiers.slow_calls import WorkLog
from profuse.lowering.cpu import kernel_threads

THREADS, CALLS = 8, 2_000 if EVERY_CASE else 500
SHAPES = [(3, 4), (5, 4), (7, 2), (2, 9), (6, 6), (1, 8)]
DEADLINE = 60.0  # seconds; far above what a run takes, so that only a deadlock reaches it


def rows(x, y):
    return np.exp(x).sum(axis=1) * y


def arguments(shape, k):
    n, m = shape
    x = np.linspace(-1, 1, n * m, dtype=np.float32).reshape(n, m) + np.float32(k)
    return x, np.arange(n, dtype=np.float32)


CASES = [(arguments(s, k), rows(*arguments(s, k))) for k, s in enumerate(SHAPES)]


@pytest.fixture(autouse=True)
def switch_often():
    """Threads change places a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


def race(workers):
    """Run callables at once, each in a thread; raise the first failure, and at a deadlock."""
    failures = []
    barrier = threading.Barrier(len(workers))

    def guarded(worker):
        try:
            barrier.wait()
            worker()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(w,), daemon=True) for w in workers]
    for thread in threads:
        thread.start()
    end = time.monotonic() + DEADLINE
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    stuck = sum(thread.is_alive() for thread in threads)
    assert not stuck, f"{stuck} threads did not finish"
    if failures:
        raise failures[0]


def caller(f, seed, calls=CALLS):
    order = np.random.default_rng(seed).integers(0, len(CASES), calls).tolist()

    def work():
        for k in order:
            args, expected = CASES[k]
            np.testing.assert_allclose(f(*args), expected, rtol=1e-5)

    return work


def check_balance(f, calls):
    """Every call ran the outermost guard once, and each miss made one call of a fallback."""
    state = f.state()
    c = state.counters
    assert c["calls"] == calls
    top = state.specializations[0]
    first_runs = last_executor(f).counters.profiled_runs
    assert top.hits + top.misses == calls - first_runs
    assert sum(s.hits for s in state.specializations) == c["guard_hits"] == c["kernel_launches"]
    assert sum(s.misses for s in state.specializations) == c["guard_misses"] == c["fallback_calls"]
    assert c["compile_failures"] == 0


@pytest.mark.parametrize(
    ("strategy", "least", "most"), [([("static", 8)], 6, 6), ([("static", 2), ("dynamic", 10)], 3, 5)]
)
def test_one_compile_per_specialisation(strategy, least, most):
    """R1.7: racing threads get one compilation of each specialisation, and one trace."""
    f = pf.jit(rows, strategy=strategy)
    race([caller(f, seed) for seed in range(THREADS)])
    state = f.state()
    assert state.counters["traces"] == 1
    guards = [s.guard for s in state.specializations]
    assert len(guards) == len(set(guards)) == state.counters["compiles"]
    assert least <= len(guards) <= most
    check_balance(f, THREADS * CALLS)


def test_functions_are_compiled_at_once():
    fs = [pf.jit(lambda x, k=k: np.exp(x) * k + np.tanh(x), name=f"f{k}") for k in range(THREADS)]

    def work(f, k):
        def run():
            for shape in SHAPES:
                x = arguments(shape, 0)[0]
                for _ in range(2):
                    np.testing.assert_allclose(f(x), np.exp(x) * k + np.tanh(x), rtol=1e-5)

        return run

    race([work(f, k) for k, f in enumerate(fs)])
    for f in fs:
        assert f.state().counters["compile_failures"] == 0
        assert f.state().counters["compiles"] >= 3


def test_types_are_written_before_the_record_is_ready(monkeypatch):
    """R1.20: "ready" is read without a lock, so that it must come last."""
    seen = []
    spy_on_writes(monkeypatch, lambda record: seen.append(record.ready))
    f = pf.jit(rows)
    f(*CASES[0][0])
    assert seen == [False]


def test_one_compile_under_stress():
    """R1.7: forced misses send all threads down one chain, each level of it compiled once."""
    with pf.knobs.override(stress="guards:k=3,seed=5"):
        f = pf.jit(rows, strategy=[("static", 1), ("dynamic", 2)])
        race([caller(f, seed, 300) for seed in range(THREADS)])
    state = f.state()
    assert state.counters["compiles"] == len(state.specializations) == 3
    assert state.counters["forced_misses"] > 200
    check_balance(f, THREADS * 300)


def test_flush_and_strategy_changes_while_calling():
    """R1.4, R1.14: what is learnt may go at any time; values and the count of calls stay."""
    f = pf.jit(rows)
    before = pf.get_fusion_strategy()
    strategies = [[("static", 1)], [("dynamic", 3)], [], [("static", 2), ("dynamic", 10)]]
    done = threading.Event()

    def disturb():
        for k in range(60 if EVERY_CASE else 24):
            f.flush() if k % 2 else pf.set_fusion_strategy(strategies[k // 2 % 4])
            time.sleep(0.02)
        done.set()

    def watch():
        while not done.is_set():
            state = f.state()
            assert state.remaining_depth <= 12
            assert len(state.specializations) <= 13
            assert f.explain().startswith("rows ")
            pf.counters()

    def keep_calling(seed):
        def work():
            made = 0
            while not done.is_set():
                caller(f, seed + made, 50)()
                made += 50
            calls.append(made)

        return work

    calls = []
    f(*CASES[0][0])
    try:
        race([disturb, watch, *(keep_calling(1000 * seed) for seed in range(THREADS))])
    finally:
        pf.set_fusion_strategy(before)
    assert f.state().counters["calls"] == 1 + sum(calls)
    assert f.state().counters["compiles"] > 1
    f.flush()
    caller(f, 0, 100)()
    assert f.state().tier == "optimized"


def test_settings_flip_while_calling():
    """R1.8: plans made with optimisation off serve beside those made with it on."""
    done = threading.Event()

    def flip():
        for k in range(200 if EVERY_CASE else 80):
            pf.set_optimize(k % 2 == 1)
            time.sleep(0.001)
        done.set()

    def make_and_call():
        while not done.is_set():
            caller(pf.jit(rows, strategy=[("static", 1)]), 1, 10)()

    try:
        race([flip, make_and_call, make_and_call])
    finally:
        pf.set_optimize(True)


def test_traces_are_dropped_while_calling():
    f = pf.jit(lambda x, name: x * len(name) + 1)

    def work(seed):
        def run():
            for k in np.random.default_rng(seed).integers(1, 12, 60).tolist():
                np.testing.assert_array_equal(f(np.ones(3), "a" * k), np.full(3, k + 1.0))

        return run

    with pf.knobs.override(max_traces=4):
        race([work(seed) for seed in range(4)])
    assert len(executors(f)) == 4
    assert f.state().counters["dropped_traces"] == f.state().counters["traces"] - 4


def test_last_executed_graph_is_that_of_the_thread():
    """R2.4"""
    fs = [pf.jit(lambda x: np.exp(x) + 1, name=f"f{k}") for k in range(4)]

    def own(f):
        def work():
            for _ in range(300):
                f(CASES[0][0][0])
                assert pf.last_executed_graph().main.name == name_of(f)

        return work

    race([own(f) for f in fs])


def test_work_is_listed_while_more_is_noted():
    """A collection of garbage in the midst of the list is where other code gets its turn."""
    log = WorkLog(Counters())
    counts = []

    def note(phase, info):
        log.note("compiled", 0.0, "f")

    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        while len(counts) < 200:
            counts.append(sum(map(len, log.slow_calls())))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    assert counts == sorted(counts) and counts[-1] == 64


def test_no_work_is_lost_among_threads():
    log = WorkLog(Counters())
    race([lambda: [log.note("compiled", 0.0, "f") for _ in range(8)] for _ in range(THREADS)])
    assert sum(map(len, log.slow_calls())) == 64


def test_the_number_of_threads_that_is_set_last_counts(monkeypatch):
    """It may be set while the code of the pool is made for another one."""
    wanted, told = [3], []

    def use(count, code_of):
        told.append(count)
        wanted[0] = 1
        return True

    monkeypatch.setattr(kernel_threads, "use_threads", use)
    monkeypatch.setattr(threads, "wanted_threads", lambda: wanted[0])
    threads._tell_pool()
    assert told == [3, 1]
