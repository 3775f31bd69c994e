"""How many threads kernels use: settings, affinity, limits of containers; the same results."""

import os
import threading
import time

import numpy as np
import profuse as pf
import pytest
from profuse.executor.plans import threads
from profuse.lowering.cpu import kernel_threads
from profuse.lowering.target import host_target
from profuse.lowering.thread_pool import supports

needs_pool = pytest.mark.skipif(not supports(host_target().triple), reason="no pool of threads on this system")


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"cpu.max": "max 100000"}, None),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "10000 100000"}, 1),
        ({"cpu.max": "rubbish"}, None),
        ({"cpu.max": "5 0"}, None),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({}, None),
    ],
)
def test_limits_of_containers(tmp_path, monkeypatch, files, limit):
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(threads, "_CGROUP", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert threads.available_cores() == (limit or 64)


def test_affinity_limits_too(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert threads.available_cores() == 1
    with pf.knobs.override(threads=5):
        assert threads.wanted_threads() == 5


def settle(condition):
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("the pool was not told")


@needs_pool
def test_the_setting_holds_at_once_and_results_stay_the_same():
    x = np.random.default_rng(0).standard_normal((1200, 1000)).astype(np.float32)

    def f(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True), x.sum(axis=0), x.sum()

    jitted = pf.jit(f, background=False)
    results = []
    for count in (1, 3, 2, 1):
        with pf.knobs.override(threads=count):
            for _ in range(3):
                jitted(x)
            settle(lambda count=count: kernel_threads.threads() == count)
            results.append(b"".join(r.tobytes() for r in jitted(x)))
    assert jitted.state().tier == "optimized"
    assert len(set(results)) == 1
    assert kernel_threads.started() >= 2
    for found, wanted in zip(jitted(x), f(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@needs_pool
def test_events_say_how_many_threads_there_are():
    jitted = pf.jit(lambda x: np.tanh(x) * 2, background=False)
    x = np.ones((1000, 1000), np.float32)
    with pf.knobs.override(threads=2):
        for _ in range(3):
            jitted(x)
        settle(lambda: any(e.kind == "threads" and e.details.get("threads") == 2 for e in pf.events()))


@needs_pool
def test_users_threads_share_one_pool():
    """Eight threads call one function at once."""
    jitted = pf.jit(lambda x: np.exp(x) + x, background=False)
    x = np.random.default_rng(0).standard_normal((400, 1000)).astype(np.float32)
    expected, faults = np.exp(x) + x, []

    def calls():
        try:
            for _ in range(8):
                np.testing.assert_allclose(jitted(x), expected, rtol=1e-5, atol=1e-6)
        except BaseException as error:
            faults.append(error)

    with pf.knobs.override(threads=2):
        for _ in range(3):
            jitted(x)
        settle(lambda: kernel_threads.threads() == 2)
        started = [threading.Thread(target=calls) for _ in range(8)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        assert not faults
