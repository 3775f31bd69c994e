"""Loops as kernels: each program is one kernel, whatever the number of rounds, and right."""

from __future__ import annotations

import loop_programs
import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from loop_programs import ARGUMENTS

# Programs whose kernels round in another order than NumPy does.
ROUNDS = {"lu", "lu_of_slices", "cholesky", "triangular_solve", "csr_product", "recurrence"}
ONE_KERNEL = [name for name in ARGUMENTS if name not in ()]


def _same(found, expected, exact=False):
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for f, e in zip(found, expected, strict=True):
        assert np.asarray(f).dtype == np.asarray(e).dtype
        assert np.shape(f) == np.shape(e)
        if exact:
            np.testing.assert_array_equal(f, e)
        else:
            np.testing.assert_allclose(f, e, rtol=1e-11, atol=1e-12)


def _run(name, sizes, calls=3):
    """Call a program with arguments of these sizes; returns it, jitted."""
    function = getattr(loop_programs, name)
    jitted = pf.jit(function)
    for size in sizes:
        args = ARGUMENTS[name](np.random.default_rng(size), size)
        given = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        expected = function(*args)
        for _ in range(calls):
            _same(jitted(*args), expected)
        for a, b in zip(args, given, strict=True):
            np.testing.assert_array_equal(a, b)  # arguments are never written
    return jitted


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_a_loop_is_one_kernel(name):
    jitted = _run(name, [11])
    counters = jitted.state().counters
    before = counters["kernel_launches"], counters["evaluated_ops"]
    args = ARGUMENTS[name](np.random.default_rng(11), 11)
    jitted(*args)
    counters = jitted.state().counters
    assert counters["kernel_launches"] == before[0] + 1
    assert counters["evaluated_ops"] == before[1]
    assert counters["voided_launches"] == counters["compile_failures"] == 0
    assert len(executor_of(jitted).result.kernels) == 1


@pytest.mark.parametrize("name", ARGUMENTS)
def test_loops_of_other_sizes(name):
    jitted = _run(name, [9, 12, 5, 7, 3])
    assert jitted.state().counters["compile_failures"] == 0
