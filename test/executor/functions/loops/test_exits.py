"""Loops and functions that raise where contents decide: native, and Python's where they do."""

from __future__ import annotations

import traceback

import exit_programs
import numpy as np
import profuse as pf
import pytest
from exit_programs import FORMS
from native_loops import called, native


@pytest.fixture(autouse=True)
def _python():
    """Python repeats void runs; no call is Python's for the time that it takes."""
    with pf.knobs.override(unsupported="python", demote="off"):
        yield


def _trail(error):
    """The lines of the programs that a traceback leads through."""
    every = traceback.extract_tb(error.__traceback__)
    return [(f.name, f.lineno) for f in every if f.filename == exit_programs.__file__]


@pytest.mark.parametrize("function", FORMS, ids=lambda f: f.__name__)
def test_forms(function):
    good, bad = FORMS[function]
    jitted = native(function, *good)
    for args in bad * 2:
        found, error, held = called(jitted, args)
        _, wanted, kept = called(function, args)
        assert wanted is not None and found is None
        assert type(error) is type(wanted) and error.args == wanted.args
        assert _trail(error) == _trail(wanted)
        for a, b in zip(held, kept, strict=True):
            np.testing.assert_array_equal(a, b)
    counters = jitted.state().counters
    assert counters["voided_launches"] >= 2 * len(bad)
    launches = counters["kernel_launches"]
    np.testing.assert_allclose(called(jitted, good)[0], called(function, good)[0], rtol=1e-12)
    after = jitted.state().counters
    assert after["kernel_launches"] > launches
    assert (after["traces"], after["compiles"]) == (1, 1)
    assert "raises an exception is void: Python repeats it" in jitted.explain()
