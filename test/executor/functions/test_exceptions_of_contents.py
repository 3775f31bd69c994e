"""Functions that raise where contents decide: native, repeated by Python, and Python's if hot."""

from __future__ import annotations

import sys
import types

import exits_of_functions as programs
import numpy as np
import profuse as pf
import pytest

GOOD = np.random.default_rng(4).random(50) + 0.1
BAD = GOOD.copy()
BAD[9] = -1.0


@pytest.fixture(autouse=True)
def _python():
    """Python repeats void runs; no call is Python's for the time that it takes."""
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def _outcome(function, *args):
    try:
        return function(*args), None
    except Exception as error:
        return None, error


def _equal(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (list, tuple)):
        for a, b in zip(found, expected, strict=True):
            _equal(a, b)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        _equal([*found.values()], [*expected.values()])
    elif isinstance(expected, types.SimpleNamespace):
        _equal(vars(found), vars(expected))
    elif isinstance(expected, (float, np.ndarray)):
        np.testing.assert_allclose(found, expected, 1e-12)
    else:
        assert found == expected


def _compiled(function, make):
    """A jitted function whose calls with ``make(GOOD)`` run in kernels."""
    jitted = pf.jit(function)
    for _ in range(3):
        args, same = make(GOOD), make(GOOD)
        _equal(jitted(*args), function(*same))
        _equal(args, same)
        jitted.wait()
    before = jitted.state().counters
    jitted(*make(GOOD))
    after = jitted.state().counters
    assert after["kernel_launches"] > before["kernel_launches"]
    assert after["python_calls"] == before["python_calls"]
    return jitted


@pytest.mark.parametrize("name", programs.FORMS)
def test_forms(name):
    function, make = programs.FORMS[name]
    jitted = _compiled(function, make)
    before = jitted.state().counters
    for _ in range(2):
        args, same = make(BAD), make(BAD)
        found, error = _outcome(jitted, *args)
        expected, wanted = _outcome(function, *same)
        assert wanted is not None and found is expected is None
        assert type(error) is type(wanted) and str(error) == str(wanted)
        assert error.__context__ is None and error.__cause__ is None
        _equal(args, same)
    after = jitted.state().counters
    assert after["voided_launches"] - before["voided_launches"] >= 2
    assert after["python_calls"] - before["python_calls"] == 2
    assert after["calls"] - before["calls"] == 2
    args, same = make(GOOD), make(GOOD)
    _equal(jitted(*args), function(*same))
    _equal(args, same)
    assert jitted.state().counters["python_calls"] == after["python_calls"]


def test_the_exception_being_handled_is_the_callers():
    """A bare ``raise`` raises that anew: no error of a graph is being handled then."""
    jitted = _compiled(programs.bare, lambda x: (x,))
    with pytest.raises(RuntimeError, match="No active exception"):
        jitted(BAD)
    try:
        raise KeyError("outer")
    except KeyError:
        with pytest.raises(KeyError, match="outer"):
            jitted(BAD)
    assert sys.exc_info() == (None, None, None)


def test_results_share_memory_as_in_python():
    jitted = _compiled(programs.views, lambda x: (x,))
    y, part, turned = jitted(GOOD)
    assert np.shares_memory(y, part) and np.shares_memory(turned, GOOD)


def test_what_is_caught_in_the_function_is_pythons():
    jitted = pf.jit(programs.caught)
    for x in (GOOD, BAD, GOOD):
        np.testing.assert_array_equal(jitted(x), programs.caught(x))
    counters = jitted.state().counters
    assert (counters["python_calls"], counters["kernel_launches"]) == (3, 0)
    assert "which the function would catch" in jitted.explain()


def test_effects_that_no_graph_repeats_come_once():
    seen = []

    def count(x):
        seen.append(float(x[0]))
        if (x < 0).any():
            raise ValueError(len(seen))
        return x * 2

    jitted = pf.jit(count)
    for k in range(6):
        assert str(_outcome(jitted, BAD)[1]) == str(2 * k + 1)
        jitted(GOOD)
        jitted.wait()
    assert len(seen) == 12


def test_where_python_may_not_repeat_the_call_it_is_refused():
    with pytest.raises(pf.TraceError, match="raises an exception depends on"):
        pf.jit(programs.negative, unsupported="raise")(GOOD)
    with pytest.raises(pf.TraceError, match="raises an exception depends on"):
        pf.grad(programs.negative_sum)(GOOD)


def test_gradients_on_the_tape():
    x = pf.array(GOOD, requires_grad=True)
    jitted = _compiled(programs.negative_sum, lambda x: (x,))
    jitted(x).backward()
    np.testing.assert_allclose(x.grad, 2 * GOOD)
    with pytest.raises(ValueError, match="negative"):
        jitted(pf.array(BAD, requires_grad=True))


def test_an_exit_in_the_middle_of_an_expression_is_pythons():
    def f(x):
        return programs.negative(x) if x[0] > 0 else x

    jitted = pf.jit(f)
    for x in (GOOD, BAD, GOOD):
        found, error = _outcome(jitted, x)
        expected, wanted = _outcome(f, x)
        assert type(error) is type(wanted)
        if wanted is None:
            _equal(found, expected)
    assert jitted.state().counters["python_calls"] == 3


@pytest.fixture
def _demotes(_python):
    with pf.knobs.override(demote="on"):
        yield


@pytest.mark.usefixtures("_demotes")
def test_most_calls_raise():
    """Python runs them then, but for one in ever more; and kernels, once they do not any more."""
    jitted = _compiled(programs.negative, lambda x: (x,))
    for _ in range(400):
        _outcome(jitted, BAD)
    counters = jitted.state().counters
    assert 8 <= counters["voided_launches"] <= 11
    assert counters["python_calls"] >= 400
    assert "most calls raise an exception" in jitted.explain()
    looks = counters["voided_launches"]
    for _ in range(64 * 4**4):
        jitted(GOOD)
    jitted.wait()
    before = jitted.state().counters
    for _ in range(10):
        jitted(GOOD)
    after = jitted.state().counters
    assert after["python_calls"] == before["python_calls"]
    assert after["kernel_launches"] == before["kernel_launches"] + 10
    assert after["voided_launches"] == looks
    assert "most calls raise an exception" not in jitted.explain()


@pytest.mark.usefixtures("_demotes")
def test_calls_that_raise_now_and_then_stay_native():
    jitted = _compiled(programs.negative, lambda x: (x,))
    for k in range(200):
        _outcome(jitted, BAD if k % 3 == 0 else GOOD)
        assert jitted.native is not None
    counters = jitted.state().counters
    assert counters["python_calls"] <= 67 + 3
    assert counters["voided_launches"] == 67


@pytest.mark.usefixtures("_demotes")
def test_calls_that_raise_from_the_first_one_on():
    jitted = pf.jit(programs.negative)
    for _ in range(6):
        with pytest.raises(ValueError, match="negative"):
            jitted(BAD)
        jitted.wait()
    for _ in range(64 * 4**3):
        jitted(GOOD)
    jitted.wait()
    before = jitted.state().counters["python_calls"]
    jitted(GOOD)
    assert jitted.state().counters["python_calls"] == before
