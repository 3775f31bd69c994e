"""Work on a thread of its own, so that no call waits for it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

from ..settings.events import log
from ..settings.fork_gate import no_fork
from ..settings.fork_lock import ForkLock

# Seconds without anybody asking before the work begins, and the longest that it is put off: while
# one plan follows the other, the work would be for nothing, and would take time from calls.
_QUIET = 0.5
_LATEST = 5.0


class Later:
    """One piece of work that may be asked for any number of times, and runs one at a time.

    It begins once nobody has asked for a while, or when somebody waits for it. Asked for while it
    runs, it runs once more. A forked child starts without the thread, and gets one when it asks. No
    fork happens while it runs (`fork_gate`).

    ``work`` is a method, whose object is not kept alive.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = weakref.WeakMethod(work)
        self._lock = ForkLock()
        self._again = False
        self._asked = 0.0
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Have it run, with what there is now."""
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
        """Wait until nothing runs, at most so long; whether so."""
        thread = self._thread
        if thread is not None:
            self._hurry.set()
            thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def _settle(self) -> None:
        latest = time.monotonic() + _LATEST
        while (left := min(self._asked + _QUIET, latest) - time.monotonic()) > 0:
            if self._hurry.wait(left):
                return

    def _run(self) -> None:
        while True:
            self._settle()
            with self._lock:
                self._again = False
            work = self._work()
            if work is not None:
                with no_fork():
                    work()
            del work
            with self._lock:
                if not self._again:
                    self._thread = None
                    return
