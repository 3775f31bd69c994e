"""Programs as NumPy users write them: the same results and effects at every call, in every tier."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

from programs import PROGRAMS

# What no graph holds yet, by what stands in the way.
IN_PYTHON = {"double_pendulum": "attributes that rounds change"}

# Programs whose calls raise an exception: Python runs them again, and no tier is reached.
RAISING = {"a_check_that_fails_at_once", "a_check_that_fails_late"}

# Loops that stay out of kernels, by what stands in the way; calls of all others are native.
IN_THE_PLAN = {"fft_by_halves": "an array of changing shape"}


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def same(ours, theirs, tolerance, where=""):
    """Equal types, dtypes, shapes and, within the tolerance, values, of all that objects hold."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, (np.ndarray, np.generic)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        finite = np.abs(theirs)[np.isfinite(theirs)] if theirs.dtype.kind in "fc" else theirs
        size = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance * size, err_msg=where)
    elif isinstance(ours, (tuple, list)):
        assert len(ours) == len(theirs), where
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            same(a, b, tolerance, f"{where}[{k}]")
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in ours:
            same(ours[key], theirs[key], tolerance, f"{where}[{key!r}]")
    elif isinstance(ours, np.random.Generator):
        assert ours.bit_generator.state == theirs.bit_generator.state, where
    elif isinstance(ours, float):
        np.testing.assert_allclose(ours, theirs, tolerance, err_msg=where)
    elif hasattr(ours, "__dict__"):
        same(vars(ours), vars(theirs), tolerance, where)
    else:
        assert ours == theirs, where


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_what_they_do_without_jit(name):
    program, made = PROGRAMS[name], []

    def jit(function):
        made.append(pf.jit(function))
        return made[-1]

    ours, written = program.prepare(jit, program.small, np.random.default_rng(0))
    theirs, expected = program.prepare(lambda f: f, program.small, np.random.default_rng(0))
    for call in range(8):
        same(ours(), theirs(), program.tolerance, f"result of call {call}")
        same(written, expected, program.tolerance, f"after call {call}")
        for f in made:
            f.wait()
    states = [f.state() for f in made]
    tier = "python" if name in IN_PYTHON else "profiling" if name in RAISING else "optimized"
    assert {s.tier for s in states} == {tier}
    in_plan = any("round by round" in str(reason) for s in states for reason in s.reasons)
    assert in_plan == (name in IN_THE_PLAN)


def test_what_is_listed_is_there():
    assert IN_PYTHON.keys() | IN_THE_PLAN.keys() <= PROGRAMS.keys()
