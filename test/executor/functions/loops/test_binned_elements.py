"""Elements whose places follow from floats: counted in bins, looked up in tables."""

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


def counted(x, counts, bins, width):
    for value in x:
        k = int(value / width)
        if 0 <= k < bins:
            counts[k] += 1
    return counts


def outside(x, table, bins):
    total = 0.0
    for value in x:
        k = int(value)
        if k < 0 or k >= bins:
            total -= 1.0
        else:
            total = 0.5 * total + table[k]
    return float(total)


def truncated(x):
    total, last = 0, 0
    for value in x:
        last = int(value)
        if last % 2 == 0:
            total += 1
    return total, last


VALUES = np.array([-3.0, -0.99, -0.0, 0.0, 0.5, 1.0, 6.99, 7.0, 1e12, -1e12])
FAR = (2.0**62, 2.0**63, -(2.0**63), 2.0**63 - 1024, -(2.0**63) - 2048, 1e300, -1e300)


def voided(jitted):
    return jitted.state().counters["voided_launches"]


def test_places_below_a_number():
    jitted = native(counted, VALUES, np.zeros(7, np.int64), 7, 1.0)
    looked_up = native(outside, VALUES, np.arange(7.0), 7)
    for other in (7, 5, 0, -1, 2**62, -(2**63)):
        same(jitted, counted, (VALUES[:7], np.zeros(7, np.int64), other, 1.0))
        same(looked_up, outside, (VALUES[:7], np.arange(7.0), other))
    assert voided(jitted) == voided(looked_up) == 0
    same(jitted, counted, (VALUES, np.zeros(7, np.int64), 8, 1.0))  # raises IndexError
    same(looked_up, outside, (VALUES, np.arange(7.0), 8))
    assert voided(jitted) == voided(looked_up) == 1


def test_the_rounds_do_not_ask_for_an_axis_that_is_long_enough():
    jitted = native(counted, VALUES, np.zeros(7, np.int64), 7, 1.0)
    usual, other = jitted.ir("loops").split("scf.for")[-2:]
    assert usual.count("arith.cmpi ult") == 1 and "arith.addi" in usual
    assert other.count("arith.cmpi ult") > 1


@pytest.mark.parametrize("value", [*FAR, np.nan, np.inf, -np.inf])
def test_floats_that_are_no_ints_of_64_bits(value):
    x = np.append(VALUES, value)
    jitted = native(truncated, VALUES)
    for given in (x, x[::-1].copy()):
        same(jitted, truncated, (given,))  # raises ValueError, OverflowError
    bins = native(counted, VALUES, np.zeros(7, np.int64), 7, 1.0)
    same(bins, counted, (x, np.zeros(7, np.int64), 7, 1.0))
    same(bins, counted, (x, np.zeros(7, np.int64), 2**63 - 1, 1.0))
