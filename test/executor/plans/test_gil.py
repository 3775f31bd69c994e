"""Kernels run with the GIL released."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
from internals import last_executor


def test_python_goes_on_while_a_kernel_runs():
    f = pf.jit(lambda x: np.exp(np.sin(np.exp(np.sin(x)))).sum())
    x = np.linspace(0, 1, 2_000_000)
    f(x), f(x)
    plan = last_executor(f).optimized
    assert plan is not None
    started, done, turns = threading.Event(), threading.Event(), 0

    def work():
        started.set()
        for _ in range(3):
            f(x)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    while not done.is_set():
        turns += 1
    thread.join()
    # With the lock held this loop would get a turn only between calls.
    assert turns > 1000
