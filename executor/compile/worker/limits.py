"""What a worker process does to itself, so that it never troubles the process it works for."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

_LARGEST_FILE = 1 << 30  # bytes; what a pass prints goes to a file
_PR_SET_PDEATHSIG = 1


def settle(nice: int, memory: int) -> None:
    """Take the lowest standing that is to be had; what a system does not offer is left out.

    Args:
        nice: added to the priority number.
        memory: bytes; the parent kills at that much resident memory, allocations fail at twice it.
    """
    # Ctrl-C goes to the whole foreground group, but is meant for the program of the user. It has
    # been held back since the start (`process`); one that waits is dropped now.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGTERM})
    with suppress(OSError):
        os.nice(nice)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, _LARGEST_FILE)
    _limit(resource.RLIMIT_DATA, 2 * memory)
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")


def _limit(what: int, soft: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (soft, hard))


def alarm_after(seconds: float) -> None:
    """Have the kernel end this process then, whatever runs in it and holds its locks; 0 = never.

    The parent kills a worker that hangs; this is for when there is no parent any more.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
