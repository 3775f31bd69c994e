"""Limits that a worker process sets for itself, so that it never disturbs the user's process."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

_LARGEST_FILE = 1 << 30  # bytes; what a pass prints goes to a file
_PR_SET_PDEATHSIG = 1


def settle(memory: int) -> None:
    """Lower this process's limits; skips limits that the system does not support.

    Args:
        memory: bytes of resident memory of its own at which the parent kills the worker;
            allocations fail at twice this size.
    """
    # Ctrl-C reaches the whole foreground process group, but it is meant for the user's program.
    # SIGINT has been blocked since the start (`process`); ignoring it drops a pending one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGTERM})
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, _LARGEST_FILE)
    _limit(resource.RLIMIT_DATA, 2 * memory)
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")


def stand_back(nice: int) -> None:
    """Add to the nice value of this process: of each of its threads, as Linux counts them apart."""
    with suppress(OSError):
        os.nice(nice)
    with suppress(OSError, ValueError):
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        for thread in os.listdir("/proc/self/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), priority)


def _limit(what: int, soft: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (soft, hard))


def alarm_after(seconds: float) -> None:
    """Let the operating system end this process after this many seconds; 0 = never.

    The parent kills a worker that hangs. This timer serves if the parent has died.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
