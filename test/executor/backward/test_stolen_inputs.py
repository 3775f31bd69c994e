"""Arrays that nobody else holds are given to the kernels to write over (R4.29, R4.42)."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE

SIZE = 5000


@pytest.fixture(autouse=True)
def _foreground():
    with pf.knobs.override(background=False):
        yield


def leaf():
    return pf.array(np.linspace(0.0, 1.0, SIZE), requires_grad=True)


def stolen():
    """How many results were made in the memory of inputs."""
    runs = pf.compiled_autograd.state().runs
    return sum(made.function.state().counters["donated_results"] for made in runs)


def backward(loss, **how):
    with pf.compiled_autograd():
        loss.backward(**how)


def of_exp(keep, constant=None, **how):
    """Runs of a program that saves ``exp(x)``; what ``keep`` makes of that is held meanwhile."""
    for _ in range(4):
        x = leaf()
        y = np.exp(x * 1.0)
        address, held = y.data.ctypes.data, keep(y)
        with pf.no_grad():
            before = None if held is None else np.array(held)
        loss = (y * 1.0).sum()
        del y
        backward(loss, **how)
        np.testing.assert_allclose(x.grad, np.exp(x.data))
        if held is not None:
            with pf.no_grad():
                np.testing.assert_array_equal(held, before)
                assert not np.may_share_memory(np.asarray(held), x.grad)
    return x.grad.ctypes.data == address


def test_r4_42_a_saved_array_that_nobody_else_holds_becomes_the_gradient():
    assert of_exp(lambda y: None)
    assert stolen() == 3  # but the profiled run


@pytest.mark.parametrize(
    "keep",
    [lambda y: y, lambda y: y.data, lambda y: y.data[2:9], lambda y: memoryview(y.data)],
    ids=["the array", "its elements", "a view", "a buffer"],
)
def test_r4_42_what_somebody_holds_stays_as_it_is(keep):
    assert not of_exp(keep) and stolen() == 0


def test_r4_42_what_a_retained_graph_holds_stays_as_it_is():
    for _ in range(4):
        x = leaf()
        loss = (np.exp(x * 1.0) * 1.0).sum()
        for _ in range(3):
            x.grad = None
            backward(loss, retain_graph=True)
            np.testing.assert_allclose(x.grad, np.exp(x.data))
    assert stolen() == 0


def test_r4_42_memory_of_another_owner_stays_as_it_is():
    """Nobody holds the array any more, but its memory."""
    for _ in range(4):
        memory = bytearray(np.full(SIZE, 3.0).tobytes())
        x, before = leaf(), bytes(memory)
        scale = pf.array(np.frombuffer(memory), copy=None)
        loss = (np.tanh(x) * scale).sum()
        del scale
        backward(loss)
        assert memory == before
        np.testing.assert_allclose(x.grad, 3.0 / np.cosh(x.data) ** 2)


def test_r4_42_one_array_in_two_places_is_not_written_to():
    x, y = leaf(), leaf()
    for _ in range(4):
        x.grad = y.grad = None
        c = np.full(SIZE, 2.0)
        loss = (x * c).sum() + (y * c).sum()
        backward(loss)
        np.testing.assert_array_equal(x.grad, c)
        np.testing.assert_array_equal(y.grad, c)


def test_r4_42_hooks_find_leaves_and_gradients_as_ever():
    seen = []
    for _ in range(4):
        x = leaf()
        x.register_hook(lambda g: seen.append(np.array(g)))
        x.register_post_accumulate_grad_hook(lambda a: seen.append(np.array(a.grad)))
        backward((np.exp(x * 1.0) * 1.0).sum())
        np.testing.assert_allclose(x.grad, np.exp(x.data))
    assert len(seen) == 8
    for g in seen:
        np.testing.assert_allclose(g, np.exp(x.data))


def test_r4_42_programs_in_which_much_is_held_and_much_is_not():
    rng = np.random.default_rng(3)
    unary = [np.tanh, np.exp, np.sin, lambda a: a * 0.5, np.abs, lambda a: a + 1.0]
    for seed in range(12 if EVERY_CASE else 5):
        picks = rng.integers(0, 6, 8)
        for _ in range(4):
            x = leaf()
            values, held = [x], []
            for k, pick in enumerate(picks):
                values.append(np.clip(unary[pick](values[-1] * values[k // 2]), -2.0, 2.0))
                if (pick + k + seed) % 3 == 0:
                    held.append((values[-1].data, np.array(values[-1].data)))
            loss = sum(v.mean() for v in values[-3:])
            del values
            wanted = pf.gradients(loss, x, retain_graph=True)
            backward(loss)
            np.testing.assert_allclose(x.grad, wanted, rtol=1e-9, atol=1e-12)
            for array, before in held:
                np.testing.assert_array_equal(array, before)
