"""Branches that contents decide, in functions without loops: results, effects, exceptions."""

import numpy as np
import profuse as pf
import pytest
from branch_programs import ARGUMENTS, RECORDED


def outcome(function, args):
    try:
        return function(*args)
    except Exception as error:
        return error


def check(jitted, function, make):
    ours, theirs = make(), make()
    expected, found = outcome(function, theirs), outcome(jitted, ours)
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)) and str(expected) in str(found)
    elif expected is None:
        assert found is None
    elif type(expected) is tuple:
        assert [type(x) for x in found] == [type(x) for x in expected]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", ARGUMENTS, ids=lambda f: f.__name__)
def test_each_call_does_what_numpy_does(function):
    with pf.knobs.override(unsupported="python"):
        jitted = pf.jit(function)
        for _ in range(5):
            for make in ARGUMENTS[function]:
                check(jitted, function, make)
    assert jitted.state().counters["compile_failures"] == 0


@pytest.mark.parametrize("function", RECORDED, ids=lambda f: f.__name__)
def test_one_graph_has_both_branches(function):
    jitted = pf.jit(function)
    for _ in range(3):
        for make in ARGUMENTS[function]:
            check(jitted, function, make)
    assert jitted.state().counters["traces"] == 1
    assert "scf.if" in jitted.ir("graph")


def test_a_branch_on_a_size_or_an_argument_is_no_branch_of_the_graph():
    def function(x, flag=None, scale=2.0):
        if flag is None and x.ndim == 1 and x.shape[0] > 2:
            return x * scale
        return x + scale

    jitted = pf.jit(function)
    np.testing.assert_array_equal(jitted(np.ones(3)), np.full(3, 2.0))
    assert "scf.if" not in jitted.ir("graph")


def test_what_python_cannot_know_is_still_refused():
    def function(x):
        return [1, 2, 3][int(x.sum())] * x

    with pytest.raises(pf.TraceError):
        pf.jit(function)(np.ones(1))
    with pf.knobs.override(unsupported="python"):
        np.testing.assert_array_equal(pf.jit(function)(np.ones(1)), np.full(1, 2.0))


def test_branches_may_hand_on_tuples():
    def function(x):
        if x.sum() > 0:
            low, high = x.min(), x.max()
            bounds = low, high
        else:
            bounds = x[0], 2.5
        return bounds[1] - bounds[0]

    jitted = pf.jit(function)
    for _ in range(3):
        for x in (np.arange(1.0, 5.0), -np.arange(1.0, 5.0)):
            assert jitted(x) == function(x)
    assert jitted.state().counters["traces"] == 1


def test_a_branch_that_has_never_run_is_compiled_by_what_is_known():
    def function(z):
        total = z @ z
        if not total:
            return np.arange(1, 1, 0.5) * total
        return z // 1.5

    jitted, z = pf.jit(function), np.array([True, False, True])
    for _ in range(3):
        np.testing.assert_array_equal(jitted(z), function(z))
    assert jitted.state().counters["compile_failures"] == 0
    np.testing.assert_array_equal(jitted(z & False), function(z & False))
