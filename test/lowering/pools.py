"""Running kernels on several numbers of threads."""

from __future__ import annotations

import pytest
from profuse.lowering.cpu import kernel_threads
from profuse.lowering.cpu.loader import set_library_threads
from profuse.lowering.target import host_target
from profuse.lowering.thread_pool import supports

THREADS = (1, 2, 3, 7)
needs_pool = pytest.mark.skipif(not supports(host_target().triple), reason="no pool of threads on this system")


@pytest.fixture(autouse=True)
def one_thread_around():
    """Modules that import this have one thread before and after each test."""
    kernel_threads.use_threads(1)
    yield
    kernel_threads.use_threads(1)


def on_threads(kernel, *args):
    """The results on each number of threads."""
    set_library_threads(1)
    found = []
    for count in THREADS:
        assert kernel_threads.use_threads(count)
        found.append(kernel(*args))
    return found


def same_bits(results):
    """True if results of several runs have the same bits."""
    first = [r.tobytes() for r in results[0]]
    return all([r.tobytes() for r in other] == first for other in results[1:])
