"""What functions that keep their results do when they compute one happens once, as in Python."""

from __future__ import annotations

import copy
import functools
from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest

X = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def world(size):
    seen = SimpleNamespace(calls=[], counts={}, sums=np.zeros(3), last=None, kinds=set())

    @functools.lru_cache(maxsize=size)
    def table(n):
        seen.calls.append(n)
        seen.counts[n] = seen.counts.get(n, 0) + 1
        seen.sums[0] += n
        seen.last = n
        seen.kinds.add(n)
        return np.full(4, n * 2.0)

    return seen, table


PROGRAMS = {
    "asks": lambda seen, table: lambda x, n: x * table(n),
    "asks, and reads what changes": lambda seen, table: lambda x, n: x * table(n) + len(seen.calls),
    "reads before": lambda seen, table: lambda x, n: (len(seen.calls), x * table(n) + seen.sums[0]),
    "asks twice": lambda seen, table: lambda x, n: table(n) * x + table(n + 1),
}


@pytest.mark.parametrize("size", [None, 128, 0])
@pytest.mark.parametrize("name", PROGRAMS)
def test_effects_of_what_is_kept(name, size):
    told = []
    for is_jitted in (True, False):
        seen, table = world(size)
        f = PROGRAMS[name](seen, table)
        f = pf.jit(f, background=False) if is_jitted else f
        told.append([(f(X, n), copy.deepcopy(seen)) for n in ORDER])
    for ours, theirs in zip(*told, strict=True):
        np.testing.assert_equal(ours[0], theirs[0])
        np.testing.assert_equal(vars(ours[1]), vars(theirs[1]))


ORDER = [1, 2, 1, 3, 1, 2, 4, 4, 1]


def test_the_reason_is_told():
    _, table = world(None)
    f = pf.jit(lambda x: x * table(3))
    for _ in range(3):
        f(X)
    assert "table, which keeps its results, changes something that outlives the call" in f.explain()


def test_what_has_no_effects_is_native():
    @functools.lru_cache
    def table(n):
        return np.full(4, n * 2.0)

    seen = []

    def f(x, n):
        return x * table(n) + len(seen)

    jitted = pf.jit(f, background=False)
    for n in (1, 1, 2, 1, 2):
        np.testing.assert_array_equal(jitted(X, n), f(X, n))
    assert jitted.state().counters["python_calls"] == 0
