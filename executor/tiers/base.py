"""What both executors share: asking for code, swapping in what comes of it, and how they end.

`BaseExecutor` is the one specialiser. An executor on top of it is a policy: by what *key* it keeps
plans, what it has compiled for a key, and what runs until the plan is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from ...dialect.errors import KnobError, ProfuseError, StrictFusionError
from ...dialect.ir.program import Module
from ...dialect.reasons import Kind, Reason
from ..compile.pending import Pending, compile_now
from ..compile.request import CompileRequest, CompileResult, compiler_errors
from ..compile.timings import LINK, REQUEST, about, add, rest_of
from ..interpret.record import Record
from ..plans.evaluated import evaluated_plan
from ..plans.link import Linked
from ..plans.options import Options
from ..plans.plan import Plan
from ..settings.events import Counters, absorb, log, new_counters
from ..settings.fork_lock import ForkLock
from ..settings.strict import check_strict, is_strict, refused
from .slow_calls import WorkLog


class Made(NamedTuple):
    """What is made of a compile's result: a linked plan and the executors behind its guards."""

    linked: Linked
    fallbacks: dict[str, Any]


@dataclass(frozen=True)
class Specialised:
    """One specialisation of a graph.

    Attributes:
        plan: what runs.
        request: what was compiled; None where that was released.
        result: what came of it.
        seconds: how long it took.
        depth: re-specialisations that were left.
        about: what it is for, in words.
    """

    plan: Plan
    request: CompileRequest | None
    result: CompileResult
    seconds: float
    depth: int = 0
    about: str = ""


class BaseExecutor:
    """An executor of one graph, with the executors that lie behind its guards.

    Args:
        options: per-function settings.
        work: where slow work is noted; None = a log of its own.

    Attributes:
        reasons: what was refused or failed, in the order in which it was met.
        fallbacks: executors behind guards, by the name of the fallback function.
        donated: inputs that may be overwritten.
        input_names: what the user calls the inputs, where that is known.
        notes: what the importer has to say about the graph.
        device_failure: why no kernel of a device is tried any more; "" = they are.
    """

    donated: tuple[int, ...] = ()
    record: Record | None = None  # of the types seen, while they are recorded
    # What a policy is like; a class says it, so that nobody asks which class it is.
    may_donate: ClassVar[bool] = True  # results may be made in the memory of donated inputs
    takes_undefined: ClassVar[bool] = False  # None among the arguments is an undefined tensor
    joins_traces: ClassVar[bool] = False  # a call within another trace records this graph (R2.14)
    python_only: ClassVar[str] = ""  # why calls are never dispatched in emitted code
    many_plans: ClassVar[bool]  # one plan per kind of call, and not one with its fallbacks

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
        self.device_failure = ""
        self._pending: dict[Hashable, Pending] = {}

    def _start_over(self) -> None:
        """Another thread was changing this object when the process was forked."""
        self._reset()
        log("flush", reason="another thread was changing the plans when the process forked")

    @property
    def module(self) -> Module:
        """The graph, as imported."""
        raise NotImplementedError

    @property
    def counters(self) -> Counters:
        """What this executor has done, calls in emitted code included."""
        found = self._counters if self._counters.heir is None else self._counters.last_heir()
        return found.current() if found.native else found

    def _count_op(self) -> None:
        self.counters.evaluated_ops += 1

    def _evaluated_plan(self, kind: str, module: Module) -> Plan:
        adapt = self.options.processor.adapter(module)
        return evaluated_plan(kind, module, self.options.name, self._count_op, adapt)

    def evaluate(self, inputs: list) -> list:
        """Outputs of the graph for these inputs, op by op."""
        return self._evaluated_plan("no-opt", self.module).run(inputs)

    def note_slower(self, reason: Reason) -> None:
        """Keep, once, why calls take more work than they should."""
        if reason not in self.reasons:
            self.reasons.append(reason)
            log("slower", self.options.name, str(reason))

    # --- what others ask ----------------------------------------------------------------------

    @property
    def tier(self) -> str:
        """Tier of the plan that the next call would start on."""
        raise NotImplementedError

    @property
    def released(self) -> bool:
        """True once what only profiling needed is gone (R1.13)."""
        return False

    @property
    def settled(self) -> Plan | None:
        """The one plan of all calls, once these have nothing else to look after; else None."""
        return None

    @property
    def remaining_depth(self) -> int:
        """Re-specialisations that may still happen below the deepest specialised executor."""
        return 0

    def compiled(self) -> list[Specialised]:
        """The specialisations of this executor, without those of its fallbacks."""
        raise NotImplementedError

    def count_invocation(self) -> None:
        """Count a run, where runs are counted (R2.3)."""

    # --- specialising: what a policy provides -------------------------------------------------

    def _link(self, result: CompileResult) -> Made:
        """Load kernels and make the plan, on whatever thread and under no lock."""
        raise NotImplementedError

    def _adopt(self, key: Any, request: CompileRequest, made: Made, seconds: float) -> Plan:
        """Make what was linked the plan of a key; the lock is held."""
        raise NotImplementedError

    def _fail(self, key: Any, error: ProfuseError) -> Plan:
        """Remember that a key cannot be compiled; what runs instead. The lock is held."""
        raise NotImplementedError

    def _note_failure(
        self, kind: Kind, error: ProfuseError, subject: str = "", **details: Any
    ) -> None:
        """Count, keep and log why something was not compiled."""
        self.counters.compile_failures += 1
        self.reasons.append(Reason.of_error(kind, error, subject=subject))
        log("compile-failed", self.options.name, str(error), **details)

    def _told(self, key: Any, result: CompileResult) -> tuple[str, str]:
        """What a plan is, for the event log and for the log of slow calls."""
        raise NotImplementedError

    def _stored(self, request: CompileRequest) -> CompileResult | None:
        """The result of a request, where it may be had without a compile."""
        return None

    # --- specialising -------------------------------------------------------------------------

    @property
    def _strict(self) -> bool:
        return self.options.strict or is_strict()

    def _specialise(
        self, key: Any, ask: Callable[[], CompileRequest], *, recalls: bool = False,
        waits: bool = True,
    ) -> Plan | None:  # fmt: skip
        """Obtain and install the plan of a key, on this call; the lock is held.

        Args:
            recalls: the result may be stored.
            waits: otherwise it is compiled. None is returned where neither gives a result.

        Raises StrictFusionError where `strict_fusion` asks for what cannot be done, and KnobError.
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
                    made = self._link(result)
                seconds = time.perf_counter() - start
        except (StrictFusionError, KnobError):
            raise  # what was asked for cannot be done, or a setting is wrong
        except ProfuseError as error:
            self.work.note("failed", time.perf_counter() - start, self.options.name, error.what)
            if strict:
                raise refused(self.options.name, error) from error
            return self._fail(key, error)
        self._cancel(key)
        plan = self._swap_in(key, request, made, seconds)
        seconds = time.perf_counter() - start
        self.work.note_plan(
            result.found_in, seconds, self.options.name, self._told(key, result)[1]
        )  # fmt: skip
        return plan

    def _specialise_elsewhere(self, key: Any, ask: Callable[[], CompileRequest]) -> Plan | None:
        """Have a key compiled elsewhere, unless it is; the lock is held.

        Returns what runs if that cannot even be asked for; None = go on as before, meanwhile.
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

    def _arrive(self, key: Any, pending: Pending, made: Made | ProfuseError) -> None:
        """Swap in what was compiled elsewhere, unless it is obsolete; the lock is held."""
        if self._pending.get(key) is not pending:
            return
        del self._pending[key]
        pending.report(self.counters, self.reasons)
        if isinstance(made, ProfuseError):
            self._fail(key, made)
        else:
            self._swap_in(key, pending.request, made, pending.seconds)

    def _swap_in(self, key: Any, request: CompileRequest, made: Made, seconds: float) -> Plan:
        linked = made.linked
        self.reasons += linked.reasons
        self.counters.compiles += 1
        reason = self._told(key, linked.result)[0]
        log("compile", self.options.name, reason, seconds, **self._facts(), **about(linked.result))
        return self._adopt(key, request, made, seconds)

    def _facts(self) -> dict[str, Any]:
        """What the event of a compile says beside what was compiled."""
        return {}

    def _compile(self, request: CompileRequest) -> CompileResult:
        return compile_now(request, self.counters, background=self.options.background)

    # --- life cycle ---------------------------------------------------------------------------

    def chain(self) -> Iterator[Any]:
        """This executor and every fallback executor below it, outermost first."""
        yield self
        for child in tuple(self.fallbacks.values()):
            yield from child.chain()

    def under_way(self) -> list[Pending]:
        """Compiles that run elsewhere, of the whole chain."""
        found = [p for member in self.chain() for p in tuple(member._pending.values())]
        return [p for p in found if not p.is_lost]

    def flush(self) -> None:
        """Forget record, plans, fallbacks and kernels; the next call starts anew (R1.14)."""
        with self._lock:
            self._retire_fallbacks()
            self._cancel()
            self._reset()
            log("flush", self.options.name, "asked for by the user")

    def retire(self, into: Counters) -> None:
        """Leave the counts of the whole chain to another object; nobody will call it again."""
        with self._lock:
            self._retire_fallbacks()
            self._cancel()
            absorb(into, self.counters)

    def _cancel(self, *keys: Any) -> None:
        """Give up what is compiled elsewhere, of some keys or of all."""
        for key in keys or tuple(self._pending):
            if (pending := self._pending.pop(key, None)) is not None:
                pending.cancel()

    def _retire_fallbacks(self) -> None:
        for child in self.fallbacks.values():
            child._retire_fallbacks()
            child._cancel()
            absorb(self.counters, child.counters)
