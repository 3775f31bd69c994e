"""Numbers that loops carry, returned as they are and in arrays at once."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import equal_results


def longest(x):
    run = best = 0
    for v in x:
        if v > 0.5:
            run += 1
        else:
            run = 0
        best = max(best, run)
    return best, np.array([best])


def last_run(x):
    run = 1
    for v in x:
        if v > 0.5:
            run += 1
        else:
            run = 1
    return [run, 2], run, np.array([run, 3]), max(run, 4)


def total(x):
    found = 0.0
    for v in x:
        found += float(v)
    return np.array([found, found * 2]), found


@pytest.mark.parametrize("function", [longest, last_run, total])
def test_a_number_stays_one_where_an_array_holds_it_too(function):
    x = np.random.default_rng(0).random(40)
    f = pf.jit(function)
    for _ in range(4):
        equal_results(f(x), function(x))
        f.wait()
    assert f.state().tier == "optimized"
