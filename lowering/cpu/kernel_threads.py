"""The pool of threads of this process; `lowering.thread_pool` has its code and layout.

The first launch starts its threads, and so does the first one in a forked child, which has none of
its parent's. Nothing ends them but the process.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable

from ..target import host_target
from ..thread_pool import (
    AVOIDED,
    BUSY,
    KNOWN,
    LATEST,
    LAUNCH,
    MOST,
    SLEEPERS,
    SPIN,
    STARTED,
    STATE,
    THREADS,
    WANTED,
    supports,
)
from .loader import load_code
from .pool_block import block, never_freed

_SPIN = 50e-6  # seconds: longer than the pause between most launches of one call
_TRIED = 1000  # pauses that are timed
_SYSTEM = f"{platform.machine()}-{sys.platform}"  # the part of the triple that matters


def started() -> int:
    """Threads of the pool that have been started in this process."""
    return block()[STARTED]


def threads() -> int:
    """Threads that launches may use now, the launching one among them."""
    return block()[WANTED] + 1 if block()[LAUNCH] else 1


def launch_address() -> int:
    """Address of ``profuse_launch``; 0 = kernels run on the threads that call them."""
    return block()[LAUNCH]


def pool_code() -> bytes:
    """The object code of the pool, compiled for this host; the host must support it."""
    from ..thread_pool.text import pool_text
    from .codegen import PLAIN, object_code

    target = host_target()
    return object_code(pool_text(target.triple), target, PLAIN)


def use_threads(count: int, code_of: Callable[[], bytes] = pool_code) -> bool:
    """Let launches from now on use ``count`` threads, the launching one among them.

    Returns False, and leaves everything to the launching threads, where the system has no pool.

    Args:
        count: number of threads.
        code_of: gives what `pool_code` compiles; it is called at the first use of several threads.
    """
    shared = block()
    shared[WANTED] = count - 1
    if count == 1:
        shared[LAUNCH] = 0
    elif supports(_SYSTEM):
        code = _code(code_of)
        shared[SPIN] = code.spins
        shared[LAUNCH] = code.launch
    return count == 1 or shared[LAUNCH] != 0


def _forget_threads() -> None:
    """Reset the block in a forked child, which has no thread of the pool and no launch."""
    global _lock
    _lock = threading.Lock()
    shared = block()
    for word in (SLEEPERS, STATE, BUSY, STARTED, LATEST, AVOIDED, KNOWN):
        shared[word] = 0
    shared[THREADS : THREADS + MOST] = [0] * MOST


os.register_at_fork(after_in_child=_forget_threads)


class _Code:
    """The machine code of the pool, which stays until the process ends."""

    def __init__(self, object_code: bytes) -> None:
        loaded = never_freed(load_code(object_code, "profuse_launch", "profuse_pauses"))
        self.launch = loaded.address
        pauses = ctypes.CFUNCTYPE(None, ctypes.c_int64)(loaded.symbols["profuse_pauses"])
        times = []
        for _ in range(5):
            before = time.perf_counter()
            pauses(_TRIED)
            times.append(time.perf_counter() - before)
        self.spins = max(1, int(_SPIN / (min(times) / _TRIED)))


_made: list[_Code] = []
_lock = threading.Lock()


def _code(code_of: Callable[[], bytes]) -> _Code:
    with _lock:
        if not _made:
            _made.append(_Code(code_of()))
    return _made[0]
