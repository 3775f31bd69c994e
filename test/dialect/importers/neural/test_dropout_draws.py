"""Dropout draws the same in every tier, and what runs again draws the same again (A11)."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
import pytest
from profuse import nn
from profuse.dialect.importers.numpy.neural.dropout_masks import kept

X = np.random.default_rng(3).standard_normal((6, 7))
W = np.random.default_rng(4).standard_normal((7, 7))
REFERENCE = 0x6627E8D5  # word 0 of Philox4x32-10 of key 0 and counter 0, as its authors publish it


def philox(i: int, offset: int, key: int) -> int:
    """Word 0 of Philox4x32-10 in Python's integers."""
    low = 0xFFFFFFFF
    words, keys = [i & low, i >> 32, offset & low, offset >> 32], [key & low, key >> 32]
    for _ in range(10):
        first, second = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [second >> 32 ^ words[1] ^ keys[0], second & low, first >> 32 ^ words[3] ^ keys[1], first & low]
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    return words[0]


def seeded(fn, *args, seed=7):
    pf.manual_seed(seed)
    return fn(*args)


def test_a11_bits_are_those_of_the_reference():
    assert philox(0, 0, 0) == REFERENCE
    key, offset = 0x123456789ABCDEF, 0x7EDCBA9876543210
    mask = kept((5, 9), 0.5, (key, offset))
    expected = [(philox(i, offset, key) >> 8) * 2.0**-24 >= 0.5 for i in range(45)]
    np.testing.assert_array_equal(mask.ravel(), expected)


def test_a11_long_arrays_are_one_sequence():
    """Blocks of evaluation leave no trace: element i is that of any array which has one."""
    keys = (5, 9)
    long = kept((40_000,), 0.25, keys)
    np.testing.assert_array_equal(kept((200, 200), 0.25, keys).ravel(), long)
    np.testing.assert_array_equal(kept((17_000,), 0.25, keys), long[:17_000])
    assert abs(long.mean() - 0.75) < 0.01
    places = [*range(0, 40_000, 613), 16_383, 16_384]
    np.testing.assert_array_equal([philox(i, 9, 5) >> 8 >= 1 << 22 for i in places], long[places])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.999])
def test_a11_native_code_drops_what_python_drops(p):
    fn = pf.jit(lambda x: nn.dropout(x, p), background=False)
    for shape in ((6, 7), (3, 5), (130, 257), (0, 4), (1,)):
        x = np.ones(shape)
        for _ in range(3):
            np.testing.assert_array_equal(seeded(fn, x), seeded(lambda x: nn.dropout(x, p), x))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a11_any_number_of_threads_drops_the_same(threads):
    x = np.ones((700, 1024), np.float32)
    expected = seeded(nn.dropout, x)
    with pf.knobs.override(threads=threads):
        fn = pf.jit(lambda x: nn.dropout(x), background=False)
        for _ in range(3):
            np.testing.assert_array_equal(seeded(fn, x), expected)


def test_each_call_and_each_site_draws_anew():
    fn = pf.jit(lambda x: (nn.dropout(x), nn.dropout(x)), background=False)
    pf.manual_seed(1)
    masks = [part != 0 for _ in range(4) for part in fn(np.ones(200))]
    assert len({m.tobytes() for m in masks}) == 8
    pf.manual_seed(1)
    again = [nn.dropout(np.ones(200)) != 0 for _ in range(8)]
    np.testing.assert_array_equal(masks, again)
    pf.manual_seed(2)
    assert (nn.dropout(np.ones(200)) != 0).tobytes() not in {m.tobytes() for m in masks}


def test_what_p_and_training_say():
    for call in (nn.dropout, pf.jit(nn.dropout, background=False)):
        for _ in range(3):
            assert call(X, 0.5, False) is X or np.array_equal(call(X, 0.5, False), X)
            np.testing.assert_array_equal(call(X, 0.0), X)
            np.testing.assert_array_equal(call(X, 1.0), np.zeros_like(X))
            np.testing.assert_array_equal(call(X, p=1), np.zeros_like(X))
    result = nn.dropout(np.ones(10_000), 0.2)
    assert set(np.unique(result)) == {0.0, 1.25} and abs(result.mean() - 1) < 0.05


def test_p_may_be_an_argument():
    fn = pf.jit(nn.dropout, background=False)
    for p in (0.1, 0.2, 0.3, 0.2, 0.1, 0.7):
        np.testing.assert_array_equal(seeded(fn, X, p), seeded(nn.dropout, X, p))
    assert fn.state().counters["python_calls"] <= 1, fn.explain()


def net(w, x):
    h = nn.dropout(np.tanh(nn.dropout(x @ w, 0.5)), 0.25)
    return (h * h).sum()


def taped(fn):
    leaf = pf.array(W.copy(), requires_grad=True)
    seeded(fn, leaf, X).backward()
    return np.asarray(leaf.grad)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "wrap", [lambda f: f, pf.checkpoint, lambda f: pf.jit(f, background=False)], ids=("plain", "checkpoint", "jit")
)
def test_gradients_have_the_masks_of_the_forward_run(wrap):
    expected = taped(net)
    fn = wrap(net)
    assert not np.array_equal(expected, seeded(pf.grad(net), W, X, seed=8))
    np.testing.assert_allclose(taped(fn), expected, rtol=1e-9, atol=1e-13)
    for grad in (pf.grad(fn, background=False), pf.jit(pf.grad(fn), background=False)):
        for _ in range(4):
            np.testing.assert_allclose(seeded(grad, W, X), expected, rtol=1e-9, atol=1e-13)

    def pulled(w, x):
        _, pull = pf.vjp(fn, w, x)
        return pull(np.float64(1.0))[0]

    for call in (pulled, pf.jit(pulled, background=False)):
        for _ in range(3):
            np.testing.assert_allclose(seeded(call, W, X), expected, rtol=1e-9, atol=1e-13)


def test_checkpoints_in_checkpoints_draw_the_same_again():
    inner = pf.checkpoint(lambda x, w: nn.dropout(np.tanh(x @ w)))
    outer = pf.checkpoint(lambda w, x: (nn.dropout(inner(nn.dropout(x), w)) ** 2).sum())
    plain = lambda w, x: (nn.dropout(nn.dropout(np.tanh(nn.dropout(x) @ w))) ** 2).sum()  # noqa: E731
    expected = taped(plain)
    np.testing.assert_allclose(taped(outer), expected, rtol=1e-12)
    np.testing.assert_allclose(seeded(pf.grad(outer), W, X), expected, rtol=1e-12)


def test_rounds_of_loops_draw_as_python_does():
    def rounds(w, x, n):
        for _ in range(n):
            x = nn.dropout(np.tanh(x @ w))
        return (x * x).sum()

    leaf = pf.array(W.copy(), requires_grad=True)
    seeded(rounds, leaf, X, 40).backward()
    grad, fn = pf.grad(rounds, background=False), pf.jit(rounds, background=False)
    for _ in range(4):
        np.testing.assert_allclose(seeded(grad, W, X, 40), np.asarray(leaf.grad), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(seeded(fn, W, X, 40), seeded(rounds, W, X, 40), rtol=1e-12)


def test_steps_in_a_jitted_loop_draw_as_python_does():
    def train(w, x, n):
        for _ in range(n):
            w = w - 0.1 * pf.grad(net)(w, x)
        return w

    expected = seeded(train, W, X, 12)
    fn = pf.jit(train, background=False)
    for _ in range(4):
        np.testing.assert_allclose(seeded(fn, W, X, 12), expected, rtol=1e-6, atol=1e-9)


def test_a_call_that_raises_draws_nothing():
    def picked(x, i):
        return nn.dropout(x)[i]

    for fn in (pf.jit(picked, background=False), pf.grad(lambda x, i: picked(x, i).sum(), background=False)):
        for _ in range(3):
            seeded(fn, np.ones(5), np.array([1]))
        pf.manual_seed(5)
        with pytest.raises(IndexError):
            fn(np.ones(5), np.array([9]))
        mask = nn.dropout(np.ones(50)) != 0
        assert fn.state().counters["python_calls"] <= 2
    assert mask.shape == (50,)


def test_threads_draw_from_one_generator():
    pf.manual_seed(3)
    expected = {nn.dropout(np.ones(64)).tobytes() for _ in range(40)}
    pf.manual_seed(3)
    seen: list[bytes] = []

    def run():
        seen.extend(nn.dropout(np.ones(64)).tobytes() for _ in range(10))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == expected and len(seen) == 40


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "a", True, None])
def test_seeds_that_are_none_are_refused(seed):
    with pytest.raises(pf.ArgumentError, match="manual_seed: seed="):
        pf.manual_seed(seed)


def test_a_trace_is_not_seeded():
    def fn(x):
        pf.manual_seed(3)
        return nn.dropout(x)

    with pytest.raises(pf.TraceError, match="manual_seed is called while tracing"):
        pf.jit(fn, unsupported="raise")(X)
    jitted = pf.jit(fn, background=False, unsupported="python")
    for _ in range(4):
        np.testing.assert_array_equal(jitted(X), fn(X))
