"""What kernels have to know of the chip that they are for."""

from __future__ import annotations

import re

DEFAULT = "sm_90"
_CHIP = re.compile(r"sm_(8[06789]|90a?|10[013][af]?|110[af]?|12[01][af]?)")
_LARGE = {"80": 163, "87": 163, "90": 227, "100": 227, "101": 227, "103": 227, "110": 227}
_SMALL = 99  # what all of the others have
_RESERVED = 1  # taken by the driver from every block
THREADS = 1024  # of a multiprocessor: half of what most chips can keep, two thirds of the others'


def is_known(chip: str) -> bool:
    """Whether kernels can be made for it."""
    return _CHIP.fullmatch(chip) is not None


def shared_bytes(chip: str, threads: int) -> int:
    """Shared memory, in bytes, for a block of so many threads.

    A multiprocessor's memory is divided so that `THREADS` fit beside one another: with fewer,
    waiting for global memory costs more than reading it once saves. What exceeds 48 KiB a launch
    has to ask for.
    """
    most = _LARGE.get(re.sub(r"\D", "", chip), _SMALL) + _RESERVED
    return (most * 1024 * min(threads, THREADS) // THREADS) - _RESERVED * 1024
