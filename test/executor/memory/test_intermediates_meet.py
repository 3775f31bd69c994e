"""Calls within calls, threads, forks, exceptions and many calls do not mix up intermediates."""

from __future__ import annotations

import gc
import os
import sys
import threading

import numpy as np
import profuse as pf
import pytest
from dispatched import outcome
from every_case import EVERY_CASE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from internals import kept_frames
from placed import WAYS, W, X, chain, placed, ready
from profuse.executor.memory import intermediates, output_pool, thread_block
from profuse.executor.settings.knobs import knobs
from test_fork_lock import in_child
from test_random_graphs import SIZES, graphs, inputs_for, run

pytestmark = pytest.mark.usefixtures("small_groups_in_python")


def test_a_finalizer_that_calls_between_kernels(frames, monkeypatch):
    empty, armed, inside = output_pool.empty, [], []

    class Late:
        def __del__(self):
            inside.append(f(X + 1, W))

    def collecting(shape, dtype):
        if armed and len(frames) > 0:
            armed.clear()
            Late()
        return empty(shape, dtype)

    monkeypatch.setattr(output_pool, "empty", collecting)
    f = ready(chain, X, W)  # its last kernel makes the result while the block is in use
    for _ in range(5):
        frames.clear()
        inside.clear()
        armed[:] = [True]
        np.testing.assert_allclose(f(X, W), chain(X, W), rtol=1e-5)
        assert len(inside) == 1
        np.testing.assert_allclose(inside[0], chain(X + 1, W), rtol=1e-5)
        outer, nested = frames
        assert placed(outer)
        assert not placed(nested)


def test_an_exception_between_kernels(frames):
    f = ready(lambda x, k: np.exp(np.tanh(x * k) + x) * k, X, 3, way="dynamic")
    held = []
    for _ in range(10):
        with pytest.raises(pf.ProfuseError) as error:
            f(X, 1 << 2000)
        held.append(error)
    want = np.exp(np.tanh(X * 3) + X) * 3
    np.testing.assert_allclose(f(X, 3), want, rtol=1e-4)
    del held, error
    gc.collect()
    for _ in range(2):
        np.testing.assert_allclose(f(X, 3), want, rtol=1e-4)
    assert placed(frames[-1])


@pytest.mark.parametrize("way", WAYS)
def test_threads_have_blocks_of_their_own(way):
    f = ready(chain, X, W, way=way)
    want = [f(X + k, W) for k in range(4)]
    wrong, held, start = [], [], threading.Barrier(5)
    one, over = thread_block.held(), threading.Event()

    def work(k):
        start.wait()
        wrong.extend(k for _ in range(20) if not np.array_equal(f(X + k, W), want[k]))
        start.wait()
        start.wait()

    def release():
        while not over.is_set():
            thread_block.release()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    releasing = threading.Thread(target=release)
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    try:
        releasing.start()
        start.wait()
        start.wait()
        over.set()
        releasing.join()
        held.append(thread_block.held())
        start.wait()
    finally:
        sys.setswitchinterval(before)
        over.set()
    for t in threads:
        t.join()
    assert not wrong
    f(X, W)
    assert thread_block.held() == one


def test_a_fork_between_kernels(frames, monkeypatch):
    empty, armed, exits = output_pool.empty, [], []

    def forking(shape, dtype):
        if armed:
            armed.clear()
            exits.append(in_child(lambda: np.array_equal(f(X, W), want)))
        return empty(shape, dtype)

    monkeypatch.setattr(output_pool, "empty", forking)
    f = ready(chain, X, W)
    want = f(X, W)
    armed.append(True)
    np.testing.assert_array_equal(f(X, W), want)
    assert exits == [0]


@pytest.mark.optimised  # five kernels a call: unoptimised code would run for half a minute
@pytest.mark.parametrize("way", WAYS)
def test_ten_thousand_calls_leave_nothing(way):
    x, w = X[:64, :64].copy(), W[:64, :64].copy()
    f = ready(chain, x, w, way=way)
    for _ in range(200):
        f(x, w)
    gc.collect()
    counts, held = [sys.getrefcount(o) for o in (x, w)], thread_block.held()
    blocks = sys.getallocatedblocks()
    for _ in range(10_000 if EVERY_CASE else 1000):
        f(x, w)
    gc.collect()
    assert [sys.getrefcount(o) for o in (x, w)] == counts
    assert abs(sys.getallocatedblocks() - blocks) < 200
    assert thread_block.held() == held > 0
    assert len(kept_frames().frames) <= 2
    thread_block.release()
    assert thread_block.held() == 0


# --- random graphs -------------------------------------------------------------------------------


@settings(
    max_examples=int(os.environ.get("PROFUSE_RANDOM_GRAPHS", "8")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(graphs(most=15), st.integers(2, 4), st.sampled_from(["static", "dynamic"]), st.booleans())
def test_random_graphs_agree_without_the_block_and_in_emitted_code(graph, ops, behavior, in_a_loop):
    """Each value, and each count; whatever is read after its end is poison."""
    steps, outputs = graph
    calls = [(*inputs_for(SIZES[k], k), 9) for k in (0, 0, 0, 0, 1, 1, 0, 2, 2, 2, 1)]
    given_out = thread_block.frame

    def poisoned(inner, sizes):
        block, made = given_out(inner, sizes)
        for array in made:
            if array is not None:
                array.view(np.uint8).fill(0xFF)
        return block, made

    def fn(x, *rest):
        *rest, count = rest
        if in_a_loop:
            scale = np.cos(x * rest[0])
            x = pf.fori_loop(0, count, lambda k, y: np.sin(np.tanh(y * scale) + rest[0]) - scale, x)
        return run(steps, outputs, [x, *rest])

    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(intermediates, "ALIGN_FROM", 1)  # arrays of every size are placed
        patch.setattr(thread_block, "frame", poisoned)
        before = pf.set_fusion_strategy([(behavior, 2)])
        try:
            with knobs.override(max_fusion_ops=ops, background=False):
                python = outcome(fn, calls, native=False)
                assert python == outcome(fn, calls, native=True)
                with knobs.override(arena_bytes=0):
                    assert python == outcome(fn, calls, native=False)
        finally:
            pf.set_fusion_strategy(before)
