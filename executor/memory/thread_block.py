"""Memory for the time of one call: a block per thread, kept from one call to the next.

Emitted code takes bytes. Plans that run in Python take a *frame*: arrays in the block, which are
made once and kept with it.

A block is free if only this module holds a reference to it. So the reference count says whether the
block is in use, and there is no other bookkeeping that could go wrong: neither in a call that ends
with an exception, nor in a call that a finalizer makes on the same thread while another call is
between its kernels. A caller must hold the block's array itself while it uses the memory; a view of
the block does not count.
"""

from __future__ import annotations

import threading
import weakref
from sys import getrefcount
from typing import TYPE_CHECKING, Union

import numpy as np

from ..settings.knobs import knobs
from . import output_pool

if TYPE_CHECKING:
    from .intermediates import Intermediates

Frame = tuple[Union[np.ndarray, None], tuple[Union[np.ndarray, None], ...]]

# Largest frame. Compared with arrays of the pool, calls of three kernels are 3 to 17 % faster with
# a frame for arrays of up to 1 MiB, equal at 2 MiB, and 7 to 10 % slower at 4 MiB: there the pool
# makes results in memory of dead intermediates, which is still in the caches.
MOST_BYTES = 1 << 22
_MOST_ARRAYS = 1024  # largest number of arrays in all frames of a block
_LONGEST_PAUSE = 255  # largest number of calls without a frame after a plan gave up a block
_BYTES = np.dtype(np.uint8)


class _KeptBlock:
    """A block and its frames. The arrays of frames refer to the memory and not to the block.

    Args:
        block: the memory.
        old: the smaller block that this one replaces.

    Attributes:
        frames: (plan's intermediates, sizes) -> frame; None = requested once, but not made yet.
        arrays: number of arrays in frames, plus one for each frame that is not made yet.
    """

    __slots__ = ("arrays", "block", "frames")

    def __init__(self, block: np.ndarray, old: _KeptBlock | None = None) -> None:
        self.block = block
        self.frames: dict[tuple, tuple[np.ndarray, ...] | None] = {}
        self.arrays = 0
        if old is not None:
            self.frames, self.arrays = dict.fromkeys(old.frames), len(old.frames)

    def remember(self, inner: Intermediates, sizes: tuple[int, ...], arrays: tuple[np.ndarray, ...] | None) -> None:
        """Keep a frame (None = only note the request); drop all others if there are too many."""
        count = 1 if arrays is None else len(arrays)
        if self.arrays + count > _MOST_ARRAYS:
            self.frames.clear()
            self.arrays = 0
        self.arrays += count
        self.frames[inner, sizes] = arrays


class _Arena:
    """The block that one thread keeps; ``kept`` is None if it keeps none."""

    __slots__ = ("__weakref__", "kept")

    def __init__(self) -> None:
        self.kept: _KeptBlock | None = None


def _holders(kept: _KeptBlock) -> int:
    return getrefcount(kept.block)


# The value of `_holders` for a free block; it depends on the version of the interpreter.
_ALONE = _holders(_KeptBlock(np.empty(1, _BYTES)))


_arenas: dict[int, weakref.ref[_Arena]] = {}


class _Local(threading.local):
    def __init__(self) -> None:
        self.arena = _Arena()
        key = id(self.arena)
        _arenas[key] = weakref.ref(self.arena, lambda _: _arenas.pop(key, None))


_local = _Local()


def take(nbytes: int) -> np.ndarray:
    """At least ``nbytes`` of 64-byte aligned memory, for as long as the caller holds the array.

    Blocks of more than ``arena_bytes`` are not kept after the call.
    """
    arena = _local.arena
    kept = arena.kept  # read once, because another thread may release it meanwhile
    free = kept is None or _holders(kept) == _ALONE
    if kept is not None and free and kept.block.nbytes >= nbytes:
        return kept.block
    size = output_pool.size_class(max(nbytes, output_pool.ALIGN_FROM))
    block = np.ndarray((size,), _BYTES, output_pool.pool.lend(size))
    if size <= knobs.arena_bytes and free:
        arena.kept = _KeptBlock(block, kept)
    return block


def frame(inner: Intermediates, sizes: tuple[int, ...] | None) -> Frame:
    """The block, which the caller must hold while it uses the arrays, and the arrays in it.

    The result is a frame without arrays, so that the kernels use the pool, if

    * the block is in use,
    * the frame would exceed ``arena_bytes`` or `MOST_BYTES`,
    * these sizes are new: making the arrays costs more than one call gains,
    * ``sizes`` is None, since the sizes are unknown,
    * or the plan has given up a block a short while ago.
    """
    if inner.pauses > 0:
        inner.pauses -= 1
        return None, inner.nowhere
    kept = _local.arena.kept
    if kept is not None and _holders(kept) == _ALONE:
        arrays = kept.frames.get((inner, sizes))
        if arrays is not None:
            return kept.block, arrays
    elif kept is not None:
        return None, inner.nowhere
    return _new_frame(inner, sizes)


def _new_frame(inner: Intermediates, sizes: tuple[int, ...] | None) -> Frame:
    if sizes is None:
        return None, inner.nowhere
    arena = _local.arena
    kept = arena.kept
    if sizes and kept is not None and (inner, sizes) not in kept.frames:
        kept.remember(inner, sizes, None)
        return None, inner.nowhere
    total, described = inner.described(sizes)
    if output_pool.size_class(total) > min(MOST_BYTES, knobs.arena_bytes):
        return None, inner.nowhere
    block, kept = take(total), arena.kept
    if kept is None or kept.block is not block:
        return None, inner.nowhere
    arrays = tuple(np.ndarray(shape, dtype, block.base, start) for shape, dtype, start in described)
    kept.remember(inner, sizes, arrays)
    return block, arrays


def forfeit(block: np.ndarray, inner: Intermediates) -> Frame:
    """Stop using this thread's block, because a fallback may keep arrays that lie in it.

    Returns a frame without arrays, with which the plan continues. A new block costs more than a
    frame gains, so the plan's next calls get no frame either: 1, 3, 7, … calls, twice as many and
    one more each time.
    """
    inner.pauses = inner.last_pause = min(2 * inner.last_pause + 1, _LONGEST_PAUSE)
    arena = _local.arena
    kept = arena.kept
    if kept is not None and kept.block is block:
        arena.kept = None
    return None, inner.nowhere


def held() -> int:
    """Bytes of all blocks that threads keep for their next calls."""
    arenas = (ref() for ref in tuple(_arenas.values()))
    every = (arena.kept for arena in arenas if arena is not None)
    return sum(kept.block.nbytes for kept in every if kept is not None)


def release() -> None:
    """Drop every thread's block; a call that is using a block keeps it until it ends."""
    for ref in tuple(_arenas.values()):
        arena = ref()
        if arena is not None:
            arena.kept = None
