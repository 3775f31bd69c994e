"""Loops whose rounds update an array at places that arrays name: the places alone are gone through."""

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


def replaced_rows(a, places, rows):
    for k in range(rows.shape[0]):
        a[places] = rows[k] + a[0]
    return a


def added(a, places, rows):
    for k in range(rows.shape[0]):
        np.add.at(a, places, rows[k] * k)
    return a


def greatest_elements(a, i, j, values):
    for k in range(values.shape[0]):
        np.maximum.at(a, (i, j), values[k])
    return a


def columns(a, places, rows):
    for k in range(rows.shape[0]):
        a[:, places] = a[:, places[::-1]] * 0.5 + rows[k, : a.shape[0], None]
    return a


def exchanged(a, places, rows):
    for _ in range(rows.shape[0]):
        a[places] = a[places[::-1]] + 1
    return a


def tables(a, grid, rows):
    for k in range(rows.shape[0]):
        a[grid] = rows[k]
    return a


A = np.linspace(-2, 2, 48).reshape(8, 6)
PLACES = np.array([5, 0, -1, 5])
ROWS = np.linspace(0, 1, 60).reshape(10, 6)
VALUES = np.linspace(-3, 3, 60).reshape(10, 2, 3)
CASES = {
    "replaced_rows": (replaced_rows, (A, PLACES, ROWS)),
    "added": (added, (A, PLACES, ROWS)),
    "greatest_elements": (greatest_elements, (A, np.array([[0], [7]]), np.array([1, -1, 4]), VALUES)),
    "columns": (columns, (A, np.array([4, 1, 0]), np.ones((10, 8)))),
    "exchanged": (exchanged, (A, np.array([1, 6, 3]), ROWS)),
    "tables": (tables, (A, np.array([[1, 2], [-1, 2]]), ROWS)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_numpy_does(name):
    function, args = CASES[name]
    jitted = native(function, *args)
    for _ in range(2):
        same(jitted, function, args)
    same(jitted, function, (A[::-1] * 3, *args[1:]))
    assert jitted.state().counters["voided_launches"] == 0


def test_a_place_outside_is_an_error():
    jitted = native(added, A, PLACES, ROWS)
    same(jitted, added, (A, np.array([5, 0, 8, 5]), ROWS))  # raises IndexError
    assert jitted.state().counters["voided_launches"] == 1


def test_a_round_goes_through_the_places_alone():
    """Not through all elements for each place."""
    large = np.zeros((300, 40))
    jitted = native(added, large, np.array([7, 9]), np.ones((500, 40)))
    before, rounds = jitted.ir("loops").split("to %c500")
    assert "to %c300" in before and "to %c300" not in rounds
