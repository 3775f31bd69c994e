"""Loops whose rounds take less time in kernels of their own, and the memory of such rounds."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from profuse.executor.memory.spare import Spare

WIDE = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)


def averaged(y, n):
    for _ in range(n):
        y = (y + y.T) * 0.5 + 1.0
    return y


def settled(function, *args):
    """A jitted function with its plan, which gives what Python gives."""
    jitted = pf.jit(function, background=False)
    for _ in range(4):
        np.testing.assert_allclose(jitted(*args), function(*args), rtol=1e-5, atol=1e-5)
    return jitted


def launches(jitted, *args):
    """How many kernels a call launches, in which no op is evaluated on arrays."""
    before = dict(jitted.state().counters)
    jitted(*args)
    after = jitted.state().counters
    assert after["python_calls"] == before["python_calls"]
    assert after["guard_misses"] == before["guard_misses"]
    return after["kernel_launches"] - before["kernel_launches"]


def kernels_of(jitted):
    return list(executor_of(jitted).result.kernels)


def test_rounds_across_rows_are_kernels_of_their_own():
    f = settled(averaged, WIDE, 30)
    assert not any("loop" in name for name in kernels_of(f))
    assert launches(f, WIDE, 80) == 10  # of eight rounds each, by `unroll-loops`
    assert launches(f, WIDE, 5) == 5
    assert "a loop runs round by round: transpose: kernels of each round" in f.explain()


def test_a_few_elements_stay_in_one_kernel():
    f = settled(averaged, WIDE[:32, :32].copy(), 30)
    assert any("loop" in name for name in kernels_of(f))
    assert launches(f, WIDE[:32, :32].copy(), 200) == 1
    assert "round by round" not in f.explain()


def test_strict_fusion_makes_one_kernel():
    f = pf.jit(averaged)
    f(WIDE, 30)
    with pf.strict_fusion():
        np.testing.assert_allclose(f(WIDE, 30), averaged(WIDE, 30), rtol=1e-5)
    assert any("loop" in name for name in kernels_of(f))


def settling(y, least):
    rounds = 0
    while np.abs(y - y.T).max() > least:
        y = 0.75 * y + 0.25 * y.T
        rounds += 1
    return y, rounds


def test_while_loops():
    f = pf.jit(settling, background=False)
    for least in (1e-2, 1e-3, 1e-2, 1e-3):
        y, rounds = f(WIDE, least)
        expected, wanted = settling(WIDE, least)
        assert rounds == wanted
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert not any("loop" in name for name in kernels_of(f))


def in_branches(y, n, even):
    for k in range(n):
        if (k % 2 == 0) == even:
            y = (y + y.T) * 0.5 + 1.0
        else:
            y = y * 0.5 - y.max()
    return y


def test_branches_of_rounds():
    f = pf.jit(in_branches, background=False)
    for n, even in ((7, True), (8, False), (7, True), (8, False), (9, True)):
        np.testing.assert_allclose(f(WIDE, n, even), in_branches(WIDE, n, even), rtol=1e-5)


def with_two(y, n):
    """The array of the round before stays in use for one round more."""
    old = y * 2
    for _ in range(n):
        old, y = y, (y + y.T) * 0.5 - 0.25 * old[::-1]
    return old, y


def test_arrays_that_are_still_in_use_are_not_written():
    f = pf.jit(with_two, background=False)
    for n in (30, 31, 32, 33, 1, 0):
        for found, expected in zip(f(WIDE, n), with_two(WIDE, n), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_arguments_are_not_written():
    f, given = settled(averaged, WIDE, 30), WIDE.copy()
    for n in (0, 1, 2, 3, 30):
        np.testing.assert_allclose(f(given, n), averaged(given, n), rtol=1e-5)
        np.testing.assert_array_equal(given, WIDE)


def test_results_are_not_written_by_later_calls():
    f = settled(averaged, WIDE, 30)
    kept = [f(WIDE, n) for n in (30, 31, 32)]
    f(-WIDE, 33)
    for found, n in zip(kept, (30, 31, 32), strict=True):
        np.testing.assert_allclose(found, averaged(WIDE, n), rtol=1e-5)


def test_memory_of_the_round_before_last_is_used_again():
    spare, memory = Spare(), []
    for _ in range(6):
        made = spare.take()
        made = np.empty(4) if made is None else made
        memory.append(made.ctypes.data)
        spare.keep(made)
        del made
    assert len(set(memory)) == 2


@pytest.mark.parametrize("hold", [lambda made: made, lambda made: made[1:], memoryview])
def test_memory_that_somebody_holds_is_not(hold):
    spare = Spare()
    first = np.empty(4)
    spare.keep(first)
    spare.keep(np.empty(4))
    held = hold(first)
    del first
    assert spare.take() is None
    del held
    assert spare.take() is not None


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2]])
def test_rounds_that_begin_with_another_layout(layout):
    """Kernels make arrays in C order: all rounds but the first have such, and so has the first."""
    f = settled(averaged, layout(WIDE), 30)
    assert launches(f, layout(WIDE), 80) == 11  # one puts the argument in order
    assert sum(bool(k.abi.strides) for k in executor_of(f).result.kernels.values()) == 1
    assert f.state().counters["guard_misses"] == 0
    x = np.asfortranarray(WIDE)
    np.testing.assert_allclose(f(x, 0), x)
    assert not np.shares_memory(f(x, 0), x)


def differences(y, start, n):
    for _ in range(n):
        y = start + 0.5 * np.sin(y.T)
    return y


def test_what_begins_a_loop_keeps_its_layout_elsewhere():
    x = np.asfortranarray(WIDE)
    f = settled(lambda n: differences(x, x, n), 30)
    assert f.state().counters["guard_misses"] == 0
    np.testing.assert_allclose(differences(x, x, 9), pf.jit(differences)(x, x, 9), rtol=1e-5)


def test_gradients_of_such_loops():
    def loss(y):
        for _ in range(20):
            y = (y + y.T) * 0.25 + np.tanh(y)
        return (y * y).sum()

    x = WIDE.astype(np.float64)
    value, gradient = pf.jit(pf.value_and_grad(loss), background=False)(x)
    step = np.zeros_like(x)
    step[3, 5] = 1e-3
    wanted = (loss(x + step) - loss(x - step)) / 2e-3
    np.testing.assert_allclose(value, loss(x), rtol=1e-9)
    np.testing.assert_allclose(gradient[3, 5], wanted, rtol=1e-3)
