"""`is True` and the like, of traced bools, are what they are in Python."""

import numpy as np
import profuse as pf
import pytest


def flagged(x, flag):
    return x + 1 if flag is True else x - 1


def not_false(x, flag):
    if flag is not False:
        return x + 1
    return x - 1


def named(x, flag):
    return [flag is True, True is flag, flag is not True, (x[0] > 2) is True, bool(x[0] > 2) is True]


def matched(x, flag):
    match flag:
        case True if x.ndim == 2:
            return x
        case True:
            return x + 1
        case False:
            return x - 1
    return x * 7


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", [flagged, not_false, named, matched], ids=lambda f: f.__name__)
@pytest.mark.parametrize("raises", ["raise", "python"])
def test_arguments(f, raises):
    jitted = pf.jit(f)
    with pf.knobs.override(unsupported=raises):
        for flag in (True, False, True, 1, np.True_, None):
            for x in (np.array([3.0, 1.0]), np.array([1.0, 5.0])):
                found, wanted = jitted(x, flag), f(x, flag)
                assert type(found) is type(wanted)
                np.testing.assert_array_equal(found, wanted)


def until_small(x):
    done, n = False, 0
    while done is False:
        x = x * 0.5
        n += 1
        if x.max() < 1.0:
            done = True
    return n, x


def some_large(x):
    large = False
    for v in x:
        if v > 2:
            large = True
    if large is not True:
        return -x
    return x * 2


@pytest.mark.parametrize("f", [until_small, some_large], ids=lambda f: f.__name__)
def test_bools_that_loops_and_branches_set(f):
    jitted = pf.jit(f)
    for x in ([8.0, 3.0], [8.0, 3.0], [0.1, 0.2], [2.0, 2.0], [300.0, -1.0]):
        found, wanted = jitted(np.array(x)), f(np.array(x))
        assert type(found) is type(wanted)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    assert jitted.state().tier == "optimized"
