"""What somebody who asked for a compile holds, and the compile that several may share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ....dialect.errors import WorkerError
from ...settings.events import Counters
from ..timings import QUEUE, WORKER, add

if TYPE_CHECKING:
    from ..request import CompileRequest, CompileResult


@dataclass
class Outcome:
    """How a compile ended: with a result, or with the error to raise.

    Attributes:
        in_process: why it was compiled in this process; "" = a worker, or the disk cache, did it.
        dropped: nobody tried: it was cancelled, or the pool is gone. Asking again is worth while.
        counted: what the compile counts for each executor that asked for it.
        begun, ended: when a lane took the request, and when it was done with it.
        started: from when to when the lane's worker took to start.
    """

    result: CompileResult | None = None
    error: BaseException | None = None
    in_process: str = ""
    dropped: bool = False
    counted: Counters = field(default_factory=Counters)
    begun: float = 0.0
    ended: float = 0.0
    started: tuple[float, float] = (0.0, 0.0)

    def get(self) -> CompileResult:
        """The result; raises the error."""
        if self.result is None:
            assert self.error is not None
            raise self.error
        return self.result

    def result_since(self, asked: float) -> CompileResult:
        """A copy of the result, whose stages tell what somebody who asked then has waited for.

        Raises the error. Whoever asked for what was being compiled already has only waited for it.
        """
        result, now = self.get(), time.perf_counter()
        if asked > self.begun:
            return replace(result, seconds={QUEUE: now - asked})
        starting = min(self.started[1], self.begun) - max(self.started[0], asked)
        starting = max(0.0, starting)
        made = replace(result, seconds=dict(result.seconds))
        add(made, WORKER, starting)
        add(made, QUEUE, self.begun - asked - starting + now - self.ended)
        return made


OnDone = Callable[["Ticket"], "bool | None"]  # returns False to be called again later


class Ticket:
    """One party's interest in a compile. Made by `Pool.submit`."""

    def __init__(self, job: Job, on_done: OnDone | None) -> None:
        self._job = job
        self._on_done = on_done
        self._settled = threading.Event()
        self.outcome: Outcome | None = None

    @property
    def request(self) -> CompileRequest:
        return self._job.request

    @property
    def done(self) -> bool:
        """True once there is an outcome."""
        return self.outcome is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the outcome, at most so many seconds; whether there is one."""
        self._settled.wait(timeout)
        return self.done

    def result(self) -> CompileResult:
        """Wait for the result; raises what the compile raised, or WorkerError."""
        self.wait()
        assert self.outcome is not None
        return self.outcome.get()

    def cancel(self) -> None:
        """Give up interest: `on_done` is not called any more.

        A compile that nobody is interested in is dropped if no worker has begun it.
        """
        self._job.leave(self)

    def settle(self, outcome: Outcome) -> None:
        """Note the outcome and wake those who wait; for the pool."""
        self.outcome = outcome
        self._settled.set()

    def call_back(self) -> bool:
        """Tell whoever asked for it; False if that has to be tried again. For the pool."""
        return self._on_done is None or self._on_done(self) is not False

    def orphan(self) -> None:
        """Settle in a forked child, where nobody is left to call back or to hold a lock."""
        self._settled = threading.Event()
        self._on_done = None
        if self.outcome is None:
            self.settle(dropped("the process was forked"))


@dataclass(eq=False)
class Job:
    """A request and everybody who waits for it; guarded by the pool's lock.

    Attributes:
        leave: called with a ticket that is given up.
        local: why it cannot go to a worker; "" = it can.
    """

    request: CompileRequest
    leave: Callable[[Ticket], None]
    local: str = ""
    tickets: list[Ticket] = field(default_factory=list)
    running: bool = False


def dropped(why: str) -> Outcome:
    """The outcome of what nobody tried."""
    return Outcome(error=WorkerError(f"not compiled: {why}"), dropped=True)
