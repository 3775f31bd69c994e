"""The block by which kernels find the pool of threads; `lowering.thread_pool` has its layout."""

from __future__ import annotations

import ctypes
import functools

from ..thread_pool import WORDS

_LINE = 64  # bytes of a cache line


@functools.cache
def block() -> ctypes.Array[ctypes.c_int64]:
    """The block, which lives as long as the process."""
    memory = ctypes.create_string_buffer(WORDS * 8 + _LINE)
    start = -ctypes.addressof(memory) % _LINE
    return (ctypes.c_int64 * WORDS).from_buffer(memory, start)


def block_address() -> int:
    """Where the block is."""
    return ctypes.addressof(block())
