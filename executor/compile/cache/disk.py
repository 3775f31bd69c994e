"""The disk cache as one process uses it: lookups and stores that never raise.

If the folder fails, the process logs one event and stops using it: entirely if the folder cannot be
read, or only for storing if it cannot be written.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ...settings.events import log
from ...settings.knobs import knobs
from .cache_key import Key, describe, nearest
from .entry import CacheEntry, CorruptEntry, Header
from .folder import UnusableCache, default_root
from .store import Store, TooLarge

T = TypeVar("T")

_COMPARED = 128  # a miss is compared with this many entries, those used last


class DiskCache:
    """A cache folder, and whether this process can read and write it."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.readable = self.writable = True
        self.off = ""  # why it is not used, or not for storing
        self._warnings = itertools.count()

    def find(self, key: Key, read: Callable[[dict[str, bytes]], T], name: str) -> T | None:
        """The entry of a key, decoded by ``read``; None = there is no usable entry.

        ``read`` raises CorruptEntry for sections that it cannot decode. A corrupt entry is deleted,
        so that a later store replaces it.
        """
        if not self.readable:
            return None
        start = time.perf_counter()
        try:
            entry = self.store.get(key)
            if entry is None:
                return None
            value = read(entry.sections)
        except CorruptEntry as error:
            gone = self.store.remove(self.store.path(key.digest))
            what = "entry deleted" if gone else "entry left, as it cannot be deleted"
            log("disk-corrupt", name, f"{what}: {error}", entry=key.digest[:12])
            return None
        except (OSError, UnusableCache) as error:
            self.readable = self.writable = False
            self._warn("goes without", error)
            return None
        log("disk-hit", name, "", time.perf_counter() - start, entry=key.digest[:12])
        return value

    def keep(self, key: Key, write: Callable[[], dict[str, bytes]], name: str, checked: str = "") -> None:
        """Store the sections that ``write`` returns under a key; ``checked``: see `Header`."""
        if not self.writable:
            return
        limit = knobs.cache_bytes
        start = time.perf_counter()
        try:
            entry = CacheEntry(key, name, time.time(), write(), checked)
            evicted = self.store.put(entry, limit)
        except TooLarge as error:
            log("disk-skip", name, f"not stored: {error}")
        except (TypeError, ValueError) as error:
            log("disk-skip", name, f"not stored: {type(error).__name__}: {error}")
        except FileNotFoundError as error:
            # Another process deleted the folder at this moment; the next store makes a new one.
            log("disk-skip", name, f"not stored: {error}")
        except (OSError, UnusableCache) as error:
            self.writable = False
            self._warn("stores nothing more", error)
        else:
            size = sum(map(len, entry.sections.values()))
            seconds = time.perf_counter() - start
            log("disk-store", name, "", seconds, entry=key.digest[:12], bytes=size)
            if evicted.entries:
                log("disk-evict", name, "", entries=evicted.entries, bytes=evicted.bytes)

    def why_missed(self, key: Key) -> str:
        """The reason why there is no entry for a key, in words: the nearest entry, and the differing parts."""
        if not self.readable:
            return f"the cache cannot be used: {self.off}"
        try:
            pairs = list(self.store.headers(_COMPARED))
        except OSError as error:
            return f"the cache cannot be read: {error}"
        headers = [
            header for _, header in pairs if isinstance(header, Header) and header.key.parts.keys() == key.parts.keys()
        ]
        best = nearest(key, (header.key for header in headers))
        if best is None:
            return "the cache is empty"
        other, differing = best
        if not differing:
            return "another process stored it a moment later"
        label = next(header.label for header in headers if header.key is other)
        text = describe(key, other, differing)
        return f"nearest is {other.digest[:12]} of {label}, which differs in {text}"

    def _warn(self, does: str, error: Exception) -> None:
        # Only one thread draws the number 0, so only one event is logged.
        if next(self._warnings) == 0:
            self.off = f"{type(error).__name__}: {error}"
            reason = f"this process {does}: {self.off}"
            log("disk-off", "", reason, folder=str(self.store.root))


@functools.cache
def _no_cache(reason: str) -> None:
    """Log that the process has no cache folder; once for each reason."""
    log("disk-off", "", f"this process goes without: {reason}")


@functools.cache
def disk_cache(root: Path) -> DiskCache:
    """The cache in a folder; each folder has one object in the whole process."""
    return DiskCache(root)


def users_cache() -> DiskCache | None:
    """The cache that the present settings name; None = the cache is off, or has no folder."""
    if not knobs.cache:
        return None
    try:
        return disk_cache(default_root())
    except (OSError, UnusableCache) as error:
        _no_cache(f"{type(error).__name__}: {error}")
        return None
