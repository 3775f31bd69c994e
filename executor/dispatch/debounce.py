"""Debounced work on a thread of its own, so that no call waits for it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

from ..settings.events import log
from ..settings.fork_gate import no_fork
from ..settings.fork_lock import ForkLock
from ..settings.turns import short_turns

# Work begins after this many seconds without a request. While plans still follow each other
# quickly, the work would be wasted and would take CPU time from calls.
_QUIET = 0.5
_LATEST = 5.0  # seconds after which work begins even if requests keep coming


class Later:
    """Work that may be requested any number of times, and never runs twice at the same time.

    The work begins after a while without requests, or when `wait` is called. A request during a
    run causes one more run. A forked child starts without the thread; its first request starts
    one. No fork happens during a run (`fork_gate`).

    Args:
        work: a bound method; this object does not keep the method's object alive.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = weakref.WeakMethod(work)
        self._lock = ForkLock()
        self._again = False
        self._asked = 0.0
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Request a run that sees the present state."""
        with self._lock:
            self._asked = time.monotonic()
            if self._thread is not None and self._thread.is_alive():
                self._again = True
                return
            self._hurry = threading.Event()
            thread = threading.Thread(target=self._run, name="profuse-dispatch", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the interpreter ends, or there are no more threads
                log("dispatch-refused", "", f"no thread to emit code on: {error}")
                return
            self._thread = thread

    def wait(self, seconds: float) -> bool:
        """Wait at most this long for the work to end; returns whether it has ended."""
        thread = self._thread
        if thread is not None:
            self._hurry.set()
            thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def _settle(self) -> None:
        latest = time.monotonic() + _LATEST
        while (timeout := min(self._asked + _QUIET, latest) - time.monotonic()) > 0:
            if self._hurry.wait(timeout):
                return

    def _run(self) -> None:
        while True:
            self._settle()
            with self._lock:
                self._again = False
            work = self._work()
            if work is not None:
                with no_fork(), short_turns():
                    work()
            del work
            with self._lock:
                if not self._again:
                    self._thread = None
                    return
