"""Compiling in worker processes: MLIR never enters the user's process, nor takes it down.

`shared_pool` returns the pool of this process. It is made on first use and ends with the process.
"""

from __future__ import annotations

import atexit
import os
import threading

from ...settings.knobs import knobs
from .job import Outcome, Ticket
from .pool import Pool, PoolCounts
from .process import Limits

__all__ = ["Limits", "Outcome", "Pool", "PoolCounts", "Ticket", "shared_pool"]

_lock = threading.Lock()
_pool: Pool | None = None


def shared_pool() -> Pool:
    """The pool of this process; the knobs are read when it is made."""
    global _pool
    with _lock:
        if _pool is None:
            limits = Limits(knobs.worker_timeout, knobs.worker_memory, knobs.worker_nice, knobs.worker_idle)
            _pool = Pool(max(1, knobs.workers), knobs.worker_queue, limits)
        return _pool


def _at_exit() -> None:
    if _pool is not None:
        _pool.close()


def _in_forked_child() -> None:
    """Drop the pool and the lock: their threads exist only in the parent."""
    global _pool, _lock
    pool, _pool, _lock = _pool, None, threading.Lock()
    if pool is not None:
        pool.abandon()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_forked_child)
