"""A report out of a log: what JSON lines tell of one or several processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...dialect.errors import FileError
from ...executor.settings.events import Event
from ...executor.settings.knobs import KNOBS
from ..quantities import duration
from .model import CompiledGraph, FunctionReport, Run, Setting

Record = dict[str, Any]

_FIELDS: dict[str, Any] = {
    "time": (int, float),
    "seconds": (int, float, type(None)),
    "kind": str,
    "function": str,
    "reason": str,
    "pid": int,
    "thread": int,
}
_REASONS = ("refused", "compile-failed", "kernel-failed", "demoted", "guard-miss", "dropped")


def from_log(path: Path, title: str = "") -> Run:
    """The run that a log tells of; raises FileError where it is none.

    There are no calls, guards and IR in a log: it has compiles and their stages, tiers, look-ups,
    refusals and failures.
    """
    records, torn = _records(path)
    processes = [r for r in records if r["kind"] == "process"]
    happened = [r for r in records if r["kind"] != "process"]
    if not happened:
        raise FileError(f"{path} is no log: no line of it is an event", hint="write PROFUSE_LOG=path")
    began = min(r["time"] - (r["seconds"] or 0.0) for r in happened)
    threads = _Threads()
    events = tuple((r["time"] - began, threads.event(r)) for r in happened)
    details: Record = processes[-1]["details"] if processes else {"knobs": {}, "versions": {}}
    notes = ["Made of a log, which has no calls, guards and IR: run profuse-report on the script."]
    if len(processes) > 1:
        notes.append(f"{len(processes)} processes have written it; settings are the last one's.")
    if torn:
        notes.append(f"{torn} of its lines could not be read.")
    return Run(
        title=title or path.name,
        command="",
        started=began,
        seconds=max(r["time"] for r in happened) - began,
        recorded=False,
        lost=0,
        functions=tuple(_functions([event for _, event in events])),
        calls=(),
        events=events,
        threads=threads.names,
        counters=_counters([event for _, event in events]),
        settings=tuple(
            Setting(n, str(v), str(KNOBS[n].default), KNOBS[n].help) for n, v in details["knobs"].items() if n in KNOBS
        ),
        versions=details["versions"],
        target="",
        notes=tuple(notes),
        of_log=True,
    )


def _records(path: Path) -> tuple[list[Record], int]:
    """Lines that are records, and how many are not: whose writer was killed, or found no room."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    records = [r for r in map(_record, lines) if r is not None]
    return records, len(lines) - len(records)


def _record(line: str) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("details"), dict):
        return None
    if record.get("kind") == "process":
        parts = record["details"].get("knobs"), record["details"].get("versions")
        return record if all(isinstance(part, dict) for part in parts) else None
    return record if all(isinstance(record.get(n), t) for n, t in _FIELDS.items()) else None


class _Threads:
    """Numbers for the threads of all processes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self.names: dict[int, str] = {}

    def event(self, record: Record) -> Event:
        key = record["pid"], record["thread"]
        number = self._numbers.setdefault(key, len(self._numbers) + 1)
        same = sum(pid == key[0] for pid, _ in self._numbers)
        self.names.setdefault(number, f"process {key[0]}, thread {same}")
        return Event(
            record["kind"],
            record["function"],
            record["reason"],
            record["seconds"],
            record["details"],
            record["time"],
            number,
        )


def _functions(events: list[Event]) -> Iterable[FunctionReport]:
    """One for each name; a fallback's events belong to the function it is of."""
    by_name: dict[str, list[Event]] = {}
    for event in events:
        if event.function:
            by_name.setdefault(event.function.partition("/")[0], []).append(event)
    for number, (name, own) in enumerate(by_name.items(), 1):
        tiers = [e.details.get("tier") for e in own if e.kind == "tier" and e.function == name]
        compiles = [e for e in own if e.kind == "compile"]
        tier = tiers[-1] if tiers else "optimized" if compiles else "profiling"
        reasons = dict.fromkeys(_reason(e) for e in own if e.kind in _REASONS)
        yield FunctionReport(
            number,
            name,
            "",
            str(tier),
            _counters(own),
            (),
            (),
            tuple(map(_compile, compiles)),
            "\n".join(["What the log says:", *map(_sentence, own)]),
            tuple(reasons),
        )


def _compile(event: Event) -> CompiledGraph:
    stages = event.details.get("stages")
    if not isinstance(stages, dict):
        stages = {}
    return CompiledGraph(
        event.function,
        event.reason,
        event.seconds or 0.0,
        {str(n): s for n, s in stages.items() if isinstance(s, (int, float)) and s >= 0},
        str(event.details.get("found_in", "")),
        "",
    )


def _reason(event: Event) -> str:
    # What was refused says by itself what that has led to.
    return event.reason if event.kind == "refused" else f"{event.kind}: {event.reason}"


def _sentence(event: Event) -> str:
    took = "" if event.seconds is None else f" in {duration(event.seconds)}"
    return f"  {event.kind} of {event.function}{took}" + (f": {event.reason}" if event.reason else "")


def _counters(events: list[Event]) -> Mapping[str, int]:
    """Those of which a log has all that counts."""

    def count(kind: str) -> int:
        return sum(e.kind == kind for e in events)

    counters = {"compiles": count("compile"), "disk_hits": count("disk-hit")}
    return counters | {"disk_misses": count("disk-miss"), "traces": count("trace")}
