"""One lane of the pool: a thread, and the worker process that it starts, asks and watches."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from .... import __version__
from ....dialect.errors import InternalError, ProfuseError, WorkerError
from ....dialect.pipeline.replay import replay_line
from ....dialect.reasons import Kind, Reason
from ...settings.events import log
from ...settings.fork_gate import fork_allowed, no_fork
from ..proof.kept import keep
from ..request import CompileRequest, CompileResult
from ..timings import TRANSFER, WORKER, add
from . import protocol
from .portable import portable
from .process import Lost, Process

if TYPE_CHECKING:
    from .pool import Pool

_DELIVERIES = 5  # workers in a row that may die before they have got a request
_PINNED = 4  # fusion functions that may each cost a worker before the graph is given up


class Lane:
    """A thread and its worker; ``warm``: the worker is started before there is work for it."""

    def __init__(self, pool: Pool, number: int, *, warm: bool = False) -> None:
        self.pool, self.warm = pool, warm
        self.process: Process | None = None
        self.started = 0.0, 0.0  # from when to when the latest worker took to start
        self.thread = threading.Thread(
            target=self._serve, name=f"profuse-compile-{number}", daemon=True
        )
        self.thread.start()

    def compile(self, request: CompileRequest) -> CompileResult | None:
        """What workers make of a request; None if there are none, or the pool is closed.

        A fusion function that costs a worker is left without a kernel, and the rest is compiled by
        the next one. Raises what the compiler raises, and WorkerError if nothing can be left out.
        """
        begun = time.perf_counter()
        asked, pinned, undelivered = portable(request), dict(request.pinned), 0
        while (process := self._ready()) is not None:
            asking = time.perf_counter()
            payload = protocol.encode_request(replace(asked, pinned=tuple(pinned.items())))
            try:
                reply = self._ask(process, payload)
            except Lost as lost:
                if self.pool.closed:
                    return None
                self._note_lost(lost, request.name)
                undelivered += not lost.delivered
                if lost.group and lost.group not in pinned and len(pinned) < _PINNED:
                    pinned[lost.group] = _why_pinned(asked, lost)
                elif lost.delivered or undelivered >= _DELIVERIES:
                    raise _lost_with(asked, lost.reason) from None
            else:
                self._look_after(process, reply)
                if isinstance(reply, ProfuseError):
                    raise reply
                # Requests that have cost a worker count as waiting for the one that answered.
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
        """Let go of the worker in a forked child."""
        if self.process is not None:
            self.process.abandon()

    # --- inside ---------------------------------------------------------------------------------

    def _serve(self) -> None:
        with no_fork():
            if self.warm:
                self._ready()
            while (job := self.pool.next_job(self)) is not None:
                self.pool.run(job, self)
                del job  # it holds the graph, and the next one may be long in coming
            self.retire()

    def _ready(self) -> Process | None:
        """The worker, started if there is none; None if none can be had."""
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
            process.kill()  # `close` may have looked before it was there
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
        """The worker's answer; raises Lost, after which there is none."""
        try:
            with fork_allowed():
                answer = process.ask(payload)
            while isinstance(reply := protocol.decode_reply(answer), protocol.Group):
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
        """After a reply: pass on what the worker said, and replace one that may not be sound."""
        said = process.take_said().strip()
        if said:
            log("worker-said", reason=said[-1000:])
        size = process.rss()
        if isinstance(reply, InternalError):
            why = "what failed in it may have left the compiler's state broken"
        elif size > (process.size_ready + self.pool.limits.memory) // 2:
            why = f"it has grown to {size >> 20} MiB"
        else:
            return
        self.retire()
        log("worker-replaced", reason=why)


def _told(reply: CompileResult) -> float:
    """Seconds that a worker's stages account for."""
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
