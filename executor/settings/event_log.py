"""Events as lines: text on stderr, or JSON in a file (the ``log`` and ``log_level`` knobs).

Each line is appended by a single write to a file that is opened for this line: so there is no
descriptor that a fork, a daemon or a rotation of logs could spoil, and lines of threads and
processes never mix. The cost does not matter, because calls in the steady state cause no events.
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
# O_NONBLOCK: if the log is a pipe that nobody reads, writing must fail instead of waiting.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK

# Written by `setdefault` alone, which needs no lock that a fork could leave locked.
_lost: dict[str, object] = {}  # files that could not be written: given up at the first failure
_begun: dict[tuple[str, int], object] = {}  # (file, process) whose first line is written


def write(event: Event, where: str) -> None:
    """Write an event to stderr or a file, unless ``log_level`` excludes it; raises OSError."""
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
    """One event as the text of a JSON object; values that JSON lacks become text."""
    record = {
        "time": event.time,
        "level": event.level,
        "kind": event.kind,
        "function": event.function,
        "reason": event.reason,
        "seconds": event.seconds,
        "pid": os.getpid(),
        "thread": event.thread,
        "details": dict(event.details),
    }
    return json.dumps(record, default=str)


def say(text: str) -> None:
    """Print a line to stderr, if stderr is still open."""
    with contextlib.suppress(OSError, ValueError):  # a closed pipe, a closed file
        if sys.stderr is not None:
            print(text, file=sys.stderr)


def _first(done: dict[Any, object], key: Any) -> bool:
    mark = object()
    return done.setdefault(key, mark) is mark


def _process() -> dict[str, Any]:
    """The record of this process, with which its part of the file begins."""
    return {"kind": "process", "level": "info", "pid": os.getpid(), "details": environment()}


def environment() -> dict[str, Any]:
    """Versions of all packages that take part in compiling, and the value of every knob."""
    return {"versions": versions(), "knobs": {name: _setting(name) for name in KNOBS}}


def _setting(name: str) -> str:
    try:
        return str(getattr(knobs, name))
    except KnobError as error:  # the environment has a bad value, which nothing has read yet
        return str(error)


def _append(where: str, data: bytes) -> None:
    file = os.open(where, _FLAGS, 0o644)
    try:
        if os.write(file, data) < len(data):
            raise OSError("only part of a line could be written")
    finally:
        os.close(file)


def is_lost(where: str) -> bool:
    """True if a file or folder has been given up."""
    return where in _lost


def lose(does: str, where: str, error: OSError) -> str:
    """Give up a file or folder: print the reason to stderr and return it; "" if given up before."""
    if not _first(_lost, where):
        return ""
    reason = f"this process {does} nothing more to {where}: {error.strerror or error}"
    say(f"profuse: {reason}")
    return reason
