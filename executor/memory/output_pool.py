"""Reading and making NumPy arrays for kernels: data pointers, aligned outputs, workspaces.

Large outputs come from a pool: when a result is freed, its memory serves the next result. Without
the pool, every call of a memory-bound kernel gets fresh pages from the operating system, which
costs several times as much as the kernel itself.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..settings.events import Counters
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs

ALIGNMENT = 64  # bytes; kernels run up to a quarter faster than on malloc's 16
ALIGN_FROM = 8192  # bytes; below this a misaligned vector costs less than aligning
_POOL_FROM = 1 << 17  # bytes; from here malloc maps fresh pages for every array
_ONE = 3  # the count of references of what a local variable and one other object refer to
_BYTES = np.dtype(np.uint8)
_LENT: set[type] = set()  # types of buffers that lend memory of the pool
_POINTER_OFFSET = 16  # byte offset of PyArrayObject.data, after ob_refcnt and ob_type, on 64 bits

_address = ctypes.c_size_t.from_address


def _fast_pointer(array: np.ndarray) -> int:
    return _address(id(array) + _POINTER_OFFSET).value


def _slow_pointer(array: np.ndarray) -> int:
    return array.ctypes.data


def _probe() -> Callable[[np.ndarray], int]:
    """Choose the fast read by struct offset only if it agrees with the pointers of NumPy."""
    samples: list[np.ndarray] = [np.zeros(3), np.zeros((4, 5), np.int8)[1:, ::2], np.zeros(()), np.zeros((0, 2))]
    agree = all(_fast_pointer(a) == _slow_pointer(a) for a in samples)
    return _fast_pointer if agree else _slow_pointer


data_pointer: Callable[[np.ndarray], int] = _probe()


def readable(leaf: Any, counters: Counters | None = None) -> Any:
    """A leaf in a form that kernels can read: base class, native byte order, aligned.

    If that takes a copy, the copy is counted as ``input_copies``.
    """
    if type(leaf) is np.ndarray and leaf.dtype.isnative and leaf.flags.aligned:  # as nearly always
        return leaf
    if not isinstance(leaf, np.ndarray):
        return leaf
    base = leaf if type(leaf) is np.ndarray else leaf.view(np.ndarray)
    if unreadable(base) is None:
        return base
    if counters is not None:
        counters.input_copies += 1
    return base.astype(base.dtype.newbyteorder("="), copy=True)


def unreadable(array: Any) -> str | None:
    """The reason why kernels cannot read an array without a copy; None = they can."""
    if not isinstance(array, np.ndarray) or (array.dtype.isnative and array.flags.aligned):
        return None
    return "its elements are not aligned" if array.dtype.isnative else "its byte order is foreign"


class _Block:
    """A piece of aligned memory, which `BlockPool.lend` lends to one array at a time."""

    __slots__ = ("address", "raw", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.raw = np.empty(size + ALIGNMENT, np.uint8)
        start = data_pointer(self.raw)
        self.address = start + -start % ALIGNMENT


def size_class(nbytes: int) -> int:
    """The size of the blocks that serve ``nbytes``: at most a quarter more, four sizes per octave.

    A block serves all sizes of its class, and the number of classes is bounded.
    """
    step = 1 << max(nbytes.bit_length() - 3, 0)
    return -(-nbytes // step) * step


class _SizeClass:
    """Free blocks of one size, and the ctypes type of the buffers that lend them."""

    __slots__ = ("blocks", "lent", "used")

    def __init__(self, size: int) -> None:
        self.blocks: list[_Block] = []
        self.lent = _lent_type(size)
        self.used = 0


class BlockPool:
    """Free blocks by size class; bounded in bytes, thread-safe and re-entrant.

    When the pool is full, it frees blocks of the least recently used classes.
    """

    def __init__(self) -> None:
        self._classes: dict[int, _SizeClass] = {}  # never shrinks, see `size_class`
        self._held = 0
        self._clock = itertools.count()
        # Re-entrant, because the garbage collector may return a block while this thread holds the
        # lock. For the same reason, no code iterates over a container that such a return changes.
        self._lock = ForkLock()

    def lend(self, nbytes: int) -> Any:
        """A writable buffer of at least ``nbytes``; when it is freed, its memory returns here."""
        size = size_class(nbytes)
        with self._lock:
            entry = self._classes.get(size) or self._classes.setdefault(size, _SizeClass(size))
            entry.used = next(self._clock)
            block = entry.blocks.pop() if entry.blocks else None
            if block is not None:
                self._held -= size
        block = block or _Block(size)
        lent = entry.lent.from_address(block.address)  # type: ignore[attr-defined]
        lent.owner = (self, block)
        return lent

    def give_back(self, block: _Block) -> None:
        """Keep a block for the next array of its class."""
        entry = self._classes[block.size]
        with self._lock:
            entry.used = next(self._clock)
            entry.blocks.append(block)
            self._held += block.size
            while self._held > knobs.output_pool_bytes:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Free a block of the class that was used least recently."""
        filled = [c for c in tuple(self._classes.values()) if c.blocks]
        oldest = min(filled, key=lambda c: c.used, default=None)
        if oldest is not None and oldest.blocks:
            self._held -= oldest.blocks.pop(0).size

    @property
    def held(self) -> int:
        """Bytes waiting for reuse."""
        return self._held


def _lent_type(size: int) -> type:
    """A ctypes array type of ``size`` bytes whose instances return their block when freed."""

    def __del__(self) -> None:
        pool, block = self.owner
        pool.give_back(block)

    lent_type = type(f"Lent{size}", (ctypes.c_char * size,), {"__del__": __del__})
    _LENT.add(lent_type)
    return lent_type


pool = BlockPool()


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialised C-contiguous array, 64-byte aligned from `ALIGN_FROM` bytes on."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < ALIGN_FROM:
        return np.empty(shape, dtype)
    if nbytes >= _POOL_FROM:
        return np.ndarray(shape, dtype, pool.lend(nbytes))
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, raw.data, -data_pointer(raw) % ALIGNMENT)


def has_own_memory(x: Any) -> bool:
    """True if an array has all of a piece of memory, to which no array but its views refers.

    That is so of arrays that `empty` has made, as long as they have no views from `ALIGN_FROM` to
    `_POOL_FROM` bytes: those refer to the same piece, and others to the array.
    """
    if type(x) is not np.ndarray:
        return False
    base = x.base
    if base is None:
        return x.flags.owndata
    if type(base) is np.ndarray:
        is_ours = base.dtype is _BYTES and base.nbytes == x.nbytes + ALIGNMENT
    else:
        is_ours = type(base) in _LENT
    return is_ours and x.flags.c_contiguous and sys.getrefcount(base) == _ONE


class _Scratch(threading.local):
    """One growing scratch buffer per thread."""

    def __init__(self) -> None:
        self.block = _Block(4096)


_arena = _Scratch()


def workspace(nbytes: int) -> int:
    """Pointer to at least ``nbytes`` of 64-byte aligned scratch memory, valid until the next call.

    Each thread has its own buffer. A kernel never calls back into Python, so no other call on the
    same thread can take the memory while the kernel runs.
    """
    if nbytes > _arena.block.size:
        _arena.block = _Block(max(nbytes, 2 * _arena.block.size))
    return _arena.block.address
