"""A compile's result as named sections of bytes, for cache entries and for workers' replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....dialect import ops  # noqa: F401  (fills the op table)
from ....dialect.errors import Loc, ProfuseError
from ....dialect.ir.serialize import module_from_json, module_to_json
from ....dialect.reasons import Reason
from ....lowering.abi import KernelArtifact
from ..proof.check_verdict import CheckVerdict, Times
from ..request import CompileResult
from .entry import OBJECT, CacheEntry, CorruptEntry
from .profiles import StoredProfile, is_profile

if TYPE_CHECKING:
    from ....lowering.gpu.artifact import GpuArtifact

_PLAIN = ("sizes", "trace", "seconds", "faulty")
_OTHER_DATA = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


def to_sections(result: CompileResult, places: Sequence[Loc] = ()) -> dict[str, bytes]:
    """The result as named sections of bytes; inverse of `from_sections`.

    ``places``: source locations of the request. The sections contain their indices instead; see
    `source_locations`.
    """
    plain: dict[str, Any] = {name: getattr(result, name) for name in _PLAIN}
    plain["refusals"] = [reason.to_json(places) for reason in result.refusals]
    kernels = {**result.kernels, **result.demoted}
    failures = {n: reason for n, reason in result.failures.items() if n not in kernels}
    plain["failures"] = {n: reason.to_json(places) for n, reason in failures.items()}
    plain["places"] = len(places)
    plain["checks"] = {name: verdict.to_json() for name, verdict in result.checks.items()}
    plain["times"] = {name: times.to_json() for name, times in result.times.items()}
    plain["kernels"] = {name: kernel.header() for name, kernel in kernels.items()}
    return {
        "result": json.dumps(plain).encode(),
        "module": json.dumps(module_to_json(result.module, places)).encode(),
        "ir": result.ir.encode("utf-8", "surrogatepass"),
        **{f"{OBJECT}{name}": kernel.object for name, kernel in kernels.items()},
    }


def from_sections(sections: dict[str, bytes], places: Sequence[Loc] = ()) -> CompileResult:
    """The result that `to_sections` wrote.

    ``places``: the source locations to fill in. Raises CorruptEntry for other sections.
    """
    try:
        plain = json.loads(sections["result"])
        headers = plain.pop("kernels")
        if plain.pop("places") != len(places):
            raise CorruptEntry("it names more or fewer places than the graph")
        refusals = [Reason.from_json(data, places) for data in plain.pop("refusals")]
        failures = {n: Reason.from_json(d, places) for n, d in plain.pop("failures").items()}
        checks = {n: CheckVerdict.from_json(data) for n, data in plain.pop("checks").items()}
        times = {n: Times.from_json(data) for n, data in plain.pop("times").items()}
        if set(plain) != set(_PLAIN):
            raise CorruptEntry(f"a result has the fields {', '.join(_PLAIN)}, not {list(plain)}")
        kernels = {
            name: _artifact_of(header).from_header(header, sections[f"{OBJECT}{name}"])
            for name, header in headers.items()
        }
        module = module_from_json(json.loads(sections["module"]), places)
        ir = sections["ir"].decode("utf-8", "surrogatepass")
    except CorruptEntry:
        raise
    except (*_OTHER_DATA, ProfuseError) as error:
        raise CorruptEntry(f"{type(error).__name__}: {error}") from error
    return CompileResult(module, ir, kernels, failures, checks, times, refusals=refusals, **plain)


def _artifact_of(header: dict[str, Any]) -> type[KernelArtifact] | type[GpuArtifact]:
    """The class of a kernel's artifact; only the header of a GPU kernel names a chip."""
    if "chip" not in header:
        return KernelArtifact
    from ....lowering.gpu.artifact import GpuArtifact

    return GpuArtifact


def check_entry(entry: CacheEntry) -> None:
    """Decode a whole entry, to check it; raises CorruptEntry."""
    sections = entry.sections
    if is_profile(entry.key):
        StoredProfile.from_sections(sections)
        return
    try:
        count = int(json.loads(sections["result"])["places"])
    except _OTHER_DATA as error:
        raise CorruptEntry(f"{type(error).__name__}: {error}") from error
    from_sections(sections, [Loc("", line) for line in range(count)])
