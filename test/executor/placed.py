"""Helpers of the tests of intermediates: functions warmed up to Python plans, what calls got."""

from __future__ import annotations

import numpy as np
import profuse as pf

N = 128
X = np.linspace(-1, 1, N * N, dtype=np.float32).reshape(N, N)
W = np.eye(N, dtype=np.float32)[::-1].copy()
WAYS = ["static", "dynamic", "keyed"]


def chain(x, w):
    for _ in range(5):
        x = np.tanh(x * w + 0.25) + x
    return x


def ready(fn, *args, way="static", runs=4):
    """A function that has met these arguments often enough, and its plan's intermediates."""
    profiling = pf.set_profiling_mode(way != "keyed")
    try:
        f = pf.jit(fn, strategy=[(way, 2)] if way != "keyed" else None, background=False)
        for _ in range(runs):
            f(*args)
    finally:
        pf.set_profiling_mode(profiling)
    return f


def plan_of(f):
    return next(iter(f.debug_state().plans.values()))


def placed(made):
    """Whether a call had places for its arrays; it has them for all or for none."""
    found = {array is not None for array in made}
    assert len(found) == 1
    return found.pop()


def address(array):
    return array.__array_interface__["data"][0]
