"""Output memory: aligned, never shared between live results, reused after death, bounded."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
from profuse.executor.memory import output_pool
from profuse.executor.settings.knobs import knobs

F32 = np.dtype(np.float32)


def test_large_arrays_are_aligned_and_contiguous():
    for n in (1, 100, 2048, 2049, 40_000, 300_001):
        x = output_pool.empty((n,), F32)
        assert x.shape == (n,)
        assert x.flags.c_contiguous
        assert x.flags.writeable
        assert n < 2048 or output_pool.data_pointer(x) % output_pool.ALIGNMENT == 0
        assert output_pool.data_pointer(x) == x.ctypes.data


def test_memory_is_reused_only_after_every_reference_is_gone():
    x = output_pool.empty((1000, 100), F32)
    address = x.ctypes.data
    view = x[10:, ::2]
    del x
    other = output_pool.empty((1000, 100), F32)
    assert not np.shares_memory(view, other)
    assert other.ctypes.data != address
    del view
    gc.collect()
    assert output_pool.empty((1000, 100), F32).ctypes.data == address


def test_a_returned_block_is_lent_once():
    pool = output_pool.BlockPool()
    pool.lend(1 << 16)  # back at once: nobody holds it
    live = [pool.lend(1 << 16) for _ in range(3)]
    assert len({ctypes.addressof(x) for x in live}) == 3
    assert pool.held == 0


def test_pool_is_bounded():
    with knobs.override(output_pool_bytes=1 << 20):
        kept = [output_pool.empty((1 << 19,), np.dtype(np.uint8)) for _ in range(8)]
        before = output_pool.pool.held
        del kept
        gc.collect()
        assert output_pool.pool.held <= max(before, 1 << 20)


def test_threads_never_share_live_memory():
    failures = []

    def work(tag):
        for _ in range(300):
            x = output_pool.empty((50_000,), F32)
            x[:] = tag
            if not (x == tag).all():
                failures.append(tag)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_workspace_grows_and_is_per_thread():
    here = output_pool.workspace(100)
    assert here % output_pool.ALIGNMENT == 0
    assert output_pool.workspace(50) == here
    big = output_pool.workspace(1 << 20)
    assert output_pool.workspace(1 << 19) == big
    there = []
    thread = threading.Thread(target=lambda: there.append(output_pool.workspace(100)))
    thread.start()
    thread.join()
    assert there[0] != big
