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


def fallen(best, weight, first, last):
    """Places that count down, and others less than they."""
    for c in range(first, last, -1):
        if best[c - weight] + 3.0 > best[c]:
            best[c] = best[c - weight] + 3.0
    return best


def ahead(x, shift, rounds):
    total = 0.0
    for i in range(rounds):
        total = 0.5 * total + x[i + shift] - x[shift - i]
    return total


def at_numbers(x, shift, rounds):
    total, k = 0.0, 0
    for i in range(rounds):
        k = shift - i
        if -5 <= k < 7:
            total = 0.5 * total + x[k]
        if i + shift > 3:
            total += 1.0
    return total, k


FAR = (2**61 - 1, 2**61, 2**62, 2**63 - 1, -(2**61), -(2**62), -(2**63))


def middle(jitted):
    """The loop in the middle, of the innermost ones."""
    return jitted.ir("loops").split("scf.for")[-2]


def test_places_that_count_down_from_numbers():
    best = np.arange(20.0) % 7
    jitted = native(fallen, best, 4, 19, 3)
    assert "cmpi ult" not in middle(jitted)
    for weight in (0, 1, 7, 19, 20, 23, 24, 39, -1, -5):
        for first, last in ((19, -1), (19, -20), (3, 8), (0, -1), (-1, -21), (20, 3), (25, 15)):
            same(jitted, fallen, (best, weight, first, last))
    for weight in FAR:
        same(jitted, fallen, (best, weight, 19, 3))
        same(jitted, fallen, (best, weight, 3, 19))


@pytest.mark.parametrize("function", [ahead, at_numbers])
def test_places_from_numbers(function):
    x = np.arange(15.0) ** 0.5
    jitted = native(function, x, 6, 5)
    for shift in (0, 1, 6, 7, 10, 14, 15, -1, -8, -15, -16, *FAR):
        for rounds in (0, 1, 4, 8, 9, 22, 40):
            same(jitted, function, (x, shift, rounds))
