"""No fork while a thread of ours is at work: the child would inherit the locks it holds.

Such a thread holds the gate except while it waits. A fork of the process waits for the gate, but at
most `_PATIENCE` seconds, because the thread may itself wait for a lock of the forking thread.
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
    """Hold the gate around work that takes locks shared with other threads."""
    with _gate:
        yield


@contextmanager
def fork_allowed() -> Iterator[None]:
    """Open the gate during a wait inside `no_fork`; the thread must hold no lock meanwhile."""
    gate = _gate
    gate.release()
    try:
        yield
    finally:
        gate.acquire()


def loaded(module: str) -> ModuleType:
    """Import one of our modules for a call, while no fork may happen.

    If another thread were importing the module during a fork, the child would wait for it for ever.
    """
    name = f"{_PACKAGE}.{module}"
    module_object = sys.modules.get(name)
    if module_object is None or getattr(module_object.__spec__, "_initializing", False):
        with no_fork():
            module_object = importlib.import_module(name)
    return module_object


def _before_fork() -> None:
    global _held_for_fork
    _held_for_fork = _gate.acquire(timeout=_PATIENCE)


def _after_fork_in_parent() -> None:
    if _held_for_fork:
        _gate.release()


def _after_fork_in_child() -> None:
    global _gate
    _gate = threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
