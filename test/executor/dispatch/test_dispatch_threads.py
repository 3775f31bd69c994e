"""Emitted code among threads: exact counts, plans that come and go under running calls."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import profuse as pf
import pytest
from dispatched import BIG, hits, mixed, warm
from every_case import EVERY_CASE
from internals import entries_alive, new_event_ring
from profuse.executor.settings.events import Counters

THREADS, CALLS = 8, 1500 if EVERY_CASE else 600
SIZED = [(BIG[:n, :4].copy(), BIG[:n, 4:8].copy()) for n in (4, 5, 6, 7)]


@pytest.fixture(autouse=True)
def _frequent_switches(monkeypatch):
    """Many switches of threads; many events too, which go to a ring of their own."""
    new_event_ring(monkeypatch)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@contextmanager
def callers(f: Callable, arguments: list[tuple]) -> Iterator[None]:
    """Threads that call a function throughout the block, and until each has made all its calls."""
    errors: list[BaseException] = []
    wanted = [mixed(*args) for args in arguments]
    begin = threading.Barrier(THREADS + 1)

    def work() -> None:
        try:
            begin.wait()
            for k in range(CALLS):
                at = k // 10 % len(arguments)
                got = f(*arguments[at])
                if not np.allclose(got, wanted[at], atol=1e-6):
                    raise AssertionError(f"call {k} gave {got}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    begin.wait()
    yield
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def calls(f) -> int:
    return f.state().counters["calls"]


def test_flushes_while_threads_call():
    """No call is lost or counted twice, and code goes only when nobody is inside."""
    gc.collect()
    f, live = warm(mixed, *SIZED[0]), entries_alive()
    before = calls(f)
    with callers(f, SIZED[:1]):
        for _ in range(15):
            f.flush()
    assert calls(f) == before + THREADS * CALLS
    f.flush()
    gc.collect()
    assert entries_alive() == live - 1


def test_new_plans_while_threads_call():
    """Specialisations are added to the tree under running calls; all of these end up in it."""
    f = warm(mixed, *SIZED[0])
    before = calls(f)
    with callers(f, SIZED):
        pass
    assert calls(f) == before + THREADS * CALLS
    before, native = calls(f), hits(f)
    for args in SIZED:
        f(*args)
    assert hits(f) == native + len(SIZED)


def test_strategy_changes_while_threads_call():
    f = warm(mixed, *SIZED[0])
    before, strategy = calls(f), pf.get_fusion_strategy()
    try:
        with callers(f, SIZED):
            for k in range(8):
                pf.set_fusion_strategy([("dynamic", 2)] if k % 2 else [("static", 1)])
                f.flush()
    finally:
        pf.set_fusion_strategy(strategy)
    assert calls(f) == before + THREADS * CALLS


def test_all_that_is_counted_is_exact():
    f = warm(mixed, *SIZED[0])
    for args in SIZED * 3:
        f(*args)
    before = f.state()
    with callers(f, SIZED):
        seen = [calls(f) for _ in range(50)]
    after = f.state()
    assert seen == sorted(seen)
    gained = {name: after.counters[name] - before.counters[name] for name in after.counters}
    total = THREADS * CALLS
    for name in ("calls", "guard_hits", "kernel_launches"):
        assert gained[name] == total
    first = before.specializations[0]
    per_size = [THREADS * sum(k // 10 % 4 == n for k in range(CALLS)) for n in range(4)]
    assert after.specializations[0].hits - first.hits == per_size[0]
    assert after.specializations[0].misses - first.misses == total - per_size[0]
    assert gained["guard_misses"] == gained["fallback_calls"]
    assert after.specializations[0].run_seconds > 0


def test_traces_are_dropped_while_threads_call():
    """What is counted after its executor has gone is counted where the executor left its counts."""
    with pf.knobs.override(max_traces=1):
        f = warm(mixed, *SIZED[0])
        before, dropped = calls(f), f.state().counters["dropped_traces"]
        with callers(f, SIZED[:1]):
            for k in range(15):
                f(*(a.astype("di"[k % 2]) for a in SIZED[0]))
        assert calls(f) == before + THREADS * CALLS + 15
        assert f.state().counters["dropped_traces"] - dropped > 15


def test_long_kernels_release_the_gil():
    """While one runs, another thread is never kept waiting for as long as the kernel takes."""
    x = np.linspace(0, 1, 4_000_000)
    f = warm(lambda x: np.exp(np.sin(np.exp(np.sin(x)))).sum(), x)
    spans: list[float] = []

    def work() -> None:
        start = time.perf_counter()
        f(x)
        spans.append(time.perf_counter() - start)

    def longest_wait() -> float:
        """Of this thread, compared with how long a call takes in another one."""
        thread = threading.Thread(target=work)
        before, waited, last = hits(f), 0.0, time.perf_counter()
        thread.start()
        while thread.is_alive():
            now = time.perf_counter()
            waited, last = max(waited, now - last), now
        thread.join()
        assert hits(f) == before + 1
        return waited / spans[-1]

    # A busy machine may take this thread off its core meanwhile, but not each time.
    assert min(longest_wait() for _ in range(5)) < 0.5


def test_counts_move_with_what_will_be_counted():
    old, new, later = Counters(calls=2), Counters(calls=3), []

    def add_up() -> None:
        while later:
            old.last_heir().calls += later.pop()

    old.native.append(add_up)
    later.append(10)
    old.move(new)
    assert new.calls == 15
    later.append(100)
    assert new.as_dict()["calls"] == 115
