"""Gradients are the leaves' own: neither copied without need, nor shared with what others hold."""

from __future__ import annotations

import contextlib

import numpy as np
import profuse as pf
import pytest
from profuse.executor.memory.output_pool import ALIGN_FROM, empty, has_own_memory

SIZES = {"small": 12, "aligned": 2000, "pooled": 40000}
EACH_SIZE = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
DATA = np.random.default_rng(3).standard_normal(max(SIZES.values()))


@EACH_SIZE
def test_arrays_that_others_refer_to_have_no_memory_of_their_own(size):
    x = empty((size,), np.dtype(float))
    assert has_own_memory(x)
    for make in (lambda: x[1:], lambda: x.reshape(-1, 2)):
        view = make()
        assert not has_own_memory(view)
        del view
        assert has_own_memory(x)
    if x.nbytes >= ALIGN_FROM:
        base = x.base
        assert base is not None and not has_own_memory(x)


def test_memory_of_others_is_none_of_an_array():
    raw = bytearray(8 * 2000 + 64)
    for buffer in (raw, memoryview(raw), np.frombuffer(raw, np.uint8)):
        assert not has_own_memory(np.ndarray((2000,), float, buffer))
    assert not has_own_memory(np.broadcast_to(1.0, (3,)))
    assert not has_own_memory(np.zeros(4000)[::2])
    assert not has_own_memory(3.0)


@contextlib.contextmanager
def compiled():
    with pf.compiled_autograd():
        yield
    pf.compiled_autograd.wait()


def leaves(size, count=2):
    return [pf.array(DATA[:size] + k, requires_grad=True) for k in range(count)]


def hook(arrays, hooked):
    for x in arrays if hooked else ():
        x.register_hook(lambda g: None)
        x.register_post_accumulate_grad_hook(lambda leaf: None)


HOOKED = pytest.mark.parametrize("hooked", [False, True], ids=["bare", "hooked"])


SHAPES = pytest.mark.parametrize("shape", [(3, 4), (50, 40), (200, 200)], ids=SIZES)


def trained(w, steps=12):
    """Steps whose gradient is that of a product, which lies in no array that was saved."""
    rows = len(w)
    a = DATA[: 5 * rows].reshape(5, -1)
    for _ in range(steps):
        w.grad = None
        loss = np.tanh(a @ w).sum()
        with compiled():
            loss.backward()
    want = a.T @ (1 - np.tanh(a @ w.data) ** 2)
    np.testing.assert_allclose(w.grad, want, rtol=1e-6, atol=1e-9)
    assert w.grad.flags.writeable and has_own_memory(w.grad)


@SHAPES
def test_gradients_that_a_run_has_made_are_not_copied(shape):
    w = pf.array(DATA[: shape[0] * shape[1]].reshape(shape), requires_grad=True)
    trained(w)
    # A copy would own its memory; what runs have made is lent.
    assert (w.grad.base is None) == (w.grad.nbytes < ALIGN_FROM)


@SHAPES
def test_gradients_behind_hooks_are_not_copied(shape, monkeypatch):
    w = pf.array(DATA[: shape[0] * shape[1]].reshape(shape), requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda leaf: None)
    trained(w)
    (made,) = pf.compiled_autograd.state().runs
    assert made.function.state().tier == "optimized"
    add, taken = pf.Array.add_gradient, []

    def watched(self, *given):
        add(self, given[0], given[1] + 1)  # the tuple refers to it, too
        taken.append(self.grad is given[0])

    monkeypatch.setattr(pf.Array, "add_gradient", watched)
    trained(w, 1)
    assert taken == [True]


@HOOKED
@EACH_SIZE
def test_leaves_with_the_same_gradient_share_no_memory(size, hooked):
    x, y = leaves(size)
    hook((x, y), hooked)
    for _ in range(12):
        x.grad = y.grad = None
        loss = ((x + y) ** 2).sum()
        with compiled():
            loss.backward()
        assert not np.shares_memory(x.grad, y.grad)
        np.testing.assert_allclose(x.grad, 2 * (x.data + y.data))
        x.grad *= 0
        np.testing.assert_allclose(y.grad, 2 * (x.data + y.data))


@EACH_SIZE
def test_what_a_hook_keeps_does_not_change_with_the_gradient(size):
    (x,) = leaves(size, 1)
    kept = []
    x.register_hook(kept.append)

    def halved(leaf):
        leaf.grad *= 0.5

    x.register_post_accumulate_grad_hook(halved)
    for _ in range(12):
        x.grad = None
        loss = (np.exp(x) * 3).sum()
        with compiled():
            loss.backward()
        np.testing.assert_allclose(kept[-1], 3 * np.exp(x.data), rtol=1e-6)
        np.testing.assert_allclose(x.grad, 1.5 * np.exp(x.data), rtol=1e-6)
    assert all(np.array_equal(g, kept[-1]) for g in kept[-2:])


@HOOKED
@pytest.mark.parametrize("keep", [lambda g: g, lambda g: g[1:], lambda g: g.reshape(2, -1)])
@EACH_SIZE
def test_what_users_keep_of_a_gradient_stays_when_more_is_added(size, keep, hooked):
    (x,) = leaves(size, 1)
    hook((x,), hooked)
    for _ in range(10):
        x.grad = None
        for k in (1, 2):
            loss = (np.sin(x) * 2).sum()
            with compiled():
                loss.backward()
            if k == 1:
                kept = keep(x.grad)
                before = kept.copy()
        np.testing.assert_array_equal(kept, before)
        np.testing.assert_allclose(x.grad, 4 * np.cos(x.data), rtol=1e-6)


@HOOKED
def test_post_accumulate_hooks_of_equal_gradients_write_to_their_own(hooked):
    """What a leaf takes is read by nothing behind it."""
    x, y, z = leaves(2000, 3)
    hook((x, y, z), hooked)

    def cleared(leaf):
        leaf.grad *= 0

    x.register_post_accumulate_grad_hook(cleared)
    y.register_post_accumulate_grad_hook(lambda leaf: None)
    z.register_post_accumulate_grad_hook(cleared)
    for _ in range(12):
        x.grad = y.grad = z.grad = None
        loss = (np.tanh(x + y) + z * 1.0).sum()
        with compiled():
            loss.backward()
        assert not x.grad.any() and not z.grad.any()
        np.testing.assert_allclose(y.grad, 1 / np.cosh(x.data + y.data) ** 2, rtol=1e-6)
