"""Calls in emitted code, hits and every way out, leave references and memory as they were."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from dispatched import BIG, INDEX, X, Y, gathered, hits, mixed, pair, scaled, warm
from profuse.executor.memory import output_pool


def test_a_million_calls_leak_nothing():
    resource = pytest.importorskip("resource")
    calls = [
        (warm(mixed, X, Y), (X, Y), 700_000),
        (warm(pair, X, Y), (X, Y), 200_000),
        (warm(lambda x: x.sum(), X), (X,), 100_000),
        (warm(mixed, BIG[:40], BIG[:40]), (BIG[:40], BIG[:40]), 20_000),
        (warm(scaled, X, 2), (X, 2), 20_000),
    ]
    watched = (X, Y, X.dtype, np.dtype(np.float64), None)

    def go(share):
        for f, args, count in calls:
            before = hits(f)
            for _ in range(count // share):
                f(*args)
            assert hits(f) == before + count // share
        gc.collect()
        pages = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return [sys.getrefcount(o) for o in watched], sys.getallocatedblocks(), pages

    go(100)
    counts, blocks, pages = go(100)
    after = go(1)
    assert after[0][:2] == counts[:2]
    assert max(abs(a - b) for a, b in zip(after[0], counts, strict=True)) < 100
    assert abs(after[1] - blocks) < 500
    assert after[2] - pages < 8 << 10  # KiB


def test_ways_out_leak_nothing():
    """Misses, numbers too big and voided launches drop what had been made."""
    index, number = warm(gathered, X, INDEX), warm(scaled, X, 2)
    bad = INDEX + 9

    def go(times):
        for _ in range(times):
            with pytest.raises(IndexError):
                index(X, bad)
            with pytest.raises(OverflowError):
                number(X, 2**2000)

    go(20)
    gc.collect()
    counts = [sys.getrefcount(o) for o in (X, bad)]
    blocks = sys.getallocatedblocks()
    go(300)
    gc.collect()
    assert [sys.getrefcount(o) for o in (X, bad)] == counts
    assert abs(sys.getallocatedblocks() - blocks) < 200


def test_errors_of_python_code_leak_nothing(monkeypatch):
    """What code called in between raises is passed on; memory that is short is tried for again."""
    faults: list[BaseException | None] = []
    empty = output_pool.empty

    def faulty(shape, dtype):
        fault = faults.pop() if faults else None
        if fault is not None:
            raise fault
        return empty(shape, dtype)

    monkeypatch.setattr(output_pool, "empty", faulty)
    f = warm(lambda x, y: (x + y, x * y), BIG, BIG)

    def go(times):
        for _ in range(times):
            for raised in ([KeyboardInterrupt()], [KeyboardInterrupt(), None]):
                faults[:] = raised
                with pytest.raises(KeyboardInterrupt):
                    f(BIG, BIG)
            faults[:] = [MemoryError(), None]
            before = hits(f)
            assert np.array_equal(f(BIG, BIG)[1], BIG * BIG)
            assert hits(f) == before

    go(20)
    gc.collect()
    counts, blocks = sys.getrefcount(BIG), sys.getallocatedblocks()
    go(300)
    gc.collect()
    assert sys.getrefcount(BIG) == counts
    assert abs(sys.getallocatedblocks() - blocks) < 200
