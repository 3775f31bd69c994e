"""Memory for the time of one call: a block per thread, kept from one call to the next.

Emitted code takes bytes, plans that run in Python take a *frame*: arrays in the block, which are
made once and kept with it.

A block is free when nobody but this module holds it. So its reference count says whether it is in
use, and there is no bookkeeping to go wrong: not by a call that ends in an exception, nor by one
that a finalizer makes on the same thread while another is between its kernels. Who takes a block
holds the array itself for as long as it uses the memory: views of it do not count.
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

# Of a frame. Calls of three kernels are 3 to 17 % faster with it than with arrays of the pool if
# these have up to 1 MiB, equal at 2 MiB, and 7 to 10 % slower at 4 MiB, where the pool makes
# results in what dead intermediates leave in the caches.
MOST_BYTES = 1 << 22
_MOST_ARRAYS = 1024  # in the frames of a block
_LONGEST_PAUSE = 255  # calls of a plan after it has given up a block
_BYTES = np.dtype(np.uint8)


class _Kept:
    """A block and the frames in it, whose arrays hold the memory and not the block.

    Args:
        block: the memory.
        old: what it takes the place of.

    Attributes:
        frames: by what `frame` is asked for; None = it has been asked for before.
        arrays: in frames, and one more for each that has only been asked for.
    """

    __slots__ = ("arrays", "block", "frames")

    def __init__(self, block: np.ndarray, old: _Kept | None = None) -> None:
        self.block = block
        self.frames: dict[tuple, tuple[np.ndarray, ...] | None] = {}
        self.arrays = 0
        if old is not None:
            self.frames, self.arrays = dict.fromkeys(old.frames), len(old.frames)

    def remember(
        self, inner: Intermediates, sizes: tuple[int, ...], made: tuple[np.ndarray, ...] | None
    ) -> None:
        """Keep a frame, or that it has been asked for; when there are too many, no other."""
        count = 1 if made is None else len(made)
        if self.arrays + count > _MOST_ARRAYS:
            self.frames.clear()
            self.arrays = 0
        self.arrays += count
        self.frames[inner, sizes] = made


class _Arena:
    """What one thread keeps; None = nothing."""

    __slots__ = ("__weakref__", "kept")

    def __init__(self) -> None:
        self.kept: _Kept | None = None


def _holders(kept: _Kept) -> int:
    return getrefcount(kept.block)


# What `_holders` says of a block that nobody holds: interpreters count differently.
_ALONE = _holders(_Kept(np.empty(1, _BYTES)))


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
    kept = arena.kept  # once: another thread may release it meanwhile
    free = kept is None or _holders(kept) == _ALONE
    if kept is not None and free and kept.block.nbytes >= nbytes:
        return kept.block
    size = output_pool.size_class(max(nbytes, output_pool.ALIGN_FROM))
    made = np.ndarray((size,), _BYTES, output_pool.pool.lend(size))
    if size <= knobs.arena_bytes and free:
        arena.kept = _Kept(made, kept)
    return made


def frame(inner: Intermediates, sizes: tuple[int, ...] | None) -> Frame:
    """The block, for the caller to hold while it uses the arrays in it, and these arrays.

    Nowhere, which leaves them to the pool, where the block is in use; where ``arena_bytes`` or
    `MOST_BYTES` are exceeded; where the ``sizes`` that arrays depend on are met for the first time,
    as making arrays costs more than one call gains; or where these are None, not to be had; and
    for a while after the plan has given up a block.
    """
    if inner.pauses > 0:
        inner.pauses -= 1
        return None, inner.nowhere
    kept = _local.arena.kept
    if kept is not None and _holders(kept) == _ALONE:
        found = kept.frames.get((inner, sizes))
        if found is not None:
            return kept.block, found
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
    made = tuple(np.ndarray(shape, dtype, block.base, start) for shape, dtype, start in described)
    kept.remember(inner, sizes, made)
    return block, made


def forfeit(block: np.ndarray, inner: Intermediates) -> Frame:
    """Never give this thread's block to anybody again: arrays in it are handed out.

    Returns the frame to go on with, which is nowhere. As a new block costs more than a frame gains,
    the plan's next calls get none, the more of them the more often this has happened.
    """
    inner.pauses = inner.last_pause = min(2 * inner.last_pause + 1, _LONGEST_PAUSE)
    arena = _local.arena
    kept = arena.kept
    if kept is not None and kept.block is block:
        arena.kept = None
    return None, inner.nowhere


def held() -> int:
    """Bytes that threads keep for their next calls."""
    found = (ref() for ref in tuple(_arenas.values()))
    every = (arena.kept for arena in found if arena is not None)
    return sum(kept.block.nbytes for kept in every if kept is not None)


def release() -> None:
    """Let go of every thread's block; calls that are using one keep it until they end."""
    for ref in tuple(_arenas.values()):
        arena = ref()
        if arena is not None:
            arena.kept = None
