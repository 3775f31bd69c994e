"""The pool: who compiles what, when, and what becomes of it.

Each lane is a thread that looks requests up in the disk cache, and has at most one worker process,
for what is not there, which it starts, asks and watches. All of the state is guarded by one lock;
nothing is called, and no reply waited for, under it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from ....dialect.errors import InternalError, ProfuseError, WorkerError
from ...settings.events import Counters, log
from ...settings.fork_gate import fork_allowed
from ..compiler import compile_cached, compile_graph
from ..request import CompileRequest, CompileResult
from .job import Job, OnDone, Outcome, Ticket, dropped
from .lane import Lane
from .portable import why_local, why_no_workers
from .process import Limits

_STARTS = 3  # failed starts in a row after which workers are given up
_JOIN_SECONDS = 2.0
_AGAIN = 0.005  # seconds until a callback that could not be carried out is tried again


@dataclass
class PoolCounts:
    """What a pool has done.

    Attributes:
        submitted: tickets given out; every one ends merged, dropped, completed or failed.
        merged: tickets for a request that was already on its way.
        dropped: requests given up before a worker had begun them.
        refused: requests that found the queue full.
        completed, failed: requests that ended with a result, with an error.
        started: worker processes started.
        lost: workers that died, or were ended for what they did.
        in_process: requests compiled in this process, with a reason.
        from_disk: requests that the disk cache answered.
    """

    submitted: int = 0
    merged: int = 0
    dropped: int = 0
    refused: int = 0
    completed: int = 0
    failed: int = 0
    started: int = 0
    lost: int = 0
    in_process: int = 0
    from_disk: int = 0


class Dropped(Exception):
    """A request is given up, for the reason that is the message."""


class Pool:
    """Worker processes that compile.

    Args:
        size: how many at most; each is started when there is work for it.
        queue: how many requests may wait for one.
        limits: what each may take.

    Attributes:
        counts: what it has done.
        closed: it takes no requests any more.
        unusable: why workers were given up; "" = they were not.
    """

    def __init__(self, size: int = 1, queue: int = 64, limits: Limits | None = None) -> None:
        self.size, self.queue = size, queue
        self.limits = limits or Limits()
        self.counts = PoolCounts()
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # something waits, or the pool is closed
        self._room = threading.Condition(self._lock)  # less waits, or the pool is closed
        self._waiting: deque[Job] = deque()
        self._jobs: dict[CompileRequest, Job] = {}  # waiting or running
        self._undelivered: deque[Ticket] = deque()  # settled, not called back
        self._lanes: list[Lane] = []
        self._idle = 0
        self.closed = False
        self._failed_starts = 0
        self.unusable = why_no_workers()

    # --- for those who want something compiled --------------------------------------------------

    def submit(self, request: CompileRequest, on_done: OnDone | None = None) -> Ticket:
        """Have a request compiled; returns at once.

        ``on_done`` is called with the ticket, on a thread of the pool, once there is an outcome.
        It must not wait for a lock under which somebody may wait for a compile: it returns False,
        and is called again.
        Raises WorkerError if the queue is full or the pool is closed.
        """
        with self._lock:
            if self.closed:
                raise WorkerError("not compiled: the process is ending")
            job = self._jobs.get(request)
            if job is None and self._is_full:
                self.counts.refused += 1
                raise WorkerError(
                    f"not compiled: {self.queue} compiles are waiting already",
                    hint="raise pf.knobs.worker_queue or pf.knobs.workers",
                )
            self.counts.submitted += 1
            if job is None:
                job = self._jobs[request] = Job(request, self._leave, why_local(request))
                self._waiting.append(job)
                self._need_lane()
                self._work.notify()
            else:
                self.counts.merged += 1
            ticket = Ticket(job, on_done)
            job.tickets.append(ticket)
            return ticket

    def compile(self, request: CompileRequest, counters: Counters | None = None) -> CompileResult:
        """Have a request compiled and wait for the result, if need be for room in the queue.

        ``counters`` are added to. Raises what `compile_graph` raises, and WorkerError if the
        worker was lost with it. What no worker can do is compiled on the calling thread.
        """
        asked = time.perf_counter()
        outcome = self._waited_for(request)
        if counters is not None:
            counters.add(outcome.counted)
        return outcome.result_since(asked)

    def _waited_for(self, request: CompileRequest) -> Outcome:
        while True:
            local = why_local(request) or self.unusable
            if local or self.closed:
                return self._outcome(request, local or "the process is ending", None)
            with self._room:
                while self._is_full and not self.closed and request not in self._jobs:
                    self._room.wait()
            try:
                ticket = self.submit(request)
            except WorkerError:
                continue  # another thread was faster, or the pool is closed
            ticket.wait()
            assert ticket.outcome is not None
            if not ticket.outcome.dropped:
                return ticket.outcome

    def warm(self) -> None:
        """Start a worker before there is work for it."""
        with self._lock:
            if not self.closed and not self.unusable and not self._lanes:
                self._lanes.append(Lane(self, 0, warm=True))

    # --- life cycle -----------------------------------------------------------------------------

    def close(self) -> None:
        """End all workers; what waits or runs is dropped. Returns within a few seconds."""
        with self._lock:
            self.closed = True
            jobs = list(self._waiting)
            self._waiting.clear()
            lanes = list(self._lanes)
            self._work.notify_all()
            self._room.notify_all()
        for job in jobs:
            self._finish(job, dropped("the process is ending"))
        deadline = time.monotonic() + _JOIN_SECONDS
        for lane in lanes:
            lane.kill()
        for lane in lanes:
            if lane.thread is not threading.current_thread():
                lane.thread.join(max(0.0, deadline - time.monotonic()))

    def abandon(self) -> None:
        """Let go of everything in a forked child: threads and locks are the parent's."""
        self.closed = True
        for lane in self._lanes:
            lane.abandon()
        for job in self._jobs.values():
            for ticket in job.tickets:
                ticket.orphan()

    # --- for lanes ------------------------------------------------------------------------------

    def next_job(self, lane: Lane) -> Job | None:
        """The next request to compile, waiting for it; None = there will be none.

        A worker that has nothing to do for long is ended meanwhile.
        """
        while True:
            self._deliver()
            with fork_allowed(), self._work:
                self._idle += 1
                limit = self.limits.idle if lane.process is not None else None
                undelivered = bool(self._undelivered)
                limit = _AGAIN if undelivered else limit
                self._work.wait_for(lambda: self._waiting or self.closed, limit)
                self._idle -= 1
                if self.closed:
                    return None
                if self._waiting:
                    job = self._waiting.popleft()
                    job.running = True
                    self._room.notify()
                    return job
            if undelivered:
                continue
            lane.retire()
            log("worker-ended", reason=f"nothing to do for {self.limits.idle:g} seconds")

    def run(self, job: Job, lane: Lane) -> None:
        """Compile a request, on a worker if it can be, and tell everybody."""
        self._finish(job, self._outcome(job.request, job.local or self.unusable, lane))

    def count(self, what: str) -> None:
        """Add one to a count."""
        with self._lock:
            setattr(self.counts, what, getattr(self.counts, what) + 1)

    def note_start(self, failure: str = "") -> None:
        """A worker has started, or not; after some failures in a row workers are given up."""
        self._failed_starts = self._failed_starts + 1 if failure else 0
        if self._failed_starts >= _STARTS and not self.closed:
            self.unusable = f"no compile worker starts: {failure}"
            log("workers-given-up", reason=self.unusable)

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= self.queue

    def _need_lane(self) -> None:
        """Start a lane if more waits than idle ones can take; the lock is held."""
        if self._idle < len(self._waiting) and len(self._lanes) < self.size:
            self._lanes.append(Lane(self, len(self._lanes)))

    def _leave(self, ticket: Ticket) -> None:
        with self._lock:
            job = ticket._job
            if ticket not in job.tickets:
                return
            job.tickets.remove(ticket)
            if not job.tickets and not job.running and job in self._waiting:
                self._waiting.remove(job)
                del self._jobs[job.request]
                self.counts.dropped += 1
                self._room.notify()
        ticket._on_done = None
        ticket.settle(dropped("it was cancelled"))

    def _finish(self, job: Job, outcome: Outcome) -> None:
        with self._lock:
            self._jobs.pop(job.request, None)
            tickets, job.tickets = job.tickets, []
            if outcome.dropped:
                self.counts.dropped += 1
            elif outcome.error is None:
                self.counts.completed += 1
            else:
                self.counts.failed += 1
        # All those who wait first: one that is called back may be stopped by one that waits.
        for ticket in tickets:
            ticket.settle(outcome)
        self._undelivered += tickets
        self._deliver()

    def _deliver(self) -> None:
        """Call back those whose compile is done."""
        for _ in range(len(self._undelivered)):
            try:
                ticket = self._undelivered.popleft()
            except IndexError:
                return  # another lane was faster
            try:
                if not ticket.call_back():
                    self._undelivered.append(ticket)
            except Exception as error:
                # A callback's mistake must not cost the lane.
                log("callback-failed", ticket.request.name, f"{type(error).__name__}: {error}")

    def _outcome(self, request: CompileRequest, local: str, lane: Lane | None) -> Outcome:
        """Look a request up, else compile it.

        ``local``: why it is compiled in this process; "" = by the lane's worker. This process
        stores the result as well: a worker that is lost while it writes could leave half a file,
        and what was stored or evicted is this process's to count and to tell.
        """
        outcome = Outcome(begun=time.perf_counter())

        def compile_(request: CompileRequest) -> CompileResult:
            why = local
            if not why:
                assert lane is not None
                found = lane.compile(request)
                if found is not None:
                    return found
                if self.closed:
                    raise Dropped("the process is ending")
                why = self.unusable
            outcome.in_process = why
            outcome.counted.in_process_compiles += 1
            self.count("in_process")
            log("compiled-in-process", request.name, why)
            return compile_graph(request)

        try:
            outcome.result = compile_cached(request, outcome.counted, compile_)
            if outcome.result.found_in:
                self.count("from_disk")
        except Dropped as error:
            return dropped(str(error))
        except ProfuseError as error:
            outcome.error = error
        except Exception as error:
            # Whatever it is, those who wait have to be told, and the lane goes on.
            what = f"the compile pool failed: {type(error).__name__}: {error}"
            outcome.error = InternalError(what)
        outcome.ended = time.perf_counter()
        if lane is not None:
            outcome.started = lane.started
        return outcome
