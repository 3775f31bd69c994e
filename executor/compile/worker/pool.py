"""The compile pool: a queue of requests, and lanes that serve them.

Each lane is a thread that looks requests up in the disk cache. For requests that are not there it
has at most one worker process. One lock guards the whole state of the pool; no callback runs and no
thread waits for a reply while it holds the lock.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from ....dialect.dataclass import dataclass
from ....dialect.errors import InternalError, ProfuseError, WorkerError
from ...settings.events import Counters, log
from ...settings.fork_gate import fork_allowed
from ...settings.turns import short_turns
from ..compiler import compile_cached, compile_graph
from ..request import CompileRequest, CompileResult
from .job import Job, OnDone, Outcome, Ticket, dropped
from .lane import Lane
from .portable import why_local, why_no_workers
from .process import Limits

_STARTS = 3  # after this many failed starts in a row, the pool stops starting workers
_JOIN_SECONDS = 2.0
_AGAIN = 0.005  # seconds until a callback that returned False is called again


@dataclass
class PoolCounts:
    """The counts of a pool.

    Attributes:
        submitted: tickets made; each is merged, or its request is dropped, completed or failed.
        merged: tickets for a request that was already waiting or running.
        dropped: requests that were given up before a worker had begun them.
        refused: requests that were refused because the queue was full.
        completed: requests that ended with a result.
        failed: requests that ended with an error.
        started: worker processes that were started.
        lost: workers that died, or that the pool killed for exceeding a limit.
        in_process: requests that this process compiled itself.
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
    """A request is given up; the message is the reason."""


class Pool:
    """Worker processes that compile.

    Args:
        size: largest number of workers; each is started when there is work for it.
        queue: largest number of waiting requests.
        limits: time and memory limits of each worker.

    Attributes:
        counts: the counts of the pool.
        closed: True once the pool takes no more requests.
        unusable: why the pool starts no workers; "" = it does.
    """

    def __init__(self, size: int = 1, queue: int = 64, limits: Limits | None = None) -> None:
        self.size, self.queue = size, queue
        self.limits = limits or Limits()
        self.counts = PoolCounts()
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # a job is waiting, or the pool is closed
        self._room = threading.Condition(self._lock)  # the queue has room, or the pool is closed
        self._waiting: deque[Job] = deque()
        self._jobs: dict[CompileRequest, Job] = {}  # all waiting and running jobs
        self._undelivered: deque[Ticket] = deque()  # settled tickets whose callback has yet to run
        self._lanes: list[Lane] = []
        self._idle = 0
        self.closed = False
        self._failed_starts = 0
        self.unusable = why_no_workers()

    # --- for requesters -------------------------------------------------------------------------

    def submit(self, request: CompileRequest, on_done: OnDone | None = None) -> Ticket:
        """Submit a request and return at once.

        The pool calls ``on_done`` with the ticket, on a thread of its own, once there is an
        outcome. ``on_done`` must not wait for a lock whose holder may be waiting for a compile; it
        can return False instead, and is then called again.
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
        """Submit a request, wait for room in the queue if necessary, and wait for the result.

        A request that no worker can compile is compiled on the calling thread. Adds to
        ``counters``. Raises what `compile_graph` raises, and WorkerError if the worker was lost.
        """
        start = time.perf_counter()
        outcome = self._waited_for(request)
        if counters is not None:
            counters.add(outcome.counted)
        return outcome.result_since(start)

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
                continue  # another thread took the room in the queue, or the pool was closed
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
        """End all workers and drop all requests; returns within a few seconds."""
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
        """Drop all state in a forked child, since threads and workers belong to the parent."""
        self.closed = True
        for lane in self._lanes:
            lane.abandon()
        for job in self._jobs.values():
            for ticket in job.tickets:
                ticket.orphan()

    # --- for lanes ------------------------------------------------------------------------------

    def next_job(self, lane: Lane) -> Job | None:
        """Wait for the next job and return it; None = the pool is closed.

        If the lane's worker stays idle for longer than the limit, it is ended.
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
        """Compile a job's request, on a worker if possible, and settle its tickets."""
        with short_turns():
            self._finish(job, self._outcome(job.request, job.local or self.unusable, lane))

    def count(self, what: str) -> None:
        """Add one to a count."""
        with self._lock:
            setattr(self.counts, what, getattr(self.counts, what) + 1)

    def note_start(self, failure: str = "") -> None:
        """Note that a worker has started or failed; after several failures, none is started."""
        self._failed_starts = self._failed_starts + 1 if failure else 0
        if self._failed_starts >= _STARTS and not self.closed:
            self.unusable = f"no compile worker starts: {failure}"
            log("workers-given-up", reason=self.unusable)

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= self.queue

    def _need_lane(self) -> None:
        """Start a lane if more jobs wait than lanes are idle; the caller holds the lock."""
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
        # All waiting threads are woken before any callback runs: a callback may need a lock that a
        # waiting thread holds.
        for ticket in tickets:
            ticket.settle(outcome)
        self._undelivered += tickets
        self._deliver()

    def _deliver(self) -> None:
        """Call the callbacks of settled tickets."""
        for _ in range(len(self._undelivered)):
            try:
                ticket = self._undelivered.popleft()
            except IndexError:
                return  # another lane has taken the last ticket
            try:
                if not ticket.call_back():
                    self._undelivered.append(ticket)
            except Exception as error:
                # An exception in a callback must not end the lane.
                log("callback-failed", ticket.request.name, f"{type(error).__name__}: {error}")

    def _outcome(self, request: CompileRequest, local: str, lane: Lane | None) -> Outcome:
        """Look a request up in the disk cache, and compile it on a miss.

        ``local``: why this process compiles; "" = the lane's worker compiles. In both cases this
        process stores the result, so that it can count and log stores and evictions, and because
        a worker that dies while it writes could leave an incomplete file.
        """
        outcome = Outcome(begun=time.perf_counter())

        def compile_(request: CompileRequest) -> CompileResult:
            why = local
            if not why:
                assert lane is not None
                result = lane.compile(request)
                if result is not None:
                    return result
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
            # Waiting threads need an outcome in any case, and the lane must go on.
            what = f"the compile pool failed: {type(error).__name__}: {error}"
            outcome.error = InternalError(what)
        outcome.ended = time.perf_counter()
        if lane is not None:
            outcome.started = lane.started
        return outcome
