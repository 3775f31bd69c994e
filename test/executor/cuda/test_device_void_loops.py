"""Loops of device arrays whose runs are void, and loops that run round by round."""

from __future__ import annotations

import math

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from device_loops import SIZES, check, native, shared_programs
from profuse.lowering.gpu.loops import loop_steps


def picked(x, where):
    y = np.zeros(where.shape[0])
    for i in range(where.shape[0]):
        y[i] = x[where[i]] * 2.0
    return y


def inverse(x, k):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += k / float(x[i, j])
            y[i, j] = s
    return y


def factorials(x):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        n = 1
        for k in range(1, int(x[i]) + 1):
            n *= k
        y[i] = n
    return y


def against_one(x, k):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        y[i] = x[i] - x[k]
    return y


def test_what_is_forbidden_from_the_beginning_is_not_begun(gpu):
    rng = np.random.default_rng(1)
    jitted = native(against_one, *[(rng.random(4 * n), 3) for n in SIZES])
    check(jitted, against_one, (rng.random(30), -30))
    assert jitted.state().counters["voided_launches"] == 0
    for k in (30, -31, 2**40):
        with pytest.raises(IndexError):
            jitted(xp.array(rng.random(30)), k)
    assert jitted.state().counters["voided_launches"] == 3


def test_an_index_out_of_range_raises_what_numpy_raises(gpu):
    rng = np.random.default_rng(1)
    args = [(rng.random(n), rng.integers(0, n, 40 * n)) for n in SIZES]
    jitted = native(picked, *args)
    x, where = rng.random(10), rng.integers(-10, 10, 500)
    check(jitted, picked, (x, where))
    assert jitted.state().counters["voided_launches"] == 0
    where[431] = 10
    with pytest.raises(IndexError):
        jitted(xp.array(x), xp.array(where))
    assert jitted.state().counters["voided_launches"] == 1
    where[431] = -10
    check(jitted, picked, (x, where))
    assert jitted.state().counters["voided_launches"] == 1


def test_a_division_by_zero_raises_what_python_raises(gpu):
    rng = np.random.default_rng(1)
    jitted = native(inverse, *[(rng.random((n, n + 1)) + 1, 2.0) for n in SIZES])
    x = rng.random((30, 11)) + 1
    x[17, 3] = 0.0
    given = xp.array(x)
    with pytest.raises(ZeroDivisionError):
        jitted(given, 2.0)
    assert jitted.state().counters["voided_launches"] == 1
    assert given.get().tobytes() == x.tobytes()
    check(jitted, inverse, (x + 1, 2.0))


def test_ints_that_leave_64_bits_are_pythons(gpu):
    jitted = native(factorials, *[(np.arange(n) % 15,) for n in SIZES])
    check(jitted, factorials, (np.arange(400) % 20,))
    assert jitted.state().counters["voided_launches"] == 0
    check(jitted, factorials, (np.arange(26),))
    assert jitted.state().counters["voided_launches"] == 1


# --- what stays in the plan ----------------------------------------------------------------------


def running(x):
    y = x * 1.0
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] * 0.5 + x[i]
    return y


def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += float(x[i])
    return s


def reasons(jitted):
    start = "a loop runs round by round: on a GPU, "
    return [r.removeprefix(start) for r in jitted.state().reasons if r.startswith(start)]


@pytest.mark.parametrize(
    "function, why",
    [
        (running, "rounds write an array at places that others read or write"),
        (total, "a round hands on a number to the next one"),
    ],
)
def test_rounds_that_depend_on_each_other_stay_in_the_plan(gpu, function, why):
    x = np.random.default_rng(1).random(30)
    jitted = pf.jit(function)
    gpu.log.clear()
    for _ in range(3):
        check(jitted, function, (x,))
        jitted.wait()
    assert reasons(jitted) == [f"rounds cannot run at one time: {why} (1x)"]
    assert not any("fusion_loop" in kernel for kernel in gpu.launched)


def test_loops_in_such_rounds_have_kernels(gpu):
    function = shared_programs.over_time
    jitted = pf.jit(function)
    for n in (*SIZES, 12):
        args = shared_programs.ARGUMENTS["over_time"](np.random.default_rng(n), n)
        for _ in range(3):
            check(jitted, function, args)
            jitted.wait()
    gpu.log.clear()
    check(jitted, function, args)
    assert sum("fusion_loop" in kernel for kernel in gpu.launched) >= 3  # steps


def halved(table, where):
    y = np.zeros(where.shape[0])
    for i in range(where.shape[0]):
        r = table[where[i]]
        while r > 0.5:
            r = r * 0.75
        y[i] = r
    return y


def test_rounds_that_might_not_end_beside_some_that_may_raise(gpu):
    table, where = np.array([0.25, 3.125, 0.5]), np.arange(6) % 3
    jitted = pf.jit(halved)
    for _ in range(3):
        check(jitted, halved, (table, where))
        jitted.wait()
    assert "a round that might not end stands beside rounds that may raise (1x)" in reasons(jitted)


def long_rounds(x):
    y = np.zeros(20)
    for i in range(20):
        y[i] = np.sqrt(x + i).max()
    return y


def long_rounds_of_elements(x):
    y = np.zeros(20)
    for i in range(20):
        s = 0.0
        for j in range(x.shape[0]):
            s += math.sqrt(x[j] + i)
        y[i] = s
    return y


@pytest.mark.parametrize("function, kept", [(long_rounds, 1), (long_rounds_of_elements, 0)])
def test_a_few_long_rounds_of_arrays_stay_in_the_plan(gpu, monkeypatch, function, kept):
    """Rounds of single elements do not: nothing else would run them on the device."""
    monkeypatch.setattr(loop_steps, "_LONG", 1e3)  # rounds that take long there do so in Python, too
    x = np.random.default_rng(1).random(30)
    jitted = pf.jit(function)
    with pf.knobs.override(cache=False, workers=0):
        for _ in range(3):
            check(jitted, function, (x,))
            jitted.wait()
    why = "there are only 20 rounds, and each of them takes long (1x)"
    assert reasons(jitted) == [why] * kept
