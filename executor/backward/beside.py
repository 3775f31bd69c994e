"""Work that is done beside the program, on a thread of its own: captures, and what follows them.

Jobs run one after another, in the order in which they were asked for. The thread ends when there
are none. A forked child has no such thread, and drops the jobs: what is noted of them has the
`Beside.era` in which they were asked for.
"""

from __future__ import annotations

import os
import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable

from ...dialect.ir import gradient_mode
from ..settings.events import log
from ..settings.fork_gate import no_fork

Job = Callable[[], None]
_PAUSE = 0.0005  # seconds


class Beside:
    """A queue of jobs with at most one thread."""

    def __init__(self) -> None:
        self._start_over()
        os.register_at_fork(after_in_child=self._start_over)

    def _start_over(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._is_running = False
        self.era = object()  # another one in each process

    def ask(self, job: Job) -> None:
        """Have a job be done; at once where no thread can be started. It raises nothing."""
        with self._changed:
            self._jobs.append(job)
            if self._is_running:
                return
            self._is_running = True
        try:
            # `threading.Thread.start` waits for the thread to run: as long as a short run takes.
            start_new_thread(self._serve, ())
        except RuntimeError:  # the interpreter ends, or there are no more threads
            self._serve()

    def wait(self, seconds: float | None) -> bool:
        """Wait until there are no jobs, at most so many seconds; returns whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_running, seconds)

    def _serve(self) -> None:
        # The program goes on, and is not held up at once by a thread that computes.
        time.sleep(_PAUSE)
        with gradient_mode.gradients(False):
            while True:
                with self._changed:
                    if not self._jobs:
                        self._is_running = False
                        self._changed.notify_all()
                        return
                    job = self._jobs.popleft()
                with no_fork():
                    try:
                        job()
                    except Exception as error:  # whoever needs the outcome goes on without it
                        what = f"{type(error).__name__}: {error}"
                        log("backward-failed", "compiled_autograd", what)
                del job


BESIDE = Beside()
