"""Plain calls: jitted functions run as Python where they are switched off, or watched by a debugger.

Python asks `plain` at each call that it dispatches. Emitted code reads the same from `WORDS`, and
from the thread's own state (`dispatch.conditions.debuggers`): so a switch, and a debugger that is
attached later, reach calls that run natively.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from sys import gettrace
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .fork_lock import ForkLock
from .knobs import knobs

if TYPE_CHECKING:
    from ..tape.repeated_calls import Repeats


class PlainReason(Enum):
    """The reason why a call is plain Python's."""

    DISABLED = "switched off"
    DEBUGGED = "a debugger is at work"


SWITCH, HARMLESS, VERSION = range(3)
"""Indices of `WORDS`.

SWITCH: above 0 = all calls ask Python, below 0 = debuggers are not asked for.
HARMLESS: address of a class whose trace functions are no debuggers'; 0 = none is known.
VERSION: of `sys.monitoring` (Python 3.12), when no debugger was a tool of it.
"""
WORDS = (ctypes.c_int64 * 3)()
_COVERAGE = frozenset({"coverage"})  # packages whose trace functions stop nowhere

_get_tool = getattr(getattr(sys, "monitoring", None), "get_tool", None)
_version: Any = None  # a ctypes integer in the interpreter's state, once it has been verified
_kept: list[type] = []  # the class of `HARMLESS`


class _Scope:
    """One `disable_jit` block; contexts that were copied in it may outlive it."""

    is_open = True


_scope: ContextVar[_Scope | None] = ContextVar("profuse_disable_jit", default=None)


class _Switches:
    """The switches that the user has set.

    Attributes:
        asks: whether a call may be switched off: the knob is set, or some block is open.
        everywhere: the knob ``disable``.
        blocks: how many `disable_jit` blocks are open in all threads.
        debuggers: the knob ``debugger``.
    """

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.asks = self.everywhere = False
        self.debuggers = True
        self.blocks = 0

    def change(self, *, everywhere: bool, debuggers: bool, blocks: int = 0) -> None:
        with self.lock:
            self.everywhere, self.debuggers = everywhere, debuggers
            self.blocks += blocks
            self.asks = everywhere or self.blocks > 0
            WORDS[SWITCH] = 1 if self.asks else 0 if debuggers else -1


_switches = _Switches()


def read_knobs(_: object = None) -> None:
    """Follow the knobs; the environment may have set them before anybody was told."""
    _switches.change(everywhere=knobs.disable, debuggers=knobs.debugger)


for _name in ("disable", "debugger"):
    knobs.watch(_name, read_knobs)


@contextmanager
def disable_jit() -> Iterator[None]:
    """Have jitted functions call the Python functions they were made of, as if they were not.

    The block holds for this thread, and for tasks and contexts that are made in it, until it ends;
    other threads are not affected. It may be nested, and used as a decorator. Nothing is traced,
    counted or compiled meanwhile, and what has been compiled is used again afterwards. What Python
    alone cannot compute runs as ever: gradients of `grad` and its kin, and loaded functions. In a
    function that is being traced the block does nothing.
    """
    scope = _Scope()
    _change_blocks(1)
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
        scope.is_open = False
        _change_blocks(-1)


class _Checkpoint(threading.local):
    """What this thread runs.

    Attributes:
        repeats: how jitted functions serve the calls of the innermost checkpointed call, as
            `tape.repeated_calls` notes it; None = there is none.
    """

    repeats: Repeats | None = None


CHECKPOINT = _Checkpoint()


@contextmanager
def asked() -> Iterator[None]:
    """Have emitted code of all threads hand its calls to Python in the block, which serves them as ever."""
    _change_blocks(1)
    try:
        yield
    finally:
        _change_blocks(-1)


def _change_blocks(by: int) -> None:
    _switches.change(everywhere=_switches.everywhere, debuggers=_switches.debuggers, blocks=by)


def plain() -> PlainReason | None:
    """The reason why a call of this thread is plain Python's; None = it is not."""
    if _switches.asks and is_disabled():
        return PlainReason.DISABLED
    if gettrace() is None and _get_tool is None:
        return None
    return debugged()


def is_disabled() -> bool:
    """True if the user has switched jitted functions off, for this thread."""
    if _switches.everywhere:
        return True
    scope = _scope.get()
    return scope is not None and scope.is_open


def debugged() -> PlainReason | None:
    """The reason to run plain Python if a debugger is at work; else emitted code goes on with the present version."""
    if not _switches.debuggers:
        return None
    # Read first: a debugger that comes meanwhile changes the version once more.
    version = None if _version is None else _version.value
    if debugger() is not None:
        return PlainReason.DEBUGGED
    if version is not None and version != WORDS[VERSION]:
        WORDS[VERSION] = version
    return None


def debugger() -> str | None:
    """The name of the debugger of this thread; None = nothing debugs it, as far as can be told.

    A trace function counts as a debugger's unless it is known to be no such: it may stop at any
    line. So does a tool of `sys.monitoring` that calls itself one. Profilers do not count.
    """
    tracer = gettrace()
    if tracer is not None and not _is_harmless(tracer):
        kind = type(getattr(tracer, "__self__", tracer))
        definition = tracer if isinstance(tracer, FunctionType) else kind
        return f"{definition.__module__}.{definition.__qualname__}"
    tool = None if _get_tool is None else _get_tool(0)  # DEBUGGER_ID
    return None if tool is None else str(tool)


def _is_harmless(tracer: Any) -> bool:
    """True if a trace function is one that only notes which lines have run."""
    owner = getattr(tracer, "__self__", tracer)
    definition = owner if isinstance(owner, FunctionType) else type(owner)
    harmless = str(definition.__module__).partition(".")[0] in _COVERAGE
    if harmless and owner is tracer and definition is type(tracer):
        # All objects of the class are trace functions of this package: emitted code may know it.
        _kept[:] = [type(tracer)]
        WORDS[HARMLESS] = id(type(tracer))
    return harmless


def watch_version(cell: Any) -> None:
    """Compare this integer from now on: it changes whenever tools ask for other events."""
    global _version
    _version = cell
    WORDS[VERSION] = cell.value - 1  # so that the next call of emitted code asks
