"""Indices that are the same in all rounds of a loop are tested before it, if there are rounds."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from native_loops import native, same


@pytest.fixture(autouse=True)
def _effects():
    """What writes to arguments is no error; no call is Python's for the time that it takes."""
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def best_split(table, i, j, begin, end):
    for k in range(begin, end):
        table[i, j] = max(table[i, j], table[i, k] + table[k, j])
    return table


def best_splits(table, i, size):
    for j in range(i, size):
        for k in range(i + 1, j):
            table[i, j] = max(table[i, j], table[i, k] + table[k, j])
    return table


def under_a_condition(table, x, j):
    for k in range(x.shape[0]):
        if x[k] > 0.5:
            table[j] += x[k]
    return table


def table_of(n):
    return np.random.default_rng(n).integers(0, 99, (n, n))


def voided(jitted):
    return jitted.state().counters["voided_launches"]


@pytest.mark.parametrize("function", [best_split, under_a_condition])
def test_what_python_does(function):
    x = np.linspace(0, 0.9, 7)
    plain = (table_of(9), 2, 7, 3, 6) if function is best_split else (np.zeros(4), x, 3)
    jitted = native(function, *plain)
    others = [(-7, -1, 3, 6), (8, -9, 0, 9)] if function is best_split else [(x, -1), (x, -4)]
    for given in others:
        same(jitted, function, (plain[0], *given))
    assert voided(jitted) == 0
    bad = [(9, 0, 3, 6), (0, -10, 3, 6)] if function is best_split else [(x, 4), (x, -5)]
    for count, given in enumerate(bad, 1):
        same(jitted, function, (plain[0], *given))  # raises IndexError
        assert voided(jitted) == count


def test_without_rounds_nothing_is_forbidden():
    jitted = native(best_split, table_of(9), 2, 7, 3, 6)
    same(jitted, best_split, (table_of(9), 99, -99, 6, 3))
    below = native(under_a_condition, np.zeros(4), np.linspace(0, 0.9, 7), 3)
    same(below, under_a_condition, (np.zeros(4), np.zeros(7), 99))
    assert voided(jitted) == voided(below) == 0


def test_inner_loops_whose_rounds_an_outer_one_decides():
    table = table_of(12)
    jitted = native(best_splits, table, 1, 12)
    same(jitted, best_splits, (table, -3, 3))
    same(jitted, best_splits, (table, 11, 13))  # no inner loop has a round
    assert voided(jitted) == 0
    same(jitted, best_splits, (table, 10, 13))  # raises IndexError
    assert voided(jitted) == 1
