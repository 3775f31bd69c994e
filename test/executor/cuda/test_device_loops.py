"""Loops of device arrays: a thread for each round, with the bits that Python gives."""

from __future__ import annotations

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from device_loops import SIZES, check, native, shared_programs
from torch_calls import get, tensor

ARGUMENTS = shared_programs.ARGUMENTS

# Functions of several units in the last place on a device, and sums that add up in another order.
INEXACT = {"softmax": 16, "every_second": 4, "upwards": 4, "branching": 4}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [n for n in ARGUMENTS if n not in ("over_time", "unending")])
def test_programs_with_independent_rounds(gpu, name):
    function = getattr(shared_programs, name)
    several = [ARGUMENTS[name](np.random.default_rng(n), n) for n in SIZES]
    jitted = native(function, *several, ulps=INEXACT.get(name, 0))
    # Neither 13 nor 13 * 13 rounds fill the last block, and 17 * 17 need several.
    for size in (13, 17):
        args = ARGUMENTS[name](np.random.default_rng(size), size)
        gpu.log.clear()
        check(jitted, function, args, ulps=INEXACT.get(name, 0))
        assert any("fusion_loop" in kernel for kernel in gpu.launched)
    assert "a loop runs round by round" not in jitted.explain()


def scaled(x, k):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * k
    return y


def test_a_launch_has_a_thread_for_each_round_of_both_loops(gpu):
    rng = np.random.default_rng(1)
    jitted = native(scaled, *[(rng.random((n, n + 1)), 2.5) for n in SIZES])
    gpu.log.clear()
    check(jitted, scaled, (rng.random((50, 61)), 1.5))
    assert len(gpu.launched) == 2  # zeros, and the loops
    check(jitted, scaled, (rng.random((1, 1)), 1.5))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_no_rounds(gpu, shape):
    rng = np.random.default_rng(1)
    jitted = native(scaled, *[(rng.random((n, n + 1)), 2.5) for n in SIZES])
    check(jitted, scaled, (np.ones(shape), 2.0))


def downwards(x, rounds):
    y = np.zeros(x.shape)
    for i in range(x.shape[0] - 1, -1, -3):
        for j in range(x.shape[1] - 1, 0, -2):
            v = x[i, j]
            for _ in range(rounds):
                v = v * 0.5 + x[i, j - 1]
            y[i, j] = v
    return y


def test_negative_steps(gpu):
    rng = np.random.default_rng(1)
    jitted = native(downwards, *[(rng.random((n, n + 1)), 3) for n in SIZES])
    for shape, rounds in (((16, 9), 5), ((1, 1), 5), ((31, 2), 0)):
        check(jitted, downwards, (rng.random(shape), rounds))


def several(x, k):
    low, high, count = np.zeros(x.shape[0]), np.ones(x.shape), np.zeros(x.shape[0], np.int32)
    for i in range(x.shape[0]):
        least, n = x[i, 0], 0
        for j in range(x.shape[1]):
            if x[i, j] < least:
                least = x[i, j]
            if x[i, j] > k:
                n += 1
                high[i, j] = x[i, j] / k
        low[i] = least
        count[i] = n
    return low, high, count


def test_several_results(gpu):
    rng = np.random.default_rng(1)
    jitted = native(several, *[(rng.random((n, n + 1)), 0.5) for n in SIZES])
    check(jitted, several, (rng.random((33, 10)), 0.25))


def integers(x, k):
    y = np.zeros(x.shape, np.int64)
    b = np.zeros(x.shape, bool)
    for i in range(x.shape[0]):
        n, m = x[i], 0
        while n > 0 and m < 70:
            n = n // 2 if n % 2 == 0 else n - k
            m += 1
        y[i] = m * k - x[i] % 7
        b[i] = m > 5
    return y, b


def test_ints_and_bools(gpu):
    rng = np.random.default_rng(1)
    args = [(rng.integers(1, 1000, 5 * n), 3) for n in SIZES]
    jitted = native(integers, *args)
    check(jitted, integers, (rng.integers(-50, 100_000, 300), 1))


def halves(x, w):
    y = np.zeros(x.shape, np.float16)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j] + x[i, j]
    return y


def test_halves(gpu):
    rng = np.random.default_rng(1)

    def args(n):
        return rng.random((n, n + 1)).astype(np.float16), rng.random(n + 1).astype(np.float16)

    check(native(halves, *map(args, SIZES)), halves, args(19))


def rows(x, w):
    """A row of its own for each round, and a product with an array that is read as a whole."""
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        row = x[i] * 2.0
        for j in range(1, x.shape[1]):
            row[j] = row[j] + row[j - 1] * w[j]
        y[i] = row - w
    return y


@pytest.mark.parametrize("columns", [40, 520])
def test_temporaries_of_rounds(gpu, columns):
    """Small ones of known size are a thread's own, others in the workspace."""
    rng = np.random.default_rng(1)
    native(rows, (rng.random((3, columns)), rng.random(columns)))


def test_temporaries_of_unknown_size(gpu):
    rng = np.random.default_rng(1)
    jitted = native(rows, *[(rng.random((2 * n, n)), rng.random(n)) for n in SIZES])
    for shape in ((300, 5), (2, 90), (0, 3)):
        check(jitted, rows, (rng.random(shape), rng.random(shape[1])))


TABLE = np.array([[0.25, -1.0, 0.5], [2.0, 0.0, 1.0]])


def closed_over(x):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        y[i] = TABLE[i % 2, i % 3] * x[i] + TABLE[1, 0]
    return y


def literal(x):
    w = np.array([0.25, 0.5, 0.125])
    y = np.zeros(x.shape)
    for i in range(1, x.shape[0] - 1):
        s = 0.0
        for k in range(3):
            s += w[k] * x[i + k - 1]
        y[i] = s
    return y


@pytest.mark.parametrize("function", [closed_over, literal])
def test_arrays_of_the_function(gpu, function):
    rng = np.random.default_rng(1)
    jitted = native(function, *[(rng.random(4 * n),) for n in SIZES])
    check(jitted, function, (rng.random(200),))


def two_loops(x):
    """The second loop reads what the first one writes; an element is taken behind both."""
    y, z = np.zeros(x.shape), np.zeros(x.shape)
    for i in range(x.shape[0]):
        y[i] = x[i] * 3.0
    for i in range(x.shape[0]):
        z[i] = y[x.shape[0] - 1 - i] + x[i]
    return z, y[0] + z[1]


def test_loops_that_follow_each_other(gpu):
    rng = np.random.default_rng(1)
    jitted = native(two_loops, *[(rng.random(4 * n),) for n in SIZES])
    check(jitted, two_loops, (rng.random(333),))


def test_arrays_with_gaps(gpu):
    rng = np.random.default_rng(1)
    jitted = pf.jit(scaled)
    for n in (*SIZES, 20):
        x = rng.random((2 * n, n))
        whole = xp.array(x)
        for host, given in ((x.T, whole.T), (x[::2], whole[::2]), (x[::-1], whole[::-1])):
            for _ in range(3):
                check(jitted, scaled, (host, 0.5), (given, 0.5))
                jitted.wait()
    before = jitted.state().counters["evaluated_ops"]
    check(jitted, scaled, (x.T, 0.5), (whole.T, 0.5))
    check(jitted, scaled, (x[::-1], 0.5), (whole[::-1], 0.5))
    assert jitted.state().counters["evaluated_ops"] == before


def test_numpy_arrays_on_a_device(gpu):
    function = shared_programs.distances
    jitted = pf.jit(function, device="cuda")
    args = ARGUMENTS["distances"](np.random.default_rng(1), 12)
    for _ in range(4):
        found = jitted(*args)
        assert isinstance(found, np.ndarray)
        assert found.tobytes() == function(*args).tobytes()
        jitted.wait()
    counters = jitted.state().counters
    assert counters["kernel_launches"]
    assert not counters["device_fallbacks"]


def test_emitted_code_launches_the_kernels(device, torch):
    """All sizes in one kernel, whose grid the emitted code computes."""
    rng = np.random.default_rng(1)
    jitted = pf.jit(scaled, strategy=[("dynamic", 1)])
    for shape in ((6, 7), (6, 7), (8, 5), (9, 4), (30, 50), (30, 50)):
        x = rng.random(shape)
        found = get(jitted(tensor(x), 2.5))
        assert found.tobytes() == scaled(x, 2.5).tobytes()
        jitted.wait()
    assert jitted.state().emitted, jitted.explain()
    before = device.calls["launched directly"]
    assert get(jitted(tensor(x), 0.5)).tobytes() == scaled(x, 0.5).tobytes()
    assert device.calls["launched directly"] == before + 2
    assert not device.failures
