"""What a function computes of the contents of an array from outside holds for these alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest

WEIGHTS, TABLE, LARGE = np.arange(4.0), np.array(["a", "b"]), np.zeros(3 << 20)
MASKED = np.ma.masked_array(np.arange(3.0), [False, False, True])
OBJECTS = np.array([1.0, None], object)
RECORDS = np.zeros(2, [("n", "i4"), ("x", "f8")])
NO_AXES = SimpleNamespace(w=np.array(7, "u1"))
SHARED = SimpleNamespace(w=np.arange(4.0), other=np.ones((4, 1)))


def fill(array, at, value):
    array[at] = value


def decrease():
    NO_AXES.w -= 1


def branches(x):
    return x * 2 if WEIGHTS.any() else x


def element(x):
    return x * float(LARGE[-1])


def masked(x):
    return x * float(MASKED.sum())


def objects(x):
    return x if OBJECTS[1] is None else x * OBJECTS[1]


def written_under_a_mask(x):
    mask = NO_AXES.w < 3
    NO_AXES.w[mask] = 9
    return x * NO_AXES.w


CASES = {
    "condition": (branches, lambda k: fill(WEIGHTS, slice(None), k % 2)),
    "texts": (lambda x: x * 2 if TABLE[0] == "a" else x, lambda k: fill(TABLE, 0, "ab"[k % 2])),
    "a large array": (element, lambda k: fill(LARGE, -1, k)),
    "masked": (masked, lambda k: fill(MASKED.mask, 2, k % 2)),
    "objects": (objects, lambda k: fill(OBJECTS, 1, float(k))),
    "records": (lambda x: x + RECORDS["n"][0].item(), lambda k: fill(RECORDS["n"], 0, k)),
    "no axes": (written_under_a_mask, lambda k: decrease()),
}


@pytest.mark.parametrize("unsupported", ["python", "raise"])
@pytest.mark.parametrize("case", CASES)
def test_changes_in_place_are_seen(case, unsupported):
    if (case, unsupported) == ("no axes", "raise"):
        pytest.skip("no graph can hold it")
    function, change = CASES[case]
    jitted, x = pf.jit(function, unsupported=unsupported), np.arange(3.0)
    for k in range(6):
        state = NO_AXES.w.copy()
        wanted = function(x)
        NO_AXES.w[...] = state
        np.testing.assert_array_equal(jitted(x), wanted)
        change(k)


def test_the_same_contents_need_no_new_trace():
    weights = np.arange(4.0)
    jitted = pf.jit(lambda x: x * 2 if weights.any() else x)
    for k in range(6):
        jitted(np.ones(k + 1))
        weights[...] = np.arange(4.0)
    assert jitted.state().counters["traces"] == 1
    assert "what weights holds (32 bytes) is compared at each call" in jitted.explain()


def test_arrays_that_the_graph_takes_as_inputs_may_change():
    weights = np.arange(4.0)
    jitted = pf.jit(lambda x: x * weights, unsupported="python")
    for _ in range(6):
        np.testing.assert_array_equal(jitted(np.ones(4)), weights)
        weights += 1
    assert jitted.state().counters["traces"] == 1


def scaled(holder, mask):
    """Needs plain arrays: whether a number is in a list is Python's to find out."""
    holder.w[0] = 1.5
    return SHARED.w * 1.5 if SHARED.other.sum() in [4.0, 5.0] else mask


def test_what_an_argument_writes_to_is_no_constant():
    jitted, holder = pf.jit(scaled, unsupported="python"), SimpleNamespace(w=SHARED.w)
    for k in range(4):
        SHARED.w[...] = np.arange(4.0) + k
        wanted = np.array([1.5, 1 + k, 2 + k, 3 + k])
        np.testing.assert_array_equal(jitted(holder, None), wanted * 1.5)
        np.testing.assert_array_equal(SHARED.w, wanted)
