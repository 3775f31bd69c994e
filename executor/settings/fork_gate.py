"""No fork while a thread of ours is at work: the child would inherit the locks it holds.

Such a thread holds the gate except while it waits. A fork of the process waits for the gate, for
`_PATIENCE` seconds at most: the thread may be waiting for a lock of the thread that forks.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_PACKAGE = __name__.partition(".")[0]
_PATIENCE = 5.0  # seconds

_gate = threading.RLock()
_held_for_fork = False


@contextmanager
def no_fork() -> Iterator[None]:
    """Around the work of a thread that takes locks of other threads' data."""
    with _gate:
        yield


@contextmanager
def fork_allowed() -> Iterator[None]:
    """Around waits inside of `no_fork`; no lock may be held there."""
    gate = _gate
    gate.release()
    try:
        yield
    finally:
        gate.acquire()


def loaded(module: str) -> ModuleType:
    """One of our modules that a call needs, imported with no fork meanwhile.

    A child would wait for ever for a module that a thread of its parent was importing.
    """
    name = f"{_PACKAGE}.{module}"
    found = sys.modules.get(name)
    if found is None or getattr(found.__spec__, "_initializing", False):
        with no_fork():
            found = importlib.import_module(name)
    return found


def _before_fork() -> None:
    global _held_for_fork
    _held_for_fork = _gate.acquire(timeout=_PATIENCE)


def _after_fork_in_parent() -> None:
    if _held_for_fork:
        _gate.release()


def _after_fork_in_child() -> None:
    global _gate
    _gate = threading.RLock()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
