"""The base class of both executors: requesting compiles, installing plans, and the life cycle.

`BaseExecutor` contains all code that specialises a graph. Each subclass adds a policy: the *key*
under which it keeps plans, the request that it compiles for a key, and the plan that serves calls
until the compile has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from ...dialect.errors import KnobError, ProfuseError, StrictFusionError
from ...dialect.ir.program import Module
from ...dialect.ops.speculation import DiffGraph
from ...dialect.reasons import Kind, Reason
from ..compile.pending import Pending, compile_now
from ..compile.request import CompileRequest, CompileResult, compiler_errors
from ..compile.timings import LINK, REQUEST, about, add, rest_of
from ..interpret.evaluate import own
from ..interpret.record import Record
from ..memory.destinations import Destinations
from ..plans.evaluated import evaluated_plan
from ..plans.link import PlanWithFallbacks, Specialised
from ..plans.plan import Plan
from ..plans.plan_options import Options
from ..settings.events import Counters, absorb, log, new_counters
from ..settings.fork_lock import ForkLock
from ..settings.strict import check_strict, is_strict, refused
from .slow_calls import WorkLog


class BaseExecutor:
    """An executor of one graph, with the executors that lie behind its guards.

    Args:
        options: per-function settings.
        work: the log of slow work; None = the executor makes its own log.

    Attributes:
        reasons: reasons of all refusals and failures, oldest first.
        fallbacks: executors behind guards, by the name of the fallback function.
        halves: executors of halves of differentiable subgraphs, by the name of the function.
        noted: the executors of calls that are noted on the tape, the oldest first; see `serving`.
        shared: the executors of halves, by the text of the graph: equal ones share what they learn.
        make: makes an executor of another graph, as this one was made.
        donated: indices of the inputs that calls may overwrite.
        sole: calls overwrite those that nobody but the list of inputs holds, not all.
        input_names: the user's names of the inputs; empty where the names are unknown.
        notes: the importer's remarks about the graph.
        device_failure: why the executor no longer launches kernels of the device; "" = it does.
    """

    donated: tuple[int, ...] = ()
    sole = False
    record: Record | None = None  # the types seen so far; None while nothing is recorded
    # Properties of the policy. Callers read these and need not test for a subclass.
    may_donate: ClassVar[bool] = True  # kernels may write results into donated inputs
    takes_undefined: ClassVar[bool] = False  # an argument None stands for an undefined tensor
    joins_traces: ClassVar[bool] = False  # a call within another trace records this graph (R2.14)
    python_only: str = ""  # why calls are never dispatched in emitted code
    many_plans: ClassVar[bool]  # True: one plan per argument spec; False: one plan with fallbacks

    make: Callable[[Module, Options], Any] | None = None

    def __init__(self, options: Options, work: WorkLog | None = None) -> None:
        self._counters = new_counters(self)
        self._lock = ForkLock(self._start_over)
        self.options = options
        self.work = WorkLog(self.counters) if work is None else work
        self.input_names: tuple[str, ...] = ()
        self.notes: list[str] = []

    def _reset(self) -> None:
        """Forget everything learnt (R1.5, R1.14)."""
        self.reasons: list[Reason] = []
        self.fallbacks: dict[str, Any] = {}
        self.halves: dict[str, Any] = {}
        self.noted: dict[str, Any] = {}
        self.noted_made = 0
        self.shared: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self.device_failure = ""
        self._pending: dict[Hashable, Pending] = {}

    def _start_over(self) -> None:
        """Reset in a forked child: a thread of the parent may have left this object half changed.

        `ForkLock` calls this if another thread held the lock at the fork.
        """
        self._reset()
        log("flush", reason="another thread was changing the plans when the process forked")

    @property
    def module(self) -> Module:
        """The graph, as imported."""
        raise NotImplementedError

    @property
    def counters(self) -> Counters:
        """Counts of this executor's work, including the calls that ran in emitted code."""
        counters = self._counters if self._counters.heir is None else self._counters.last_heir()
        return counters.current() if counters.native else counters

    def _count_op(self) -> None:
        self.counters.evaluated_ops += 1

    def _evaluated_plan(self, kind: str, module: Module) -> Plan:
        adapt = self.options.adapter(module)
        return self._ready(evaluated_plan(kind, module, self.options.name, self._count_op, adapt))

    def _own(self, out: Any, inputs: Sequence[Any]) -> Any:
        """A result that shares no memory with an input; see `own`, or `on_tape.owned`."""
        if self.options.gradients:
            from ..plans.on_tape import owned

            return owned(out, inputs)
        return own(out, inputs)

    def _ready(self, plan: Plan) -> Plan:
        """A new plan, made to return what this executor's callers take."""
        if self.options.gradients:
            plan.own = self._own
        return plan

    def evaluate(self, inputs: list) -> list:
        """Outputs of the graph for these inputs, op by op."""
        return self._evaluated_plan("no-opt", self.module).run(inputs)

    def note_slower(self, reason: Reason) -> None:
        """Record a reason why calls are slower than they could be; each reason is kept once."""
        if reason not in self.reasons:
            self.reasons.append(reason)
            log("slower", self.options.name, str(reason))

    # --- gradients ------------------------------------------------------------------------------

    def run(self, inputs: list, into: Destinations | None = None) -> list:
        """Run the graph on arrays; the outputs share memory with no input."""
        raise NotImplementedError

    def serving(self, inputs: Sequence[Any]) -> Any:
        """The executor of a call with values any of which may be on the tape; see `serving`."""
        from .tape_executors import serving

        return serving(self, inputs)

    def run_any(self, inputs: list) -> list:
        """Run the graph on values any of which may be on the tape."""
        from .tape_executors import run_any

        return run_any(self, inputs)

    def made(self, module: Module, options: Options) -> Any:
        """An executor of another graph, of the kind that this one is."""
        make = self.make or type(self)
        executor = make(module, options)  # type: ignore[arg-type]
        executor.work, executor.shared = self.work, self.shared
        return executor

    def _halved(self, result: CompileResult) -> tuple[dict[str, Any], dict[str, Any]]:
        """The ops that run the differentiable subgraphs of a result, and the executors; see `halved`."""
        if all(instr.op is not DiffGraph for instr in result.module.main.body.walk()):
            return {}, {}
        from .tape_executors import halved

        return halved(self, result.module)

    # --- state that callers read ----------------------------------------------------------------

    @property
    def tier(self) -> str:
        """Tier of the plan with which the next call would start."""
        raise NotImplementedError

    @property
    def released(self) -> bool:
        """True once the executor has dropped the data that only profiling needs (R1.13)."""
        return False

    @property
    def settled(self) -> Plan | None:
        """The plan that serves all calls until a flush; None while the plan may still change."""
        return None

    @property
    def remaining_depth(self) -> int:
        """Number of re-specialisations left below the deepest specialised executor."""
        return 0

    def compiled(self) -> list[Specialised]:
        """The specialisations of this executor, without those of its fallbacks."""
        raise NotImplementedError

    def count_invocation(self) -> None:
        """Count a run; does nothing in executors that do not count runs (R2.3)."""

    # --- specialising: methods that a policy provides -------------------------------------------

    def _link(self, result: CompileResult) -> PlanWithFallbacks:
        """Load kernels and make the plan; runs on any thread, without the lock."""
        raise NotImplementedError

    def _adopt(self, key: Any, request: CompileRequest, new_plan: PlanWithFallbacks, seconds: float) -> Plan:
        """Install a linked plan for a key; the caller holds the lock."""
        raise NotImplementedError

    def _fail(self, key: Any, error: ProfuseError) -> Plan:
        """Note that a key cannot be compiled, and return the plan that serves its calls instead.

        The caller holds the lock.
        """
        raise NotImplementedError

    def _note_failure(self, kind: Kind, error: ProfuseError, subject: str = "", **details: Any) -> None:
        """Count, keep and log the reason of a failed compile."""
        self.counters.compile_failures += 1
        self.reasons.append(Reason.of_error(kind, error, subject=subject))
        log("compile-failed", self.options.name, str(error), **details)

    def _told(self, key: Any, result: CompileResult) -> tuple[str, str]:
        """Descriptions of a plan: one for the event log, one for the log of slow calls."""
        raise NotImplementedError

    def _stored(self, request: CompileRequest) -> CompileResult | None:
        """The stored result of a request; None if there is none and the graph must be compiled."""
        return None

    # --- specialising -------------------------------------------------------------------------

    @property
    def _strict(self) -> bool:
        return self.options.strict or is_strict()

    def _specialise(
        self, key: Any, ask: Callable[[], CompileRequest], *, recalls: bool = False, waits: bool = True
    ) -> Plan | None:
        """Obtain and install the plan of a key during this call; the caller holds the lock.

        Args:
            key: the key of the plan.
            ask: makes the request.
            recalls: True = look for a stored result first.
            waits: True = compile if no stored result was found, and wait for that compile. False =
                return None if no stored result was found.

        Raises StrictFusionError if `strict_fusion` holds and the graph cannot be fused as asked,
        and KnobError for a wrong setting.
        """
        strict, start = self._strict, time.perf_counter()
        try:
            with compiler_errors("specialising the graph"):
                request = ask()
                requested = time.perf_counter() - start
                result = self._stored(request) if recalls else None
                if result is None and waits:
                    result = self._compile(request)
                if result is None:
                    return None
                add(result, REQUEST, requested)
                with rest_of(LINK, result.seconds):
                    if strict:
                        check_strict(result.module, result.failures, self.options.name)
                    new_plan = self._link(result)
                seconds = time.perf_counter() - start
        except (StrictFusionError, KnobError):
            raise  # these errors are for the user
        except ProfuseError as error:
            self.work.note("failed", time.perf_counter() - start, self.options.name, error.what)
            if strict:
                raise refused(self.options.name, error) from error
            return self._fail(key, error)
        self._cancel(key)
        plan = self._swap_in(key, request, new_plan, seconds)
        seconds = time.perf_counter() - start
        self.work.note_plan(result.found_in, seconds, self.options.name, self._told(key, new_plan.linked.result)[1])
        return plan

    def _specialise_elsewhere(self, key: Any, ask: Callable[[], CompileRequest]) -> Plan | None:
        """Request a compile in the background, unless one is under way; the caller holds the lock.

        Returns None while the compile is under way: the current plan keeps serving calls. If the
        request itself fails, returns the plan that serves calls instead.
        """
        pending = self._pending.get(key)
        if pending is not None and not pending.is_lost:
            return None
        try:
            with compiler_errors("asking for the specialised graph"):
                arrive = partial(self._arrive, key)
                pending = Pending(ask(), self._link, arrive, self._lock)
                if pending.submit():
                    self._pending[key] = pending
        except KnobError:
            raise
        except ProfuseError as error:
            return self._fail(key, error)
        return None

    def _arrive(self, key: Any, pending: Pending, new_plan: PlanWithFallbacks | ProfuseError) -> None:
        """Install the result of a background compile, unless it is obsolete; the lock is held."""
        if self._pending.get(key) is not pending:
            return
        del self._pending[key]
        pending.report(self.counters, self.reasons)
        if isinstance(new_plan, ProfuseError):
            self._fail(key, new_plan)
        else:
            self._swap_in(key, pending.request, new_plan, pending.seconds)

    def _swap_in(self, key: Any, request: CompileRequest, new_plan: PlanWithFallbacks, seconds: float) -> Plan:
        linked = new_plan.linked
        self.reasons += linked.reasons
        self.counters.compiles += 1
        reason = self._told(key, linked.result)[0]
        log("compile", self.options.name, reason, seconds, **self._facts(), **about(linked.result))
        return self._adopt(key, request, new_plan, seconds)

    def _facts(self) -> dict[str, Any]:
        """Further fields of the event that reports a compile."""
        return {}

    def _compile(self, request: CompileRequest) -> CompileResult:
        return compile_now(request, self.counters, background=self.options.background)

    # --- life cycle ---------------------------------------------------------------------------

    def chain(self) -> Iterator[Any]:
        """This executor and every one below it, outermost first, each once."""
        seen: set[int] = set()
        todo: list[Any] = [self]
        while todo:
            member = todo.pop()
            if id(member) not in seen:
                seen.add(id(member))
                yield member
                todo += reversed(member.children)

    @property
    def children(self) -> tuple[Any, ...]:
        """The executors that this one hands calls to: fallbacks, halves, those of the tape."""
        return (*tuple(self.fallbacks.values()), *tuple(self.halves.values()), *tuple(self.noted.values()))

    def under_way(self) -> list[Pending]:
        """Background compiles of the whole chain that have not ended."""
        pending = [p for member in self.chain() for p in tuple(member._pending.values())]
        return [p for p in pending if not p.is_lost]

    def flush(self) -> None:
        """Drop record, plans, fallbacks and kernels; the next call starts from scratch (R1.14)."""
        with self._lock:
            self._retire_children()
            self._cancel()
            self._reset()
            log("flush", self.options.name, "asked for by the user")

    def retire(self, into: Counters) -> None:
        """Add the counts of the whole chain to ``into``; no call will use this executor again."""
        with self._lock:
            self._retire_children()
            self._cancel()
            absorb(into, self.counters)

    def _cancel(self, *keys: Any) -> None:
        """Cancel the background compiles of the given keys; without keys, of all."""
        for key in keys or tuple(self._pending):
            if (pending := self._pending.pop(key, None)) is not None:
                pending.cancel()

    def _retire_children(self) -> None:
        for child in self.children:
            child._retire_children()
            child._cancel()
            absorb(self.counters, child.counters)
