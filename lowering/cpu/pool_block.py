"""The block by which kernels find the pool of threads; `lowering.thread_pool` has its layout."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from ..thread_pool import CHUNK, COLUMNS, WORDS, WORK

_LINE = 64  # bytes of a cache line
_Owner = TypeVar("_Owner")


def never_freed(owner: _Owner) -> _Owner:
    """The object, which is kept until the process ends.

    Threads of the pool outlive the interpreter, which frees what modules hold when it ends. What
    these threads run, read and write must stay.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    return owner


@functools.cache
def block() -> ctypes.Array[ctypes.c_int64]:
    """The block, which lives as long as the process."""
    memory = never_freed(ctypes.create_string_buffer(WORDS * 8 + _LINE))
    start = -ctypes.addressof(memory) % _LINE
    words = (ctypes.c_int64 * WORDS).from_buffer(memory, start)
    ctypes.c_double.from_buffer(words, WORK * 8).value = CHUNK
    words[COLUMNS] = 1
    return words


def set_chunk_work(picoseconds: float) -> None:
    """Have kernels of symbolic sizes run in chunks of so much estimated work.

    Sums may have other bits then. Checks of new kernels, and tests, set little work, so that small
    arrays have several chunks.
    """
    ctypes.c_double.from_buffer(block(), WORK * 8).value = picoseconds


@contextmanager
def usual_chunks() -> Iterator[None]:
    """Kernels that run in the ``with`` block have the chunks that they have in programs."""
    work = ctypes.c_double.from_buffer(block(), WORK * 8)
    before, work.value = work.value, CHUNK
    try:
        yield
    finally:
        work.value = before


def block_address() -> int:
    """Address of the block."""
    return ctypes.addressof(block())
