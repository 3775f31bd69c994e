"""Warm state: profiles and compiles that earlier processes stored, and that later ones will read.

An executor looks first in the function's file (the one given as `profile=`, or the one from which
the function was loaded), then in the disk cache. A graph with a stored profile is not profiled. If
the compile for that profile is stored as well, the first call runs the optimised plan without
loading MLIR.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ...dialect.errors import IRError, Loc
from ...dialect.ir.program import Module
from ...dialect.profiling.observers import has_claims
from ...dialect.reasons import Kind, Reason
from ..compile.request import CompileRequest, CompileResult
from ..compile.user_extensions import users_op
from ..interpret.record import Record
from ..interpret.size_history import Types
from ..plans.plan_options import Options
from ..settings.events import Counters, log
from ..settings.knobs import knobs

if TYPE_CHECKING:
    from ..compile.cache.cache_key import Key
    from ..compile.cache.entry import CacheEntry
    from ..compile.cache.profiles import StoredProfile


@dataclass(frozen=True)
class _Packed:
    """The part of a released record and request that `WarmState.entries` needs.

    Attributes:
        profile: the recorded profile.
        compile: the key of the compile; None = the compile may not be stored.
        places: the source locations of the request.
    """

    profile: StoredProfile
    compile: Key | None = None
    places: tuple[Loc, ...] = ()


class WarmState:
    """The stored profile and the stored compile of one graph.

    Args:
        graph: returns the graph, as imported.
        history: the input types for which outer executors have specialised this graph.
        runs: number of runs that are recorded.
        options: the executor's options.
        values: whether values are observed that are given to attributes of ops: such profiles are others.
    """

    def __init__(
        self, graph: Callable[[], Module], history: tuple[Types, ...], runs: int, options: Options, *, values: bool
    ) -> None:
        self._name, self._saved, self._recall = options.name, options.saved, options.recall
        self._graph, self._history, self._runs = graph, history, runs
        # Calls that are noted on the tape have profiles of their own, by what requires gradients.
        noted = f", noted on the tape {options.noted}" if options.gradients else ""
        noted += ", values observed" if values else ""
        self._device, self._arguments = options.processor.device, options.arguments + noted
        self._packed: _Packed | None = None

    def restore(self, record: Record, counters: Counters, reasons: list[Reason]) -> Sequence[Types]:
        """Fill a new record from the stored profile, and return the profile's input types.

        Returns an empty sequence if no profile is stored. If the user gave a file and the file has
        no profile of this graph, the reason is added to ``reasons``.
        """
        if not (self._recall and (self._saved or knobs.cache)):
            return ()
        profile, where = self._find(reasons)
        if profile is None:
            return ()
        try:
            record.restore(profile.observed)
        except IRError as error:
            reasons.append(Reason(Kind.OTHER_PROFILE, subject=where, detail=error.what))
            return ()
        counters.profiles_restored += 1
        log("profile", self._name, f"restored from {where}")
        return profile.inputs

    def stored(self, request: CompileRequest, counters: Counters, reasons: list[Reason]) -> CompileResult | None:
        """The stored compile of a request; None if there is none."""
        from ..compile.cache.lookup import stored

        result, missed = stored(request, counters, self._saved)
        if result is None and missed:
            log("profile", self._name, f"compiles anew: {missed}")
            reasons.append(Reason(Kind.COMPILED_ANEW, detail=missed))
        return result

    def keep(self, record: Record, inputs: Sequence[Types]) -> None:
        """Store the profile of a ready record for later processes."""
        from ..compile.cache.disk import users_cache

        cache = users_cache()
        if cache is not None and not record.is_restored and not self._obstacle():
            profile = self._profile(record, inputs)
            cache.keep(self._profile_key(), profile.to_sections, self._name)

    # --- for a file ---------------------------------------------------------------------------

    def pack(self, record: Record, inputs: Sequence[Types], request: CompileRequest | None) -> None:
        """Keep the parts that `entries` needs: the caller is about to drop these objects."""
        self._packed = self._packable(record, inputs, request)

    def entries(
        self,
        record: Record | None,
        inputs: Sequence[Types],
        request: CompileRequest | None,
        result: CompileResult | None,
    ) -> list[CacheEntry]:
        """The profile and the compile of an executor as entries; either may be missing."""
        from ..compile.cache.codec import to_sections
        from ..compile.cache.entry import CacheEntry
        from ..compile.proof.check_verdict import summary

        packed = self._packed
        if packed is None and record is not None and record.ready:
            packed = self._packable(record, inputs, request)
        if packed is None or self._obstacle():
            return []
        entries = [CacheEntry(self._profile_key(), self._name, time.time(), packed.profile.to_sections())]
        if result is not None and not result.faulty and packed.compile is not None:
            sections = to_sections(result, packed.places)
            about = summary(result.checks.values())
            entries.append(CacheEntry(packed.compile, self._name, time.time(), sections, about))
        return entries

    def _packable(self, record: Record, inputs: Sequence[Types], request: CompileRequest | None) -> _Packed:
        from ..compile.cache.cache_key import key_of, obstacle
        from ..compile.cache.source_locations import SourceLocations

        profile = self._profile(record, inputs)
        if request is None or obstacle(request):
            return _Packed(profile)
        places = SourceLocations.of(request.ir)
        return _Packed(profile, key_of(request, places), places.listed)

    # --- looking ------------------------------------------------------------------------------

    def _find(self, reasons: list[Reason]) -> tuple[StoredProfile | None, str]:
        from ..compile.cache.disk import users_cache
        from ..compile.cache.entry import CorruptEntry
        from ..compile.cache.profiles import StoredProfile

        obstacle, saved = self._obstacle(), self._saved
        if obstacle:
            if saved is not None:
                reasons.append(Reason(Kind.FILE_NOT_USED, subject=saved.path, detail=obstacle))
            return None, ""
        key, missed = self._profile_key(), ""
        if saved is not None:
            entry = saved.find(key)
            try:
                if entry is not None:
                    return StoredProfile.from_sections(entry.sections), saved.path
                if not self._history:  # a fallback without a profile is normal: it may never run
                    missed = saved.why_missed(key)
            except CorruptEntry as error:
                missed = f"the profile in {saved.path} is damaged: {error}"
        cache = users_cache()
        profile = None if cache is None else cache.find(key, StoredProfile.from_sections, self._name)
        if missed:
            kind = Kind.PROFILED_ANEW if profile is None else Kind.CACHED_PROFILE
            reasons.append(Reason(kind, detail=missed))
        return profile, "the disk cache"

    def _profile(self, record: Record, inputs: Sequence[Types]) -> StoredProfile:
        from ..compile.cache.profiles import StoredProfile

        return StoredProfile(record.observations(), tuple(inputs))

    def _profile_key(self) -> Key:
        return self._identity[0]

    def _obstacle(self) -> str:
        """The reason why profiles of this graph cannot be stored for other processes; "" = they can be."""
        if has_claims():
            return "register_profiled_ops holds in this process only"
        own = self._identity[1]
        return f"{own} is of this process only" if own else ""

    @cached_property
    def _identity(self) -> tuple[Key, str]:
        """The key of the profile, and the name of one user-defined op in the graph ("" = none)."""
        from ..compile.cache.profiles import key_of_graph

        text = self._graph().to_mlir()
        key = key_of_graph(text, self._history, self._runs, self._device, self._arguments)
        return key, users_op(text)
