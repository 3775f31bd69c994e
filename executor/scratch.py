"""Memory for the time of one call: a block per thread, kept from one call to the next.

A block is free when nobody but this module holds it. So its reference count says whether it is in
use, and there is no bookkeeping to go wrong: not by a call that ends in an exception, nor by one
that a finalizer makes on the same thread while another is between its kernels. Who takes a block
holds the array itself for as long as it uses the memory: views of it do not count.
"""

from __future__ import annotations

import threading
import weakref
from sys import getrefcount

import numpy as np

from . import arrays
from .knobs import knobs

_BYTES = np.dtype(np.uint8)


class _Arena:
    """The block of one thread; None = it has none."""

    __slots__ = ("__weakref__", "block")

    def __init__(self) -> None:
        self.block: np.ndarray | None = None


def _holders(arena: _Arena) -> int:
    return getrefcount(arena.block)


def _alone() -> int:
    """What `_holders` says of a block that nobody holds: interpreters count differently."""
    arena = _Arena()
    arena.block = np.empty(1, _BYTES)
    return _holders(arena)


_ALONE = _alone()
_arenas: dict[int, weakref.ref[_Arena]] = {}


class _Local(threading.local):
    def __init__(self) -> None:
        self.arena = _Arena()
        key = id(self.arena)
        _arenas[key] = weakref.ref(self.arena, lambda _: _arenas.pop(key, None))


_local = _Local()


def take(nbytes: int) -> np.ndarray:
    """Bytes, at least so many and 64-byte aligned, that are the caller's for as long as it holds
    them. From ``arena_bytes`` on they are not kept afterwards."""
    arena = _local.arena
    free = _holders(arena) == _ALONE  # asked first: another thread may release it meanwhile
    block = arena.block
    if block is not None and free and block.nbytes >= nbytes:
        return block
    made = arrays.empty((arrays.size_class(max(nbytes, arrays.ALIGN_FROM)),), _BYTES)
    if made.nbytes <= knobs.arena_bytes and (block is None or free):
        arena.block = made
    return made


def held() -> int:
    """Bytes that threads keep for their next calls."""
    found = (ref() for ref in tuple(_arenas.values()))
    blocks = (arena.block for arena in found if arena is not None)
    return sum(block.nbytes for block in blocks if block is not None)


def release() -> None:
    """Let go of every thread's block; calls that are using one keep it until they end."""
    for ref in tuple(_arenas.values()):
        arena = ref()
        if arena is not None:
            arena.block = None
