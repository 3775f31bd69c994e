"""Threads for kernels: how many there are, and when the pool gets to know it."""

from __future__ import annotations

import os
import threading

from ..settings.events import log
from ..settings.fork_gate import no_fork
from ..settings.knobs import knobs

_CGROUP = "/sys/fs/cgroup"
_asked = threading.Lock()  # held for good by the first kernel that asks


def available_cores() -> int:
    """Cores that this process may use: by its affinity, and by the limit of its container."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    limit = _cpu_limit()
    return cores if limit is None else max(1, min(cores, limit))


def _cpu_limit() -> int | None:
    """Cores of time per second that the control group allows, rounded up; None = no limit."""
    for quota, period in (("cpu.max", None), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = _words(quota) + (_words(period) if period else [])
            if words[0] in ("max", "-1"):
                return None
            return -(-int(words[0]) // int(words[1]))
        except (OSError, ValueError, IndexError, ZeroDivisionError):
            continue
    return None


def _words(name: str) -> list[str]:
    with open(f"{_CGROUP}/{name}", encoding="ascii") as file:
        return file.read().split()


def wanted_threads() -> int:
    """Threads that a kernel may use, the calling one among them."""
    return knobs.threads or available_cores()


def provide_threads() -> None:
    """Let kernels use threads from now on; returns before the code of the pool is ready.

    Until then, kernels run on the threads that call them, with the same results.
    """
    if _asked.acquire(blocking=False):
        knobs.watch("threads", lambda _: _use_threads())
        _use_threads()


def _use_threads() -> None:
    if wanted_threads() == 1:
        _tell_pool()
    else:
        threading.Thread(target=_tell_pool, name="profuse-threads", daemon=True).start()


def _tell_pool() -> None:
    from ...lowering.cpu.kernel_threads import use_threads
    from ..compile.cache.installation import thread_pool

    with no_fork():
        count = 0
        while count != wanted_threads():  # they may change while the code of the pool is made
            count = wanted_threads()
            if not use_threads(count, thread_pool):
                log("threads", "", "kernels run on one core: this system has no pool of threads")
            elif count > 1:
                log("threads", "", "kernels may use several cores", threads=count)
