"""Traces for https://ui.perfetto.dev, in Chrome's trace-event format, with a lane for each kind.

Each thread has up to three lanes: its calls (with changes of tier, misses and flushes as points),
its compiles, and its use of the disk cache. The stages of a compile stand below it, in order and
with their true lengths; all passes are one stage.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..files import check_writable, write_whole
from ..settings.event_log import environment, say
from ..settings.events import Event, log
from .timeline import TimedCall, Timeline

Json = dict[str, Any]

LANES = ("calls", "compiles", "cache")
_COMPILES = (
    "compile",
    "compile-failed",
    "demoted",
    "dispatch",
    "dispatch-refused",
    "kernel-failed",
    "load",
    "refused",
    "trace",
)
_BACKSLASHES_AT_END = re.compile(r'(?<!\\)((?:\\\\)+)"')  # in JSON, at the end of a string
_IN_STAGES = ("load",)  # events that a compile's stages show already

_process: list[tuple[Timeline, Path]] = []  # the timeline of the ``trace`` knob
_finishing: set[int] = set()  # ids of processes that will write it when they end


@contextmanager
def trace(path: str | os.PathLike[str] | None = None) -> Iterator[Timeline]:
    """Record every call, compile and look-up in the ``with`` block, and write a trace of them.

    Args:
        path: path of the JSON file that is written at the end, also if the block raises; None =
            only record, for `report`.

    Meanwhile, calls take some 10 microseconds longer. Raises FileError at the start if the path
    cannot be written. If writing fails at the end, there is a warning instead of an error.
    """
    where = None if path is None else Path(os.path.abspath(path))
    if where is not None:
        check_writable(where, "a trace")
    timeline = Timeline()
    timeline.start()
    try:
        yield timeline
    finally:
        timeline.stop()
        if where is not None:
            _save(timeline, where)


def trace_from_environment(path: str) -> None:
    """Record from now until the process ends, for the ``trace`` knob; further calls do nothing."""
    if not _process:
        _process.append((Timeline(_finish_at_exit), Path(path)))
        _process[0][0].start()


def _finish_at_exit() -> None:
    """Make this process write its trace when it ends.

    The timeline calls this on each thread that it records, hence also in forked children.
    """
    if os.getpid() in _finishing:
        return
    _finishing.add(os.getpid())
    atexit.register(_finish)
    if _is_multiprocessing():
        # Forked children of multiprocessing end without the functions registered with atexit.
        from multiprocessing import util

        util.Finalize(None, _finish, exitpriority=0)


def _finish() -> None:
    """Write the trace of the whole process, once."""
    if os.getpid() not in _finishing:  # already written, or a child without records
        return
    _finishing.clear()
    timeline, path = _process[0]
    timeline.stop()
    _save(timeline, path, is_child=_is_multiprocessing())


def _is_multiprocessing() -> bool:
    """True in child processes of multiprocessing, by any start method."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


def _save(timeline: Timeline, path: Path, *, is_child: bool = False) -> None:
    """Write a trace; a child process writes its own file, whose name contains the process id."""
    if is_child or timeline.pid != os.getpid():
        path = path.with_name(f"{path.stem}-{os.getpid()}{path.suffix}")
    try:
        write_whole(path, _text(as_json(timeline)))
    except OSError as error:
        reason = f"the trace is lost, {path} cannot be written: {error.strerror or error}"
        say(f"profuse: {reason}")
        log("trace-lost", "", reason)


def _text(record: Json) -> str:
    """JSON that Perfetto can read.

    Perfetto shows escapes of letters unchanged, so letters are not escaped. It takes a quotation
    mark behind a backslash for a part of the string, even if the backslash itself is escaped, and
    then reads nothing of the file; so a space comes between them.
    """
    text = json.dumps(record, default=str, ensure_ascii=False)
    return _BACKSLASHES_AT_END.sub(r'\1 "', text)


def as_json(timeline: Timeline) -> Json:
    """A timeline in the trace-event format: an object that JSON can write."""
    lanes = _LaneNumbers(timeline)
    groups = [lanes.call(call) for call in tuple(timeline.calls)]
    groups += [lanes.event(when, event) for when, event in tuple(timeline.events) if event.kind not in _IN_STAGES]
    # Outer spans come before those they contain.
    groups.sort(key=lambda group: (group[0].start, -group[0].length))
    spans = [lanes.place(span) for group in map(lanes.apart, groups) for span in group]
    about = {"lost calls": timeline.lost, "started": timeline.epoch + timeline.began / 1e9}
    return {
        "traceEvents": [*lanes.names(), *spans],
        "displayTimeUnit": "ms",
        "otherData": {**about, **environment()["versions"]},
    }


def lane_of(event: Event) -> str:
    """The one of `LANES` that an event belongs to."""
    if event.kind.startswith("disk"):
        return "cache"
    compiling = event.kind in _COMPILES or event.kind.startswith("worker")
    return "compiles" if compiling else "calls"


class _Span(NamedTuple):
    """A span or a point in a lane; start and length in nanoseconds."""

    lane: str
    thread: int
    name: str
    start: int
    length: int
    args: Json
    is_point: bool = False
    row: int = 0


class _LaneNumbers:
    """Numbers lanes as threads turn up, and writes spans into them."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.pid = os.getpid()
        self.lanes: dict[tuple[int, str, int], int] = {}
        self.ends: dict[int, list[int]] = {}

    def call(self, call: TimedCall) -> list[_Span]:
        args: Json = {"tier": call.tier, **call.gained}
        if call.error:
            args["error"] = call.error
        return [_Span("calls", call.thread, call.name, call.start, call.nanoseconds, args)]

    def event(self, when: int, event: Event) -> list[_Span]:
        """The span of an event, with the spans of a compile's stages.

        The stages fill the end of the compile's span: before them, the compile had to wait.
        """
        lane, thread = lane_of(event), event.thread
        args = {"reason": event.reason, "level": event.level, **event.details}
        name = f"{event.kind} {event.function}".rstrip()
        if event.seconds is None:
            return [_Span(lane, thread, name, when, 0, args, is_point=True)]
        stages = {n: int(seconds * 1e9) for n, seconds in args.pop("stages", {}).items()}
        start = when - int(event.seconds * 1e9)
        group = [_Span(lane, thread, name, start, when - start, args)]
        at = max(when - sum(stages.values()), start)
        for stage, nanoseconds in stages.items():
            group.append(_Span(lane, thread, stage, at, min(nanoseconds, when - at), {}))
            at += group[-1].length
        return group

    def apart(self, group: list[_Span]) -> list[_Span]:
        """Give compiles of one thread that overlap different rows.

        They overlap in the background, or if a fallback compiles during its parent's compile.
        """
        first = group[0]
        if first.lane != "compiles" or first.is_point:
            return group
        ends = self.ends.setdefault(first.thread, [])
        row = next((k for k, end in enumerate(ends) if end <= first.start), len(ends))
        ends[row : row + 1] = [first.start + first.length]
        return [span._replace(row=row) for span in group]

    def place(self, span: _Span) -> Json:
        lane = span.thread, span.lane, span.row
        record = {
            "ph": "X",
            "name": span.name,
            "cat": span.lane,
            "pid": self.pid,
            "tid": self.lanes.setdefault(lane, len(self.lanes) + 1),
            "ts": (span.start - self.timeline.began) / 1e3,
            "args": span.args,
        }
        return record | ({"ph": "i", "s": "t"} if span.is_point else {"dur": span.length / 1e3})

    def names(self) -> Iterator[Json]:
        """Records with the names of the process and of each lane, and the order of lanes."""
        yield self._about("process_name", 0, {"name": "profuse"})
        for (thread, lane, row), tid in self.lanes.items():
            title = self.timeline.threads.get(thread, str(thread))
            number = f" {row + 1}" if row else ""
            yield self._about("thread_name", tid, {"name": f"{lane}{number} · {title}"})
            order = list(self.timeline.threads).index(thread) * 100 + LANES.index(lane) * 10 + row
            yield self._about("thread_sort_index", tid, {"sort_index": order})

    def _about(self, what: str, tid: int, args: Json) -> Json:
        return {"ph": "M", "name": what, "pid": self.pid, "tid": tid, "args": args}
