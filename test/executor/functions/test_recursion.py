"""Functions that call themselves: as deep as in Python, and without a trace for each level."""

import sys
import time

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def python():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(700)
    with pf.knobs.override(unsupported="python"):
        yield
    assert sys.getrecursionlimit() == 700
    sys.setrecursionlimit(limit)


@pf.jit
def raised(x, n):
    return x if n == 0 else raised(x, n - 1) + 1


@pf.jit
def endless(x):
    return x + endless(x)


@pf.jit
def distance(cells, k):
    d = 0
    for c in cells[k + 1 :]:
        if c != -1:
            return d
        d += 1
    return d + distance(cells, -1)


def test_a_depth_that_only_python_reaches():
    for n in (5, 300, 400, 400, 5, 300):
        np.testing.assert_array_equal(raised(np.ones(2), n), np.full(2, n + 1.0))
    assert raised.state().counters["python_calls"] >= 3


def test_recursion_without_end_ends():
    for f, args in ((endless, (np.ones(3),)), (distance, ([], -1))):
        before, counted = time.process_time(), 0
        for k in range(5):
            with pytest.raises(RecursionError):
                f(*args)
            found = f.state().counters["python_calls"]
            if k:  # one call is traced, and not one for each level
                assert found - counted <= 3
            counted = found
        assert time.process_time() - before < 60
    np.testing.assert_array_equal(distance([-1, -1, 5], 0), 1)
