"""The cache as the executors see it: it answers, it stores, or it says why not; it never raises.

What goes wrong with the folder is said once, in one event, after which this process does without:
without the cache where it cannot be read, without storing where it cannot be written.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...dialect.errors import Loc
from ..compile import CompileRequest, CompileResult
from ..events import Counters, log
from ..knobs import knobs
from .codec import from_sections, to_sections
from .entry import CorruptEntry, Entry, Header
from .key import Key, describe, key_of, nearest, obstacle
from .places import Places
from .store import Store, TooLarge, UnusableCache, default_root

_COMPARED = 128  # latest used entries that a miss is compared with


class DiskCache:
    """One folder, and what this process has found out about it."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.readable = self.writable = True
        self._warnings = itertools.count()

    def find(self, key: Key, places: Sequence[Loc], name: str) -> CompileResult | None:
        """What is stored under the key; a corrupt entry is deleted, so that it is made anew."""
        if not self.readable:
            return None
        start = time.perf_counter()
        try:
            entry = self.store.get(key)
            if entry is None:
                return None
            result = from_sections(entry.sections, places)
        except CorruptEntry as error:
            gone = self.store.remove(self.store.path(key.digest))
            what = "entry deleted" if gone else "entry left, as it cannot be deleted"
            log("disk-corrupt", name, f"{what}: {error}", entry=key.digest[:12])
            return None
        except (OSError, UnusableCache) as error:
            self.readable = self.writable = False
            self._warn("goes without", error)
            return None
        seconds = time.perf_counter() - start
        result.seconds = {"disk cache": seconds}
        result.from_disk = True
        log("disk-hit", name, "", seconds, entry=key.digest[:12])
        return result

    def keep(self, key: Key, places: Sequence[Loc], result: CompileResult, name: str) -> None:
        """Store a result under the key."""
        if not self.writable:
            return
        if result.faulty:
            log("disk-skip", name, "not stored: a kernel could not be compiled")
            return
        limit = knobs.cache_bytes
        try:
            entry = Entry(key, name, time.time(), to_sections(result, places))
            evicted = self.store.put(entry, limit)
        except TooLarge as error:
            log("disk-skip", name, f"not stored: {error}")
        except (TypeError, ValueError) as error:
            log("disk-skip", name, f"not stored: {type(error).__name__}: {error}")
        except FileNotFoundError as error:
            # Somebody has deleted the folder this very moment; the next entry makes a new one.
            log("disk-skip", name, f"not stored: {error}")
        except (OSError, UnusableCache) as error:
            self.writable = False
            self._warn("stores nothing more", error)
        else:
            size = sum(map(len, entry.sections.values()))
            log("disk-store", name, "", entry=key.digest[:12], bytes=size)
            if evicted.entries:
                log("disk-evict", name, "", entries=evicted.entries, bytes=evicted.bytes)

    def why_missed(self, key: Key) -> str:
        """The nearest entry there is, and the parts in which it differs."""
        if not self.readable:
            return "the cache cannot be used"
        try:
            found = list(self.store.headers(_COMPARED))
        except OSError as error:
            return f"the cache cannot be read: {error}"
        headers = [header for _, header in found if isinstance(header, Header)]
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
        # The first number is drawn once, by whichever thread comes first.
        if next(self._warnings) == 0:
            reason = f"this process {does}: {type(error).__name__}: {error}"
            log("disk-off", "", reason, folder=str(self.store.root))


@functools.cache
def _no_cache(reason: str) -> None:
    """Say that there is no folder to begin with; once for each reason."""
    log("disk-off", "", f"this process goes without: {reason}")


@functools.cache
def disk_cache(root: Path) -> DiskCache:
    """The cache in a folder; one object for the whole process."""
    return DiskCache(root)


def cached(
    request: CompileRequest,
    compile_: Callable[[CompileRequest], CompileResult],
    counters: Counters,
) -> CompileResult:
    """The stored result of a request, else that of ``compile_``, which is stored then.

    No lock is held while it compiles: two processes that miss the same entry both compile, and
    either result may stay. Raises what ``compile_`` raises.
    """
    reason = obstacle(request)
    if reason:
        log("disk-skip", request.name, f"not looked up: {reason}")
        return compile_(request)
    try:
        cache, places = disk_cache(default_root()), Places.of(request.ir)
        key = key_of(request, places)
    except (OSError, UnusableCache) as error:
        _no_cache(f"{type(error).__name__}: {error}")
        return compile_(request)
    result = cache.find(key, places.listed, request.name)
    if result is not None:
        counters.disk_hits += 1
        return result
    counters.disk_misses += 1
    missed = cache.why_missed(key)
    log("disk-miss", request.name, missed, entry=key.digest[:12])
    result = compile_(request)
    result.missed = missed
    cache.keep(key, places.listed, result, request.name)
    return result
