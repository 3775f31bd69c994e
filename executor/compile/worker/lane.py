"""A lane of the pool: a thread with the worker process that it starts, uses and watches."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from .... import __version__
from ....dialect.errors import InternalError, ProfuseError, WorkerError
from ....dialect.pipeline.replay_line import replay_line
from ....dialect.reasons import Kind, Reason
from ...settings.events import log
from ...settings.fork_gate import fork_allowed, no_fork
from ...settings.turns import short_turns
from ..proof.kept import keep
from ..request import CompileRequest, CompileResult
from ..timings import TRANSFER, WORKER, add
from . import protocol
from .portable import portable
from .process import Lost, Process

if TYPE_CHECKING:
    from .pool import Pool

_DELIVERIES = 5  # number of workers in a row that may die before they have received a request
_PINNED = 4  # number of fusion functions that may each cost a worker; then the compile fails


class Lane:
    """A thread with its worker; ``warm``: start the worker before there is a request for it."""

    def __init__(self, pool: Pool, number: int, *, warm: bool = False) -> None:
        self.pool, self.warm = pool, warm
        self.process: Process | None = None
        self.started = 0.0, 0.0  # the times between which the latest worker started
        self.thread = threading.Thread(target=self._serve, name=f"profuse-compile-{number}", daemon=True)
        self.thread.start()

    def compile(self, request: CompileRequest) -> CompileResult | None:
        """Compile a request on the worker; None if no worker starts, or the pool is closed.

        If a worker dies while it compiles a fusion function, the next worker compiles the request
        without a kernel for that function. Raises what the compiler raises, and WorkerError if a
        worker died and no such function is known.
        """
        begun = time.perf_counter()
        base_request, pinned, undelivered = portable(request), dict(request.pinned), 0
        while (process := self._ready()) is not None:
            asking = time.perf_counter()
            payload = protocol.encode_request(replace(base_request, pinned=tuple(pinned.items())))
            try:
                reply = self._ask(process, payload)
            except Lost as lost:
                if self.pool.closed:
                    return None
                self._note_lost(lost, request.name)
                undelivered += not lost.delivered
                if lost.group and lost.group not in pinned and len(pinned) < _PINNED:
                    pinned[lost.group] = _why_pinned(base_request, lost)
                elif lost.delivered or undelivered >= _DELIVERIES:
                    raise _lost_with(base_request, lost.reason) from None
            else:
                self._look_after(process, reply)
                if isinstance(reply, ProfuseError):
                    raise reply
                # The time of attempts that have cost a worker counts as waiting for a worker.
                add(reply, WORKER, asking - begun)
                add(reply, TRANSFER, time.perf_counter() - asking - _told(reply))
                return reply
        return None

    def retire(self) -> None:
        """End the worker; the next request starts another."""
        process, self.process = self.process, None
        if process is not None:
            process.close()

    def kill(self) -> None:
        """End the worker from another thread."""
        process = self.process
        if process is not None:
            process.kill()

    def abandon(self) -> None:
        """Close the pipes to the worker in a forked child; the worker belongs to the parent."""
        if self.process is not None:
            self.process.abandon()

    # --- inside ---------------------------------------------------------------------------------

    def _serve(self) -> None:
        with no_fork():
            if self.warm:
                with short_turns():
                    self._ready()
            while (job := self.pool.next_job(self)) is not None:
                self.pool.run(job, self)
                del job  # release the graph: the next request may come much later
            self.retire()

    def _ready(self) -> Process | None:
        """The worker, which is started if necessary; None if no worker starts."""
        if self.process is not None and not self.process.is_alive:
            self._note_lost(self.process.loss(), "")
            self.process = None
        while self.process is None and not self.pool.unusable and not self.pool.closed:
            try:
                self._start()
            except Lost as lost:
                self._note_lost(lost, "")
                self.pool.note_start(lost.reason)
        return self.process

    def _start(self) -> None:
        begun = time.perf_counter()
        process = self.process = Process(self.pool.limits)
        if self.pool.closed:
            process.kill()  # `Pool.close` may have run before ``self.process`` was set
        try:
            with fork_allowed():
                process.wait_ready(__version__)
        except Lost:
            self.process = None
            raise
        self.started = begun, time.perf_counter()
        self.pool.count("started")
        self.pool.note_start()
        log("worker-started", seconds=time.perf_counter() - begun, pid=process.pid)

    def _ask(self, process: Process, payload: bytes) -> CompileResult | ProfuseError:
        """The worker's reply; raises Lost if the worker is gone."""
        try:
            with fork_allowed():
                answer = process.ask(payload)
            while isinstance(reply := protocol.decode_reply(answer), protocol.StartedGroup):
                process.group, process.checking = str(reply), reply.checking
                with fork_allowed():
                    answer = process.more()
            process.group, process.checking = "", False
            return reply
        except protocol.WireError as error:
            self.retire()
            raise Lost(f"sent what is not a reply: {error}", group=process.group) from None
        except Lost:
            self.process = None
            raise

    def _note_lost(self, lost: Lost, name: str) -> None:
        if not self.pool.closed:
            self.pool.count("lost")
            reason = _crashed(lost.reason).why if lost.checking else lost.reason
            log("worker-lost", name, reason, group=lost.group)

    def _look_after(self, process: Process, reply: CompileResult | ProfuseError) -> None:
        """Log the worker's stderr after a reply; end the worker if it may be damaged or too big."""
        said = process.take_said().strip()
        if said:
            log("worker-said", reason=said[-1000:])
        size = process.memory()
        if isinstance(reply, InternalError):
            why = "what failed in it may have left the compiler's state broken"
        elif size > (process.size_ready + self.pool.limits.memory) // 2:
            why = f"it has grown to {size >> 20} MiB"
        else:
            return
        self.retire()
        log("worker-replaced", reason=why)


def _told(reply: CompileResult) -> float:
    """The sum of the stages' seconds that the worker reports."""
    return sum(s for stage, s in reply.seconds.items() if stage != WORKER)


def _why_pinned(request: CompileRequest, lost: Lost) -> Reason:
    if not lost.checking:
        return Reason.of_error(Kind.WORKER_LOST, _lost_with(request, lost.reason))
    return _crashed(f"the compile worker {lost.reason}; {keep(request, lost.group)}")


def _crashed(detail: str) -> Reason:
    return Reason(Kind.CHECK_CRASHED, detail=detail)


def _lost_with(request: CompileRequest, reason: str) -> WorkerError:
    hint = replay_line(request.pipeline, request.ir, request.repro_dir or None)
    return WorkerError(f"the compile worker {reason}", hint=hint)
