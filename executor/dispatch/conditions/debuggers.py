"""Emitting the question whether a call is plain Python's (see `settings.plain`).

Without a debugger this takes a call of `PyThreadState_Get` and three comparisons.
"""

from __future__ import annotations

import ctypes

from ...settings.plain import HARMLESS, SWITCH, VERSION, WORDS
from ..layout import LAYOUT
from ..llvm_writer import Writer
from ..thread_state import THREAD, version_address


def emit_question(w: Writer, ask: str) -> None:
    """Go to ``ask``, where Python is asked, unless it is known that a call is not Python's."""
    check, done = w.name(), w.name()
    switch = _word(w, SWITCH)
    w.unless(w.op(f"icmp sle i64 {switch}, 0"), ask)
    w.branch(w.op(f"icmp slt i64 {switch}, 0"), done, check)
    w.label(check)
    _unless_traced(w, ask)
    version = version_address()
    if version is not None:
        now = w.load("i64", w.address(version))
        w.unless(w.op(f"icmp eq i64 {now}, {_word(w, VERSION)}"), ask)
    w.jump(done)
    w.label(done)


def _unless_traced(w: Writer, ask: str) -> None:
    """Go on without a trace function, or with one whose class is known to be harmless."""
    traced, free = w.name(), w.name()
    thread = w.call("PyThreadState_Get", "ptr")
    tracer = w.field("ptr", thread, THREAD.tracer)
    w.branch(w.op(f"icmp eq ptr {tracer}, null"), free, traced)
    w.label(traced)
    tracer_object = w.field("ptr", thread, THREAD.tracer_object)
    w.unless(w.op(f"icmp ne ptr {tracer_object}, null"), ask)
    kind = w.field("i64", tracer_object, LAYOUT.ob_type)
    w.unless(w.op(f"icmp eq i64 {kind}, {_word(w, HARMLESS)}"), ask)
    w.jump(free)
    w.label(free)


def _word(w: Writer, index: int) -> str:
    return w.load("i64", w.address(ctypes.addressof(WORDS) + 8 * index))
