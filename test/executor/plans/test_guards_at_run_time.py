"""Guards of plans, one property at a time (R1.39, R1.40)."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.executor.plans.guard import PlanGuard
from profuse.executor.tiers.profiling import Executor
from small_executors import optimized, pair


@pytest.mark.parametrize("strategy", [(("static", 1),), (("dynamic", 1),)])
@pytest.mark.parametrize(
    ("change", "hit"),
    [
        ("nothing", True),
        ("values", True),
        ("dtype", False),
        ("rank", False),
        ("strides", False),
        ("number", False),
        ("undefined", True),
    ],
)
def test_one_property_at_a_time(strategy, change, hit):
    """R1.39: the compiled check answers as `type_check` does, and never raises."""
    executor = optimized(strategy=strategy)
    x, y = pair(2, 3)
    other = {
        "nothing": x,
        "values": x + 1,
        "dtype": x.astype(np.float64),
        "rank": x[0],
        "strides": np.asfortranarray(x),
        "number": 1.0,
        "undefined": None,
    }[change]
    assert check_alone(executor, other, y) is hit


def check_alone(executor: Executor, *values) -> bool:
    """Whether the plan's guard lets values pass, without what comes after it."""
    source = executor.optimized.source.splitlines()
    end = next(k for k, line in enumerate(source) if line.startswith("    else: ")) + 1
    (guard,) = executor.optimized.guards
    scope = dict(executor.optimized.run.__globals__)
    exec("\n".join(source[:end]), scope)
    assert isinstance(guard, PlanGuard)
    hits, misses = guard.hits, guard.misses
    scope["run"](list(values))
    assert (guard.hits - hits) + (guard.misses - misses) == 1
    return guard.hits > hits


@pytest.mark.parametrize(
    ("change", "static", "dynamic"),
    [
        (lambda x: np.ones((4, 3), np.float32), False, True),
        (lambda x: np.ones((2, 4), np.float32), False, True),
        (lambda x: np.ones((1, 3), np.float32), False, True),
        (lambda x: np.ones((0, 3), np.float32), False, False),
    ],
)
def test_one_size_at_a_time(change, static, dynamic):
    """R1.39, R1.40: literal sizes miss on any change, symbols on none but 0."""
    other = change(None)
    for behavior, hit in (("static", static), ("dynamic", dynamic)):
        executor = optimized(strategy=((behavior, 1),))
        hits = executor.counters.guard_hits
        (out,) = executor.run([other, other])
        np.testing.assert_array_equal(out, other * 2)
        assert executor.counters.guard_hits == hits + hit
        assert executor.counters.guard_misses == (not hit)
