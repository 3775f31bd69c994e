"""The interface of the disk cache: looks requests up, and compiles and stores on a miss."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...settings.digest import blake2b
from ...settings.events import Counters, log
from ..proof.check_verdict import summary
from ..request import CompileRequest, CompileResult
from ..timings import DISK, add
from .cache_key import Key, key_of, obstacle
from .codec import from_sections, to_sections
from .disk import DiskCache, users_cache
from .entry import CorruptEntry
from .folder import is_own
from .source_locations import SourceLocations

if TYPE_CHECKING:
    from ...functions.saved.file import SavedFile

_CHECKED: set[bytes] = set()  # digests of the entries whose kernels this process has checked


class _Asked:
    """A request with its key and its source locations."""

    def __init__(self, request: CompileRequest) -> None:
        self.name, self.request = request.name, request
        self.places = SourceLocations.of(request.ir)
        self.key: Key = key_of(request, self.places)

    def find(self, cache: DiskCache, counters: Counters) -> CompileResult | None:
        """The stored result; a hit is counted."""
        start = time.perf_counter()
        ours = is_own(cache.store.root)
        result = cache.find(self.key, lambda sections: self._read(sections, checks=not ours), self.name)
        if result is not None:
            counters.disk_hits += 1
            result.seconds = {DISK: time.perf_counter() - start}
            result.found_in = "the disk cache"
        return result

    def find_in(self, saved: SavedFile) -> tuple[CompileResult | None, str]:
        """The result in a saved file; or None and the reason why there is none."""
        start = time.perf_counter()
        entry = saved.find(self.key)
        if entry is None:
            return None, saved.why_missed(self.key)
        try:
            result = self._read(entry.sections, checks=saved.others_write)
        except CorruptEntry as error:
            return None, f"what {saved.path} holds is damaged: {error}"
        result.found_in, result.seconds = saved.path, {DISK: time.perf_counter() - start}
        return result, ""

    def _read(self, sections: dict[str, bytes], *, checks: bool) -> CompileResult:
        """The result in an entry; raises CorruptEntry.

        ``checks``: kernels are checked as new ones are, the first time that this process meets
        them, since others than profuse may write where they lie.
        """
        result = from_sections(sections, self.places.listed)
        if not checks:
            return result
        mark = blake2b(b"".join(sections.values()), digest_size=16).digest()
        if mark not in _CHECKED:
            from ..proof.prove import refuted

            wrong = refuted(result, self.request)
            if wrong:
                raise CorruptEntry(wrong)
            _CHECKED.add(mark)
        return result

    def keep(self, cache: DiskCache, result: CompileResult) -> None:
        """Store a result, unless it is faulty: another attempt may give a better one."""
        if result.faulty:
            log("disk-skip", self.name, "not stored: a kernel could not be compiled")
            return
        checked = summary(result.checks.values())
        cache.keep(self.key, lambda: to_sections(result, self.places.listed), self.name, checked)


def stored(
    request: CompileRequest, counters: Counters, saved: SavedFile | None = None
) -> tuple[CompileResult | None, str]:
    """The stored result of a request (None = there is none), and why ``saved`` has none.

    The file is searched first, then the disk cache. A miss in the disk cache is not counted.
    """
    reason = obstacle(request)
    if reason:
        return None, reason if saved is not None else ""
    query, missed = _Asked(request), ""
    if saved is not None:
        result, missed = query.find_in(saved)
        if result is not None:
            return result, ""
    cache = users_cache()
    return None if cache is None else query.find(cache, counters), missed


def cached(
    request: CompileRequest, compile_: Callable[[CompileRequest], CompileResult], counters: Counters
) -> CompileResult:
    """The stored result of a request; on a miss, ``compile_`` makes it, and it is stored.

    No lock is held during the compile: if two processes miss the same entry, both compile, and
    either result may remain on disk. Raises what ``compile_`` raises.
    """
    cache = users_cache()
    if cache is None:
        return compile_(request)
    reason = obstacle(request)
    if reason:
        log("disk-skip", request.name, f"not looked up: {reason}")
        return compile_(request)
    start, query = time.perf_counter(), _Asked(request)
    result = query.find(cache, counters)
    if result is not None:
        result.seconds[DISK] = time.perf_counter() - start
        return result
    counters.disk_misses += 1
    missed = cache.why_missed(query.key)
    seconds = time.perf_counter() - start
    log("disk-miss", request.name, missed, seconds, entry=query.key.digest[:12])
    result = compile_(request)
    result.missed = missed
    start = time.perf_counter()
    query.keep(cache, result)
    # Added after the store: this process's time does not belong into the stored result.
    add(result, DISK, seconds + time.perf_counter() - start)
    return result
