"""The trace that runs in this thread, the line of the user's code it is at, and errors there."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ....errors import NOTICING, Loc, ProfuseError, TraceError
from ..python.caught import catching
from ..python.users_code import is_users_file

if TYPE_CHECKING:
    from .recorder import Recorder

_SKIPPED = ("profuse.", "numpy.", "numpy", "profuse")


class _OpenTraces(threading.local):
    """The traces that run in one thread, the innermost one last."""

    def __init__(self) -> None:
        self.stack: list[Recorder] = []


_LOCAL = _OpenTraces()
# What evaluates ops at once where no trace runs: that of the tape, once somebody uses the tape.
_evaluating: list[Recorder] = []


def current() -> Recorder | None:
    """The innermost trace running in this thread."""
    stack = _LOCAL.stack
    return stack[-1] if stack else None


def evaluator() -> Recorder | None:
    """The recorder that evaluates at once, outside of traces; None if there is none."""
    return _evaluating[-1] if _evaluating else None


def evaluate_with(recorder: Recorder) -> None:
    """Have ``recorder`` evaluate what is asked for outside of traces."""
    _evaluating[:] = [recorder]


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Make ``recorder`` this thread's current one, which notices the errors of operations."""
    _LOCAL.stack.append(recorder)
    recorder.runs += 1
    before, NOTICING.notice = NOTICING.notice, _notice_error
    try:
        yield recorder
    finally:
        recorder.runs -= 1
        _LOCAL.stack.pop()
        NOTICING.notice = before


def _notice_error() -> None:
    """Refuse the function if its code may look at an error that is made now: its class and its text are NumPy's."""
    rec = current()
    if rec is not None and rec.refused is None and catching(rec.entry, to_look=True):
        rec.refused = TraceError(
            "the function catches an error here and may look at it, as it is where NumPy raises it",
            loc=user_loc(),
            hint="catch it without a name: except ValueError",
        )


HOW_TO_BE_READ = "define it in a file, in IPython, or at the prompt of Python 3.13"


def user_loc() -> Loc | None:
    """The line of the innermost frame of the user's code, or of a library's if there is none."""
    rec = current()
    if rec is not None and rec.line is not None:
        return rec.line
    frame = sys._getframe(1)
    other = None
    while frame is not None:
        code = frame.f_code
        name = frame.f_globals.get("__name__") or ""
        if not name.startswith(_SKIPPED[:2]) and name not in _SKIPPED[2:]:
            if is_users_file(code.co_filename):
                return Loc(code.co_filename, frame.f_lineno)
            other = other or Loc(code.co_filename, frame.f_lineno)
        elif other is not None and rec is not None and code is rec.entry:
            break  # the traced function is a library's
        frame = frame.f_back  # type: ignore[assignment]
    return other


def trace_error(what: str, hint: str | None = None) -> TraceError:
    """A TraceError at the user's line, which ends the trace even if the user's code catches it."""
    error = TraceError(what, loc=user_loc(), hint=hint)
    rec = current()
    if rec is not None and rec.refused is None and rec.catching():
        rec.refused = error
    return error


def contents_error(what: str, hint: str) -> TraceError:
    """A TraceError where Python needs what contents of arrays decide."""
    rec = current()
    if rec is not None and rec.scope.unread:
        hint = f"{HOW_TO_BE_READ}: {rec.scope.unread}, so that no branch of it is recorded; or {hint}"
    error = trace_error(what, hint)
    error.of_contents = True
    return error


def world_error(what: str, hint: str) -> TraceError:
    """A TraceError where the function acts on what is outside of the program, or asks it."""
    error = trace_error(what, hint)
    error.of_world = True
    return error


def unknown_call(name: str) -> tuple[str, str]:
    """The reason why a C function that is not known to be pure is not called, and what to do."""
    return (
        f"{name} is called while tracing, and is not known to be pure: it may give something else "
        "at each call, or act on what is outside of the program",
        "call it outside of the function, or tell pf.pure that it is pure",
    )


def size_error(kind: type[ProfuseError], what: str) -> ProfuseError:
    """An error at the user's line that sizes cause; pins them: the graph holds for these alone."""
    rec = current()
    if rec is not None:
        rec.numbers.pin()
    return kind(what, loc=user_loc())
