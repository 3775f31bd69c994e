"""A compile that runs elsewhere while calls go on: asked for, made into a plan, swapped in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ProfuseError, WorkerError
from ...dialect.reasons import Kind, Reason
from ..settings.events import Counters
from ..settings.fork_gate import loaded
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from .compiler import compile_cached
from .request import CompileRequest, CompileResult, compiler_errors
from .timings import LINK, rest_of

if TYPE_CHECKING:
    from ..plans.options import Options
    from .worker import Outcome, Pool, Ticket


class Pending:
    """One compile under way.

    Args:
        request: what is compiled.
        make: makes what is swapped in of the result; runs on a thread of the pool, under no lock.
        swap: called with this object and with what was made, or the ProfuseError that came instead;
            it ignores what has become obsolete meanwhile.
        lock: the executor's, held while ``swap`` runs. It is never waited for: who holds it may
            be waiting for this very compile.
    """

    def __init__(
        self,
        request: CompileRequest,
        make: Callable[[CompileResult], Any],
        swap: Callable[[Pending, Any], None],
        lock: ForkLock,
    ) -> None:
        self.request = request
        self.seconds = 0.0  # from the request to what was made of the result
        self._make, self._swap, self._lock = make, swap, lock
        self._begun = time.perf_counter()
        self._swapped = threading.Event()
        self._ticket: Ticket | None = None
        self._outcome: Outcome | None = None
        self._made: Any = None

    def submit(self) -> bool:
        """Hand the request over; False if that has to be tried again later.

        The caller holds the lock, so that ``swap`` is not called before this has returned.
        """
        try:
            self._ticket = _pool().submit(self.request, self._arrive)
        except WorkerError:
            return False
        return True

    def report(self, counters: Counters, reasons: list[Reason]) -> None:
        """Tell the executor what the compile counts, and why no worker did it."""
        assert self._outcome is not None
        counters.add(self._outcome.counted)
        if self._outcome.in_process:
            reasons.append(Reason(Kind.IN_PROCESS, detail=self._outcome.in_process))

    @property
    def is_lost(self) -> bool:
        """True if nothing more comes of it, as in a forked child: ask again."""
        outcome = None if self._ticket is None else self._ticket.outcome
        return self._swapped.is_set() or (outcome is not None and outcome.dropped)

    def wait(self, seconds: float) -> None:
        """Wait until it is swapped in, at most so long."""
        self._swapped.wait(seconds)

    def cancel(self) -> None:
        """Give the compile up, as nobody wants its result any more."""
        if self._ticket is not None:
            self._ticket.cancel()

    def _arrive(self, ticket: Ticket) -> bool:
        outcome = ticket.outcome
        assert outcome is not None
        if outcome.dropped:
            return True
        if self._outcome is None:
            self._outcome, self._made = outcome, self._make_of(outcome)
            self.seconds = time.perf_counter() - self._begun
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._swap(self, self._made)
        finally:
            self._lock.release()
            self._swapped.set()
        return True

    def _make_of(self, outcome: Outcome) -> Any:
        try:
            with compiler_errors("linking the compiled graph"):
                result = outcome.result_since(self._begun)
                with rest_of(LINK, result.seconds):
                    return self._make(result)
        except ProfuseError as error:
            return error


def uses_workers(background: bool) -> bool:
    """Whether compiles of a function go to workers."""
    return background or knobs.workers > 0


def make_request(ir: str, pipeline: str, options: Options) -> CompileRequest:
    """A request with the settings of now."""
    return CompileRequest(
        ir=ir,
        pipeline=pipeline,
        # None = this CPU: finding out which that is takes a call that waits for nothing long.
        target=None if options.processor.is_host else options.processor.target(),
        verify_each=knobs.verify_each,
        repro_dir=knobs.repro_dir,
        dump=knobs.dump,
        name=options.name,
        in_place=bool(options.donate),
        check=knobs.check,
        check_ms=knobs.check_ms,
        check_bytes=knobs.check_bytes,
    )


def _pool() -> Pool:
    return loaded("executor.compile.worker").shared_pool()


def compile_now(request: CompileRequest, counters: Counters, *, background: bool) -> CompileResult:
    """Compile and wait, on a worker where those are asked for; ``counters`` are added to."""
    if not uses_workers(background):
        return compile_cached(request, counters)
    return _pool().compile(request, counters)


def warm_up(background: bool) -> None:
    """Load the pool, and start a worker, so that they are there by the time they are wanted.

    No worker where the disk cache may answer instead, which takes less than one to start.
    """
    if not uses_workers(background):
        return
    pool = _pool()
    if not knobs.cache:
        pool.warm()
