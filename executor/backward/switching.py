"""Switching compiled autograd on and off: scopes, which belong to their thread (R4.1 - R4.6)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from ...dialect.errors import ArgumentError, GradientError
from ..tape.node import TAPE
from .capture_state import STATE, Compiler, nested
from .captured_backward import AutogradState
from .captured_run import backward
from .compile import compiled
from .compilers import identity
from .making import PROCESS, forget, wait

_Setting = tuple[Compiler | None, bool, Hashable]


def install(compiler: Compiler | None, dynamic: bool, key: Hashable = None) -> _Setting:
    """Have runs of this thread be captured for ``compiler``, or be eager; returns what was.

    ``key``: that of the compiler, if it is known.
    """
    before = STATE.compiler, STATE.dynamic, STATE.key
    STATE.compiler, STATE.dynamic = compiler, dynamic
    STATE.key = identity(compiler) if key is None and compiler is not None else key
    TAPE.captured = None if compiler is None or STATE.running or STATE.capturing else backward
    return before


class compiled_autograd:
    """In ``with pf.compiled_autograd():`` backward runs are captured as graphs, and compiled.

    Args:
        compiler: is given each captured run, a `Backward`, and returns what runs it: a callable
            on five lists, of which `Backward.interpret` is one. None = Profuse's executors.
        dynamic: sizes are inputs of the graph from the first capture on, and not only once they
            have changed.

    The scope belongs to the thread. Nested scopes count innermost, and what was set before comes
    back when one is left, by an exception too. In a hook, that is within a run, it has no effect
    (R4.41), and in a compiler it is refused (R4.6). Raises ArgumentError for what is no callable
    and for ``dynamic`` other than True and False (R4.1).
    """

    def __init__(self, compiler: Compiler | None = None, dynamic: bool = False) -> None:
        if compiler is not None and not callable(compiler):
            raise ArgumentError(
                f"compiled_autograd takes a function as its compiler, not {compiler!r}",
                hint="leave it away, and captured runs are compiled by Profuse",
            )
        if type(dynamic) is not bool:
            raise ArgumentError(f"dynamic must be True or False, not {dynamic!r}")
        self._compiler, self._dynamic = compiler or compiled, dynamic
        self._key = identity(self._compiler)
        self._before: list[Any] = []

    def __enter__(self) -> None:
        if STATE.capturing:
            raise nested()
        if STATE.forced:
            self._before.append((STATE.eager,))
            STATE.eager = True
            return
        self._before.append(install(self._compiler, self._dynamic, self._key))

    def __exit__(self, *_: Any) -> None:
        before = self._before.pop()
        if len(before) == 1:
            STATE.eager = before[0]
        else:
            install(*before)

    @staticmethod
    @contextmanager
    def disable() -> Iterator[None]:
        """In ``with pf.compiled_autograd.disable():`` backward runs are eager again (R4.4)."""
        before = install(None, False)
        try:
            yield
        finally:
            install(*before)

    @staticmethod
    @contextmanager
    def force_eager() -> Iterator[None]:
        """In this scope `compiled_autograd` has no effect, to compare programs (R4.2)."""
        before, STATE.forced = STATE.forced, True
        outer = install(None, False)
        try:
            yield
        finally:
            STATE.forced = before
            install(*outer)

    @staticmethod
    def reset() -> None:
        """Forget all captured runs, and number captures from 0 again; switches this thread off.

        Raises GradientError while a captured run is under way (R4.5).
        """
        if STATE.running or STATE.capturing:
            raise GradientError(
                "compiled_autograd.reset is called in a backward run that it is needed for",
                hint="call it between backward runs, and not in a hook",
            )
        install(None, False)
        forget()

    @staticmethod
    def state() -> AutogradState:
        """The captures of this process with their reasons, and how many runs each has served."""
        return PROCESS.now.state()

    @staticmethod
    def wait(timeout: float | None = None) -> bool:
        """Wait for captures and compiles in the background, at most ``timeout`` seconds.

        Returns whether all have ended.
        """
        return wait(timeout)

    @staticmethod
    def explain() -> str:
        """`state` as text: reasons of captures, hooks with their places, and how graphs run."""
        return compiled_autograd.state().explain()
