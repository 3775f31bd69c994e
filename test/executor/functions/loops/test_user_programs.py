"""Users' programs with loops: results, effects and exceptions are those of plain NumPy."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from user_programs import ARGUMENTS, NATIVE

_CALLS = 5


def _outcome(function, args):
    try:
        return function(*args)
    except Exception as error:
        return error


def same(found, expected):
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), found
        return
    assert not isinstance(found, Exception), found
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for f, e in zip(found, expected, strict=True):
        if type(e) is float:  # contents may decide whether a variable is still Python's own float
            assert type(f) in (float, np.float64)
        else:
            assert type(f) is type(e)
        if e is not None:
            assert np.asarray(f).dtype == np.asarray(e).dtype
            np.testing.assert_allclose(f, e, rtol=1e-10, atol=1e-12)


def check(jitted, function, make):
    """Call both with fresh arguments, and compare what they return, raise and write."""
    ours, theirs = make(), make()
    expected = _outcome(function, theirs)
    same(_outcome(jitted, ours), expected)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("function", ARGUMENTS, ids=lambda f: f.__name__)
def test_each_call_does_what_numpy_does(function, background):
    with pf.knobs.override(unsupported="python"):
        jitted = pf.jit(function, background=background)
        for make in ARGUMENTS[function]:
            for _ in range(_CALLS):
                check(jitted, function, make)
        for _ in range(_CALLS):
            for make in ARGUMENTS[function]:
                check(jitted, function, make)
                jitted.wait()
    assert jitted.state().counters["compile_failures"] == 0
    assert jitted.state().counters["check_failures"] == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", NATIVE, ids=lambda f: f.__name__)
def test_a_program_is_one_kernel_in_emitted_code(function):
    make = ARGUMENTS[function][0]
    with pf.knobs.override(unsupported="python"):
        jitted = pf.jit(function)
        for _ in range(_CALLS):
            check(jitted, function, make)
        before = jitted.state()
        check(jitted, function, make)
        after = jitted.state()
    assert after.emitted and after.tier == "optimized"
    changed = {k for k, n in after.counters.items() if n != before.counters[k]}
    assert after.counters["kernel_launches"] == before.counters["kernel_launches"] + 1
    assert changed <= {"calls", "kernel_launches", "guard_hits", "evaluated_ops"}
    assert not [k for k in changed if k == "python_calls"]
