"""Forks while other threads are at work: children wait for no lock of a thread they lack."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import profuse as pf
import pytest
from internals import locks
from profuse.executor.settings.fork_lock import ForkLock

X = np.ones((4, 8))


def in_child(work) -> int:
    """Exit status of a forked child that does the work; a child that hangs is killed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(10)
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Held:
    """A lock that another thread holds for as long as the block lasts."""

    def __init__(self, lock):
        self.lock, self.taken, self.done = lock, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)

    def hold(self):
        with self.lock:
            self.taken.set()
            self.done.wait()

    def __enter__(self):
        self.thread.start()
        assert self.taken.wait(10)

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


class Guarded:
    def __init__(self):
        self.started_over = 0
        self.lock = ForkLock(self.start_over)

    def start_over(self):
        self.started_over += 1


def test_a_child_finds_a_lock_of_another_thread_free_and_starts_over():
    guarded = Guarded()

    def child():
        with guarded.lock, guarded.lock:
            return guarded.started_over == 1

    with Held(guarded.lock):
        assert in_child(child) == 0
        assert not guarded.lock.acquire(blocking=False), "the parent's is still taken"
    assert guarded.started_over == 0


def test_a_lock_of_the_forking_thread_stays_its_own():
    guarded = Guarded()

    def child():
        guarded.lock.acquire()
        guarded.lock.release()
        guarded.lock.release()
        return guarded.started_over == 0

    with guarded.lock:
        assert in_child(child) == 0


@pytest.mark.parametrize("profiling", [True, False])
def test_a_function_that_another_thread_is_at_works_in_the_child(profiling):
    with pf.knobs.override(profiling_mode=profiling):
        f = pf.jit(lambda x: np.tanh(x) * 2, background=False)
        f(X)

        def child():
            for _ in range(3):
                assert np.allclose(f(X), np.tanh(X) * 2)
            return f.state().tier == "optimized"

        for lock in locks(f):
            with Held(lock):
                assert in_child(child) == 0


def test_forks_among_calls_flushes_and_first_calls():
    fs = [pf.jit(lambda x, k=k: np.tanh(x) * k, background=True) for k in range(2)]
    stop, wrong = time.monotonic() + 2, []

    def calls():
        while time.monotonic() < stop:
            for f in fs:
                f(X)
                f.flush()

    threads = [threading.Thread(target=calls) for _ in range(3)]
    for thread in threads:
        thread.start()
    while time.monotonic() < stop:
        wrong.append(in_child(lambda: all(f(X).shape == X.shape for f in fs)))
    for thread in threads:
        thread.join()
    assert set(wrong) == {0}
