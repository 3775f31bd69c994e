"""Threads of the pool get their turn soon, and the interpreter keeps its interval afterwards."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import profuse as pf
import pytest
from profuse.executor.settings.turns import short_turns


@pytest.fixture(autouse=True)
def usual():
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def test_the_interval_is_short_while_one_thread_is_at_work():
    with short_turns():
        assert sys.getswitchinterval() < 1e-3
        with short_turns():
            pass
        assert sys.getswitchinterval() < 1e-3
    assert sys.getswitchinterval() == 0.005


def test_what_the_user_has_set_stays():
    with short_turns():
        sys.setswitchinterval(0.01)
    assert sys.getswitchinterval() == 0.01
    sys.setswitchinterval(1e-5)
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(1e-5, rel=0.2)
    assert sys.getswitchinterval() == pytest.approx(1e-5, rel=0.2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_the_usual_interval():
    with short_turns():
        child = os.fork()
        if not child:
            os._exit(0 if sys.getswitchinterval() == 0.005 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_background_compile_has_short_turns(monkeypatch):
    from profuse.executor.compile.worker import pool

    seen = []
    compiled = pool.compile_cached

    def noted(*args):
        seen.append((sys.getswitchinterval(), threading.current_thread().name))
        return compiled(*args)

    monkeypatch.setattr(pool, "compile_cached", noted)
    f = pf.jit(lambda x: np.tanh(x) * 2 + x, background=True)
    for _ in range(3):
        f(np.ones(5))
    f.wait()
    assert seen and all(interval < 1e-3 and name != "MainThread" for interval, name in seen)
    for thread in threading.enumerate():
        if thread.name == "profuse-dispatch":
            thread.join(10)
    assert f.state().tier == "optimized" and sys.getswitchinterval() == 0.005
