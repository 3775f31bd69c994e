"""Offsets of a thread's tracer and profiler in CPython's structs, verified in the running process.

A trace function is a field of the thread's state. From Python 3.12 on, tools of `sys.monitoring`
are compared by a number of the interpreter's that changes with the events they ask for.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from ...dialect.dataclass import dataclass
from ..settings.plain import watch_version


@dataclass(frozen=True)
class ThreadLayout:
    """Byte offsets (64-bit CPython 3.11 - 3.13).

    Attributes:
        interpreter: in a PyThreadState, of the pointer to the interpreter's state.
        profiler: of a pointer to a C function, NULL without a profiler. Then follow that of the
            tracer, the profiler's object and the tracer's object.
        version: in the interpreter's state, of the version of what is monitored; None before 3.12.
    """

    interpreter: int = 16
    profiler: int = 64
    version: int | None = None

    @property
    def tracer(self) -> int:
        """Of the C function that is called with each event; NULL without a tracer."""
        return self.profiler + 8

    @property
    def tracer_object(self) -> int:
        """Of the object that `sys.gettrace` returns."""
        return self.profiler + 24


_LAYOUTS = {(3, 11): ThreadLayout(), (3, 12): ThreadLayout(version=48), (3, 13): ThreadLayout(profiler=80, version=0)}
THREAD = _LAYOUTS.get(sys.version_info[:2], ThreadLayout())


def difference(layout: ThreadLayout) -> str | None:
    """The field that differs from a layout in this thread; None = none does.

    A field is compared with what Python reports while there is a profiler: one that does nothing,
    unless the user has one. Where all agrees, versions are watched from now on.
    """
    if sys.version_info[:2] not in _LAYOUTS:
        return f"the state of threads of Python {sys.version_info[0]}.{sys.version_info[1]}"
    get: Any = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    thread = get()
    interpreter = ctypes.pythonapi.PyInterpreterState_Get
    interpreter.restype = ctypes.c_void_p
    if _word(thread + layout.interpreter) != interpreter():
        return "PyThreadState.interp"
    users = sys.getprofile()
    before = 0 if layout.version is None else _word(interpreter() + layout.version)
    if users is None:
        sys.setprofile(_nothing)
    try:
        # No call between: a profiler of Python's would see it.
        actual = [_word(thread + layout.profiler + 8 * k) for k in range(4)]
        expected = sys.getprofile(), sys.gettrace()
    finally:
        if users is None:
            sys.setprofile(None)
    for name, function, pointer, value in zip(("profile", "trace"), actual[:2], actual[2:], expected, strict=True):
        if pointer != (0 if value is None else id(value)) or bool(function) != bool(pointer):
            return f"PyThreadState.c_{name}func"
    if layout.version is None:
        return None
    cell = ctypes.c_uint64.from_address(interpreter() + layout.version)
    if users is None and cell.value == before:
        return "the version of what is monitored"
    watch_version(cell)
    return None


def version_address() -> int | None:
    """The address of the version; None before Python 3.12."""
    if THREAD.version is None:
        return None
    interpreter: Any = ctypes.pythonapi.PyInterpreterState_Get
    interpreter.restype = ctypes.c_void_p
    return interpreter() + THREAD.version


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _nothing(frame: Any, event: str, arg: Any) -> None:
    """A profiler."""
