"""Jobs of the compile pool, which equal requests share, and tickets of those who wait for a job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ....dialect.dataclass import dataclass
from ....dialect.errors import WorkerError
from ...settings.events import Counters
from ..timings import QUEUE, WORKER, add

if TYPE_CHECKING:
    from ..request import CompileRequest, CompileResult


@dataclass
class Outcome:
    """The outcome of a compile: a result, or an error.

    Attributes:
        result: the result; None if the compile has failed.
        error: the error to raise; None if there is a result.
        in_process: why this process compiled; "" = a worker compiled, or the disk cache answered.
        dropped: True if nobody has tried to compile, since the request was cancelled or the pool is
            closed. A new request may succeed.
        counted: counts to add to the counters of each executor that requested the compile.
        begun: time when a lane took the request. All times are those of `time.perf_counter`.
        ended: time when the lane had finished the request.
        started: the times between which the lane's worker started.
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
        """The result; raises the error if there is one."""
        if self.result is None:
            assert self.error is not None
            raise self.error
        return self.result

    def result_since(self, asked: float) -> CompileResult:
        """A copy of the result, whose timings are those of a request made at the time ``asked``.

        If the compile was already running at that time, the whole waiting time counts as queueing.
        Raises the error if there is one.
        """
        result, now = self.get(), time.perf_counter()
        if asked > self.begun:
            return replace(result, seconds={QUEUE: now - asked})
        starting = min(self.started[1], self.begun) - max(self.started[0], asked)
        starting = max(0.0, starting)
        copy = replace(result, seconds=dict(result.seconds))
        add(copy, WORKER, starting)
        add(copy, QUEUE, self.begun - asked - starting + now - self.ended)
        return copy


OnDone = Callable[["Ticket"], "bool | None"]  # returns False to be called again later


class Ticket:
    """One requester's claim to the outcome of a compile; `Pool.submit` makes it."""

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
        """Wait for the outcome, at most this many seconds; returns whether there is one."""
        self._settled.wait(timeout)
        return self.done

    def result(self) -> CompileResult:
        """Wait for the result; raises what the compile raised, or WorkerError."""
        self.wait()
        assert self.outcome is not None
        return self.outcome.get()

    def cancel(self) -> None:
        """Give up the claim; `on_done` will not be called.

        A compile without claims is dropped, unless a worker has begun it.
        """
        self._job.leave(self)

    def settle(self, outcome: Outcome) -> None:
        """Set the outcome and wake waiting threads; called by the pool."""
        self.outcome = outcome
        self._settled.set()

    def call_back(self) -> bool:
        """Call `on_done`; returns False if it must be called again. Called by the pool."""
        return self._on_done is None or self._on_done(self) is not False

    def orphan(self) -> None:
        """Settle as dropped in a forked child, where the pool's threads do not exist."""
        self._settled = threading.Event()
        self._on_done = None
        if self.outcome is None:
            self.settle(dropped("the process was forked"))


@dataclass(eq=False)
class Job:
    """A request with all its tickets; guarded by the pool's lock.

    Attributes:
        request: what to compile.
        leave: called with a ticket that is cancelled.
        local: why no worker can compile the request; "" = a worker can.
        tickets: the tickets that wait for the outcome.
        running: True once a lane has taken the job.
    """

    request: CompileRequest
    leave: Callable[[Ticket], None]
    local: str = ""
    tickets: list[Ticket] = field(default_factory=list)
    running: bool = False


def dropped(why: str) -> Outcome:
    """The outcome of a compile that nobody has tried."""
    return Outcome(error=WorkerError(f"not compiled: {why}"), dropped=True)
