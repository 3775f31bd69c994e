"""A background compile: its request, the plan made of its result, and the swap of plans."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ProfuseError, WorkerError
from ...dialect.pipeline.options import PipelineOptions
from ...dialect.reasons import Kind, Reason
from ..settings.device_fusion import left_devices
from ..settings.differentiation import inlines_subgraphs
from ..settings.events import Counters
from ..settings.fork_gate import loaded
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs, loop_bytes
from ..settings.user_passes import registered
from .request import CompileRequest, CompileResult, compiler_errors
from .timings import LINK, add, rest_of, startup

if TYPE_CHECKING:
    from ..plans.plan_options import Options
    from .worker import Outcome, Pool, Ticket


class Pending:
    """One background compile.

    Args:
        request: what to compile.
        make: compile result -> object to install; runs on a thread of the pool, without a lock.
        swap: installs the object. It is called with this `Pending` and with the object, or with the
            ProfuseError of the compile. It ignores an obsolete compile.
        lock: the executor's lock, held while ``swap`` runs. The pool's thread never waits for it,
            because the thread that holds it may be waiting for this compile.
    """

    def __init__(
        self,
        request: CompileRequest,
        make: Callable[[CompileResult], Any],
        swap: Callable[[Pending, Any], None],
        lock: ForkLock,
    ) -> None:
        self.request = request
        self.seconds = 0.0  # time from the request until ``make`` has returned
        self._make, self._swap, self._lock = make, swap, lock
        self._begun = time.perf_counter()
        self._swapped = threading.Event()
        self._ticket: Ticket | None = None
        self._outcome: Outcome | None = None
        self._made: Any = None

    def submit(self) -> bool:
        """Submit the request to the pool; returns False if the pool refuses it at present.

        The caller holds the lock, so ``swap`` cannot run before this method has returned.
        """
        try:
            self._ticket = _pool().submit(self.request, self._arrive)
        except WorkerError:
            return False
        return True

    def report(self, counters: Counters, reasons: list[Reason]) -> None:
        """Add the compile's counts, and the reason if this process compiled instead of a worker."""
        assert self._outcome is not None
        counters.add(self._outcome.counted)
        if self._outcome.in_process:
            reasons.append(Reason(Kind.IN_PROCESS, detail=self._outcome.in_process))

    @property
    def is_lost(self) -> bool:
        """True if the compile has ended without an effect to come, for instance in a forked child.

        The executor may then request it again.
        """
        outcome = None if self._ticket is None else self._ticket.outcome
        return self._swapped.is_set() or (outcome is not None and outcome.dropped)

    def wait(self, seconds: float) -> None:
        """Wait until the result is installed, at most this long."""
        self._swapped.wait(seconds)

    def cancel(self) -> None:
        """Cancel the compile."""
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
    """True if worker processes compile a function."""
    return background or knobs.workers > 0


def pipeline_options(options: Options, *, gradients: bool, strict: bool) -> PipelineOptions:
    """Options of pipelines with the present values of the settings, for both executors.

    Args:
        options: the executor's own.
        gradients: whether subgraphs are differentiated, and not fused here.
        strict: whether strict fusion is asked for.
    """
    before, after = registered()
    # What kernels of the host compute exactly, the general fuser alone tells.
    leave = "" if knobs.exact and options.processor.is_host else left_devices(options.processor.device)
    return PipelineOptions(
        knobs.min_fusion_size,
        knobs.max_fusion_values,
        knobs.max_fusion_ops,
        fuse=knobs.general_fuser,
        gradients=gradients,
        inlines=inlines_subgraphs(),
        budget=knobs.activation_budget,
        loop_bytes=loop_bytes(),
        on_tape=options.gradients,
        exact=knobs.exact,
        whole_loops=strict,
        leave=leave,
        chip="" if options.processor.is_host or not leave else options.processor.target().gpu,
        single=knobs.device_fusion_single,
        horizontal=knobs.device_fusion_horizontal,
        before=before,
        after=after,
    )


def make_request(ir: str, pipeline: str, options: Options) -> CompileRequest:
    """A request with the present values of the settings."""
    return CompileRequest(
        ir=ir,
        pipeline=pipeline,
        # None = this CPU. Detecting the CPU takes too long for a call that waits for no compile.
        target=None if options.processor.is_host else options.processor.target(),
        verify_each=knobs.verify_each,
        repro_dir=knobs.repro_dir,
        dump=knobs.dump,
        name=options.name,
        in_place=bool(options.donate) or options.writes,
        exact=knobs.exact,
        check=knobs.check,
        check_ms=knobs.check_ms,
        check_bytes=knobs.check_bytes,
        measure=knobs.demote > 0,
    )


def _pool() -> Pool:
    return loaded("executor.compile.worker").shared_pool()


def compile_now(request: CompileRequest, counters: Counters, *, background: bool) -> CompileResult:
    """Compile on a worker or in this process, and wait; adds to ``counters``."""
    if not uses_workers(background):
        loading: dict[str, float] = {}
        with startup(loading):
            from .compiler import compile_cached  # calls that find their code on disk need it not

        result = compile_cached(request, counters)
        for stage, seconds in loading.items():
            add(result, stage, seconds)
        return result
    return _pool().compile(request, counters)


def warm_up(background: bool) -> None:
    """Start a worker before the first compile needs it.

    It is for graphs without a stored profile: their compiles are hardly ever on disk either.
    """
    if uses_workers(background):
        _pool().warm()
