"""Signals wait where an exception of their handlers, such as Ctrl-C's, would do lasting damage.

An extension module whose import is interrupted can crash the process, and a registry that is half
filled cannot be filled again.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Run Python's handlers of signals behind the ``with`` block, for what came meanwhile.

    Processes that are started in the block begin with SIGINT blocked: Ctrl-C, which reaches the
    whole process group, would end them before they can say that they ignore it.

    In this process a mask does not do: the system gives the signal to another thread, those of BLAS
    for instance, and the main thread runs the handler all the same. So handlers are replaced. Only
    the main thread runs any; in other threads nothing has to be held back.
    """
    held: list[int] = []
    handlers: dict[int, Any] = {}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        _replace(handlers, held)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # What is pending is noted, as `signal.signal` first runs the handler that it replaces.
        for number in sorted(handlers, key=lambda number: number == signal.SIGINT):
            signal.signal(number, handlers[number])
        _deliver(list(dict.fromkeys(held)))


def _replace(handlers: dict[int, Any], held: list[int]) -> None:
    """Replace Python's handlers by one that notes signals in ``held``.

    ``handlers``: receives those that were there.
    """

    def note(number: int, frame: Any) -> None:
        held.append(number)

    for number in range(1, signal.NSIG):
        handler = signal.getsignal(number)
        if not callable(handler):
            continue  # the system's, or of C code: no exception comes of these
        handlers[number] = handler  # before it is replaced: a signal may come in between
        try:
            signal.signal(number, note)
        except ValueError:  # not the main thread, or not the main interpreter
            handlers.clear()
            return


def _deliver(numbers: Sequence[int]) -> None:
    """Run the handlers of all signals, also of those behind one whose handler raises."""
    if numbers:
        try:
            signal.raise_signal(numbers[0])
        finally:
            _deliver(numbers[1:])
