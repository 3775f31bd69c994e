"""Compiles, looked up: a request in; its stored result out, or that of a compile, stored then."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..compile import CompileRequest, CompileResult
from ..events import Counters, log
from .codec import from_sections, to_sections
from .disk import DiskCache, users_cache
from .key import Key, key_of, obstacle
from .places import Places


class _Asked:
    """A request with what it is looked up by."""

    def __init__(self, request: CompileRequest) -> None:
        self.name = request.name
        self.places = Places.of(request.ir)
        self.key: Key = key_of(request, self.places)

    def find(self, cache: DiskCache, counters: Counters) -> CompileResult | None:
        """The stored result; a hit is counted."""
        start = time.perf_counter()
        result = cache.find(self.key, lambda s: from_sections(s, self.places.listed), self.name)
        if result is not None:
            counters.disk_hits += 1
            result.seconds = {"disk cache": time.perf_counter() - start}
            result.found_in = "the disk cache"
        return result

    def keep(self, cache: DiskCache, result: CompileResult) -> None:
        """Store a result, unless it may be a better one the next time."""
        if result.faulty:
            log("disk-skip", self.name, "not stored: a kernel could not be compiled")
            return
        cache.keep(self.key, lambda: to_sections(result, self.places.listed), self.name)


def stored(request: CompileRequest, counters: Counters) -> CompileResult | None:
    """The stored result of a request, None = there is none, which is not counted."""
    cache = users_cache()
    return None if cache is None or obstacle(request) else _Asked(request).find(cache, counters)


def cached(
    request: CompileRequest,
    compile_: Callable[[CompileRequest], CompileResult],
    counters: Counters,
) -> CompileResult:
    """The stored result of a request, else that of ``compile_``, which is stored then.

    No lock is held while it compiles: two processes that miss the same entry both compile, and
    either result may stay. Raises what ``compile_`` raises.
    """
    cache = users_cache()
    if cache is None:
        return compile_(request)
    reason = obstacle(request)
    if reason:
        log("disk-skip", request.name, f"not looked up: {reason}")
        return compile_(request)
    start, asked = time.perf_counter(), _Asked(request)
    result = asked.find(cache, counters)
    if result is not None:
        return result
    counters.disk_misses += 1
    missed = cache.why_missed(asked.key)
    seconds = time.perf_counter() - start
    log("disk-miss", request.name, missed, seconds, entry=asked.key.digest[:12])
    result = compile_(request)
    result.missed = missed
    asked.keep(cache, result)
    return result
