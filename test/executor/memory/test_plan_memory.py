"""Intermediates of plans: dropped after their last use, laid into one block, never handed out."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import profuse as pf
import pytest
from dispatched import hits, outcome, warm
from every_case import EVERY_CASE
from hypothesis import given, settings
from hypothesis import strategies as st
from profuse.executor.dispatch.leaf_spec import KernelStep
from profuse.executor.dispatch.leaf_values import MadeValue
from profuse.executor.dispatch.leaves.leaf import places_of
from profuse.executor.memory import output_pool, thread_block
from profuse.executor.settings.knobs import knobs

N = 256
ARRAY = N * N * 4  # bytes
X = np.linspace(-1, 1, N * N, dtype=np.float32).reshape(N, N)
W = np.eye(N, dtype=np.float32)[::-1].copy()


def chain(x, w):
    """Twelve groups of two ops, products between them."""
    for _ in range(6):
        x = np.tanh(x @ w) * 0.5 + x
    return x


@pytest.fixture(autouse=True)
def small_groups():
    with knobs.override(max_fusion_ops=2, cache=False):
        yield
    thread_block.release()


@pytest.mark.parametrize("memory", ["emitted", "block", "pool"])
def test_peak_of_a_long_chain(memory, monkeypatch):
    native = memory == "emitted"
    if memory == "pool":
        monkeypatch.setattr(thread_block, "MOST_BYTES", 0)
    with knobs.override(native_dispatch=native):
        f = pf.jit(chain, background=False)
        for _ in range(3):
            f(X, W)
    assert f.state().counters["kernels_compiled"] >= 9
    assert f.state().emitted == native
    np.testing.assert_allclose(f(X, W), chain(X, W), rtol=1e-5)
    monkeypatch.setattr(output_pool, "pool", output_pool.BlockPool())
    thread_block.release()
    gc.collect()
    tracemalloc.start()
    f(X, W)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The result and three arrays at once, one of them being made; twelve without reuse.
    assert taken < 4.2 * ARRAY


def test_arrays_between_kernels_need_no_array_objects():
    f = warm(chain, X, W)
    lent = []
    pool_lend, take = output_pool.pool.lend, thread_block.take
    f(X, W)
    held = thread_block.held()
    assert 2 * ARRAY <= held <= 4 * ARRAY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_pool.pool, "lend", lambda n: lent.append(n) or pool_lend(n))
        before = hits(f)
        f(X, W)
        assert hits(f) == before + 1
    assert len(lent) == 1  # the result
    assert thread_block.take is take
    assert thread_block.held() == held


def test_small_intermediates_lie_on_the_stack():
    x = X[:8, :8].copy()
    f = warm(chain, x, x)
    thread_block.release()
    np.testing.assert_allclose(f(x, x), chain(x, x), rtol=1e-5, atol=2e-6)
    assert thread_block.held() == 0


def test_every_size_of_a_dynamic_plan():
    def fn(x, w):
        y = np.tanh(x * 2) + w
        return np.exp(y * w + x) * y + (x - w) * y

    sizes = [(3, 5), (64, 64), (4, 7), (300, 2), (2, 300), (7, 7)] * 3
    calls = [(X[:n, :m].copy(), W[:n, :m].copy()) for n, m in sizes]
    assert outcome(fn, calls, native=True) == outcome(fn, calls, native=False)

    f = pf.jit(fn, strategy=[("dynamic", 2)], background=False)
    for _ in range(3):
        for x, w in calls:
            np.testing.assert_allclose(f(x, w), fn(x, w), rtol=1e-4, atol=1e-5)
    assert f.state().emitted, f.explain()
    before = hits(f)
    f(*calls[3])
    assert hits(f) == before + 1
    assert thread_block.held() > 0


def test_a_call_within_a_call_gets_memory_of_its_own():
    """A finalizer runs on the same thread, between the kernels of a call that is under way."""
    f = warm(lambda x, w: (np.tanh(x + w) * x - w, np.exp(x * w) + x), X, W)
    want = f(X, W)
    got = []

    class Late:
        def __del__(self):
            got.append(f(X + 1, W))

    empty, armed = output_pool.empty, []

    def collecting(shape, dtype):
        if armed:
            armed.clear()
            Late()
        return empty(shape, dtype)

    g = pf.jit(lambda x, w: (np.tanh(x + w) * x - w, np.exp(x * w) + x), background=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_pool, "empty", collecting)
        for run in range(5):
            got.clear()
            armed[:] = [True]
            again = g(X, W)
            assert len(got) == (run > 0)  # the first run profiles
            for a, b in zip(again, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert g.state().emitted


def test_whoever_holds_a_block_keeps_it():
    thread_block.release()
    one = thread_block.take(1 << 16)
    assert thread_block.take(1 << 10) is not one
    address = one.ctypes.data
    also = [one]
    del one
    assert thread_block.take(1 << 10).ctypes.data != address
    del also
    assert thread_block.take(1 << 10).ctypes.data == address


def test_blocks_are_bounded_counted_and_released():
    thread_block.release()
    with knobs.override(arena_bytes=1 << 16):
        thread_block.take(1 << 20)
        assert thread_block.held() == 0
        thread_block.take(1 << 15)
        assert 1 << 15 <= thread_block.held() <= 1 << 16
    f = warm(chain, X, W)
    f(X, W)
    assert thread_block.held() > 1 << 16
    f.flush()
    assert thread_block.held() == 0


def test_threads_have_blocks_of_their_own():
    thread_block.release()
    f = warm(chain, X, W)
    want = [f(X + k, W) for k in range(4)]
    wrong, start, held = [], threading.Barrier(4), []

    def work(k):
        start.wait()
        wrong.extend(k for _ in range(12) if not np.array_equal(f(X + k, W), want[k]))
        held.append(thread_block.held())
        start.wait()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    one = thread_block.held()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert max(held) > 2 * one
    gc.collect()
    assert thread_block.held() == one  # theirs died with them


def test_an_exception_in_the_middle_frees_the_block():
    f = warm(lambda x, i: (np.tanh(x + 1) * x)[i] + 1, X, np.array([0, 3]))
    f(X, np.array([0, 3]))
    thread_block.release()
    for _ in range(50):
        with pytest.raises(IndexError):
            f(X, np.array([0, N]))
    before = hits(f)
    assert f(X, np.array([1, 2])).shape == (2, N)
    assert hits(f) == before + 1
    held = thread_block.held()
    assert thread_block.take(16).nbytes == held


def test_what_an_op_returns_as_a_view_stays():
    """Evaluated ops hand views of intermediates out; their memory is not used again."""

    def fn(x, w):
        y = np.tanh(x) * w
        z = np.arcsinh(y + 1j).real[1:-1]  # arcsinh of complex numbers is not fused
        u = np.exp(z[0] * 0.5) + y
        return z, np.tanh(u * w) - u

    f = pf.jit(fn, background=False)
    for _ in range(4):
        z, u = f(X, W)
    c = f.state().counters
    assert c["kernel_launches"] > 0
    assert c["evaluated_ops"] > 0
    kept = z.copy(), u.copy()
    f(X * 2, W)
    for got, was, want in zip((z, u), kept, fn(X, W), strict=True):
        assert np.array_equal(got, was)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_results_and_arguments_leak_nothing():
    x, w = X[:64, :64].copy(), W[:64, :64].copy()
    f = warm(chain, x, w)
    for _ in range(10):
        f(x, w)
    gc.collect()
    counts, blocks = [sys.getrefcount(o) for o in (x, w)], sys.getallocatedblocks()
    held = thread_block.held()
    for _ in range(500):
        f(x, w)
    gc.collect()
    assert [sys.getrefcount(o) for o in (x, w)] == counts
    assert abs(sys.getallocatedblocks() - blocks) < 200
    assert thread_block.held() == held > 0
    seen = weakref.ref(f(x, w))
    assert seen() is None


@settings(max_examples=200 if EVERY_CASE else 100, deadline=None)
@given(st.data())
def test_places_of_live_arrays_never_overlap(data):
    """Programs of random kernels: nothing is written where something is read later."""
    count = data.draw(st.integers(1, 12))
    values: dict = {}
    steps: list[KernelStep] = []
    for _ in range(count):
        known = list(values)
        operands = tuple(data.draw(st.lists(st.sampled_from(known), max_size=3)) if known else ())
        results = tuple(len(values) + k for k in range(data.draw(st.integers(1, 2))))
        for r in results:
            values[r] = MadeValue(np.dtype(np.uint8), (data.draw(st.integers(0, 500)),))
        steps.append(KernelStep(None, operands, results, None))  # type: ignore[arg-type]
    outputs = data.draw(st.lists(st.sampled_from(list(values)), min_size=1, max_size=2))
    made = places_of(steps, values, outputs)
    starts = list(itertools.accumulate(made.rooms, initial=0))
    offsets = {v: starts[place] for v, place in made.where.items()}
    assert set(offsets) == set(values) - set(outputs)
    last = {v: k for k, step in enumerate(steps) for v in (*step.results, *step.operands)}
    first = {v: k for k, step in enumerate(steps) for v in step.results}

    def ends(v):
        return offsets[v] + values[v].sizes[0]

    for a in offsets:
        assert offsets[a] % output_pool.ALIGNMENT == 0
        assert ends(a) <= made.total
        for b in offsets:
            if a < b and first[b] <= last[a]:
                apart = ends(a) <= offsets[b] or ends(b) <= offsets[a]
                assert apart or not values[a].sizes[0] or not values[b].sizes[0]
    assert made.total <= sum(-(-values[v].sizes[0] // 64) * 64 for v in offsets)
