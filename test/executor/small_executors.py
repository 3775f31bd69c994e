"""Executors of small graphs, and a clock to hold them against."""

from __future__ import annotations

import numpy as np
from profuse.executor.tiers.profiling import Executor, Options
from small_graphs import add_graph


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self, now: float = 1000.75) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def ones(*shape):
    return np.ones(shape, np.float32)


def pair(*shape):
    return [ones(*shape), ones(*shape)]


def run(executor: Executor, *shape) -> None:
    """A call, and then what it has had compiled in the background, if anything."""
    (out,) = executor.run(pair(*shape))
    np.testing.assert_array_equal(out, 2 * ones(*shape))
    settle(executor)


def settle(executor) -> None:
    """Wait until nothing compiles in the background."""
    while under_way := executor.under_way():
        under_way[0].wait(60)


def optimized(**options) -> Executor:
    executor = Executor(add_graph(), Options(**options))
    run(executor, 2, 3), run(executor, 2, 3)
    return executor
