"""Events as lines: text on stderr, or JSON in a file (the ``log`` and ``log_level`` knobs).

A line is appended by a single write to a file opened for it alone: there is no descriptor that a
fork, a daemon or a rotation of logs could spoil, and lines of threads and processes never mix.
Events are rare (no call in the steady state makes one), so that this costs nothing that counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ...dialect.errors import KnobError
from .fingerprint import versions
from .knobs import KNOBS, LEVELS, knobs

if TYPE_CHECKING:
    from .events import Event

STDERR = "stderr"
# A log that is a pipe nobody reads must be an error, not a wait.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK

# Written by `setdefault` alone, which needs no lock that a fork could leave locked.
_lost: dict[str, object] = {}  # files that could not be written: given up at the first failure
_begun: dict[tuple[str, int], object] = {}  # (file, process): one line tells of the process


def write(event: Event, where: str) -> None:
    """Write an event to stderr or a file, if its level is to be told; raises OSError."""
    if LEVELS.index(event.level) < LEVELS.index(knobs.log_level) or is_lost(where):
        return
    if where == STDERR:
        say(str(event))
        return
    text = f"{json_line(event)}\n"
    if _first(_begun, (where, os.getpid())):
        text = f"{json.dumps(_process())}\n{text}"
    _append(where, text.encode())


def json_line(event: Event) -> str:
    """One event as a JSON object; what JSON lacks is written as text."""
    record = {
        "time": event.time, "level": event.level, "kind": event.kind, "function": event.function,
        "reason": event.reason, "seconds": event.seconds, "pid": os.getpid(),
        "thread": event.thread, "details": dict(event.details),
    }  # fmt: skip
    return json.dumps(record, default=str)


def say(text: str) -> None:
    """A line on stderr, if there still is one."""
    with contextlib.suppress(OSError, ValueError):  # a closed pipe, a closed file
        if sys.stderr is not None:
            print(text, file=sys.stderr)


def _first(done: dict[Any, object], key: Any) -> bool:
    mark = object()
    return done.setdefault(key, mark) is mark


def _process() -> dict[str, Any]:
    """The line that describes this process to a reader of the file."""
    return {"kind": "process", "level": "info", "pid": os.getpid(), "details": environment()}


def environment() -> dict[str, Any]:
    """Versions of all that takes part in compiling, and every knob."""
    return {"versions": versions(), "knobs": {name: _setting(name) for name in KNOBS}}


def _setting(name: str) -> str:
    try:
        return str(getattr(knobs, name))
    except KnobError as error:  # of a knob that nothing has needed yet
        return str(error)


def _append(where: str, data: bytes) -> None:
    file = os.open(where, _FLAGS, 0o644)
    try:
        if os.write(file, data) < len(data):
            raise OSError("only part of a line could be written")
    finally:
        os.close(file)


def is_lost(where: str) -> bool:
    """Whether a file or folder has been given up."""
    return where in _lost


def lose(does: str, where: str, error: OSError) -> str:
    """Say once on stderr that nothing more is written there, and return that; "" after that."""
    if not _first(_lost, where):
        return ""
    reason = f"this process {does} nothing more to {where}: {error.strerror or error}"
    say(f"profuse: {reason}")
    return reason
