"""Properties of GPU chips on which kernels depend."""

from __future__ import annotations

import re

DEFAULT = "sm_90"
_CHIP = re.compile(r"sm_(8[06789]|90a?|10[013][af]?|110[af]?|12[01][af]?)")
_LARGE = {"80": 163, "87": 163, "90": 227, "100": 227, "101": 227, "103": 227, "110": 227}
_SMALL = 99  # KiB of shared memory of all other chips
_RESERVED = 1  # KiB per block that the driver takes
# Threads that are to be resident on a multiprocessor at a time. Most chips can keep twice as many,
# the others one and a half times as many.
THREADS = 1024


def is_known(chip: str) -> bool:
    """True if kernels can be compiled for a chip."""
    return _CHIP.fullmatch(chip) is not None


def shared_bytes(chip: str, threads: int) -> int:
    """Bytes of shared memory that a block of this many threads may use.

    The memory of a multiprocessor is divided so that `THREADS` threads are resident at a time. With
    fewer threads, waiting for global memory costs more than shared memory saves. A launch has to
    request more than 48 KiB explicitly.
    """
    most = _LARGE.get(re.sub(r"\D", "", chip), _SMALL) + _RESERVED
    return (most * 1024 * min(threads, THREADS) // THREADS) - _RESERVED * 1024
