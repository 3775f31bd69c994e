"""The tier machine: which plan runs a graph, when it profiles and compiles, what depth is left.

An `Executor` owns one graph. It moves from profiling to an optimised plan; the other side of each
guard is an Executor of its own, one level shallower, that profiles again, down to depth 0 where a
plan is neither profiled nor guarded (R1.7 - R1.14, R1.42, R1.44).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...dialect.errors import InternalError, KnobError, ProfuseError, StrictFusionError
from ...dialect.ir.program import Module
from ...dialect.profiling.observers import instrument
from ...dialect.reasons import Kind, Reason
from ..compile.ir_dump import NO_OPT, OPTIMISED, PROFILED, SIMPLE, dump_graph
from ..compile.pending import Pending, compile_now, make_request, warm_up
from ..compile.request import CompileRequest, CompileResult, compiler_errors, optimizing_pipeline
from ..compile.timings import LINK, REQUEST, about, add, rest_of
from ..interpret.record import Record
from ..interpret.size_history import Types, guarded_types, note_types, stable_sizes
from ..memory.destinations import Destinations
from ..plans.evaluated import evaluated_plan, profiling_plan
from ..plans.link import Linked, link, run_plan
from ..plans.options import Options
from ..plans.plan import PLANS, Plan
from ..settings.events import log
from ..settings.knobs import knobs
from ..settings.strategy import behavior_at, get_fusion_strategy, normalize, total_depth
from ..settings.strict import check_strict, is_strict, refused
from ..settings.user_passes import registered
from .base import ChainMember
from .release import SWITCH, Clock, Graph, ReleaseTimer
from .slow_calls import WorkLog
from .warm_start import WarmState

if TYPE_CHECKING:
    from ..compile.cache.entry import Entry


UNPROFILED = Reason(Kind.UNPROFILED)


class _Chained(NamedTuple):
    """A linked plan and the executors behind its guards."""

    linked: Linked
    fallbacks: dict[str, Executor]


class Executor(ChainMember):
    """Runs one graph through its tiers.

    Args:
        module: the graph, as imported: no observers, no types.
        options: per-function settings.
        history: input types that outer executors have specialised this graph for.
        clock: seconds, for what is released after a delay.
        profiles: False = never profile nor compile (R1.2). A fallback goes on as the executor it
            belongs to, which did.
        work: where slow work is noted; None = a log of its own.
        depth: re-specialisations left where a request does not say; None = the strategy's total. A
            fallback's is fixed here, whatever its first request finds switched off (R1.42).
    """

    def __init__(
        self,
        module: Module,
        options: Options,
        history: tuple[Types, ...] = (),
        clock: Clock = time.time,
        work: WorkLog | None = None,
        *,
        profiles: bool = True,
        depth: int | None = None,
    ) -> None:
        super().__init__()
        self._given_depth = depth
        self._graph = Graph(module)
        self._clock = clock
        self._timer = ReleaseTimer(clock)
        self._profiles = profiles
        self.history = history
        self.options = options
        self.work = WorkLog(self.counters) if work is None else work
        self.input_names: tuple[str, ...] = ()  # what the user calls them, where that is known
        self.notes: list[str] = []  # what the importer has to say about the graph
        self._reset()

    def _reset(self) -> None:
        """Forget everything learnt and read the settings anew (R1.5, R1.14)."""
        options = self.options
        given = options.strategy
        self.strategy = get_fusion_strategy() if given is None else normalize(given)
        self._depth: int | None = None
        self._timer.reset()
        self._graph.keep()
        self.pending: Pending | None = None
        self.optimized: Plan | None = None
        self._profiling: Plan | None = None
        self._plain: Plan | None = None
        self.record: Record | None = None
        self.result: CompileResult | None = None
        self.request: CompileRequest | None = None
        self._interim: Plan | None = None
        self.warm: WarmState | None = None
        self.fallbacks: dict[str, Executor] = {}
        self.reasons: list[Reason] = []
        self.device_failure = ""  # why no kernel of a device is tried any more
        self.seconds = 0.0
        self._seen: dict[Types, None] = {}

    # --- running ------------------------------------------------------------------------------

    def run(self, inputs: list, into: Destinations | None = None) -> list:
        """Outputs for these inputs, on the best plan there is; they share memory with no input."""
        return run_plan(self.plan(), inputs, into)

    def plan(self, depth: int | None = None) -> Plan:
        """The plan for the next call; compiles when the record has become ready (R1.7).

        ``depth``: re-specialisations left, kept from the first request that comes this far; None
        = what the executor was made with. With the general fuser off every request sets it anew
        (R1.9, A5).
        """
        plan = self.optimized
        if plan is None:
            return self._choose(depth)
        if SWITCH.on and self._timer.due():
            self._release()
        return plan

    @property
    def module(self) -> Module:
        """The graph, as imported."""
        return self._graph.get()

    @property
    def depth(self) -> int:
        """Re-specialisations left: as stored; before the first request, what was given."""
        return self._initial_depth() if self._depth is None else self._depth

    def _initial_depth(self) -> int:
        given = self._given_depth
        return total_depth(self.strategy) if given is None else given

    @property
    def settled(self) -> Plan | None:
        """The optimised plan once calls have nothing else to look after; else None."""
        return None if self._timer.pending else self.optimized

    @property
    def created(self) -> int | None:
        """When the optimised plan was made, in whole seconds; None = there is none yet (R1.12)."""
        return self._timer.created

    @property
    def released(self) -> bool:
        """True once what only profiling needed is gone (R1.13)."""
        return self._timer.done

    def _choose(self, depth: int | None) -> Plan:
        with self._lock:
            if self.optimized is not None:
                return self.optimized
            if not (knobs.optimize and knobs.profiling_mode and self._profiles):
                return self._no_opt_plan()
            if self._depth is None or not knobs.general_fuser:
                self._depth = self._initial_depth() if depth is None else depth
            if self.depth == 0:
                plan = self._evaluated_plan("simple")
                self._dump(SIMPLE, self.module.to_mlir)
                return self._install(plan, "no depth left: runs unguarded")
            at_once = self.record is None
            if self.record is None:
                try:
                    with compiler_errors("putting observers into the graph"):
                        self._start_profiling()
                except KnobError:
                    raise
                except ProfuseError as error:
                    return self._pin(error)
            assert self.record is not None
            if not self.record.ready:
                assert self._profiling is not None
                return self._profiling
            recalls = at_once and self.record.is_restored
            waits = self.options.strict or is_strict() or not self.options.background
            made = self._optimize(recalls, waits) if recalls or waits else None
            if made is None:
                return self._meanwhile()
            if at_once and self._timer.pending:
                self._release()
            return made

    def _install(self, plan: Plan, reason: str) -> Plan:
        self._cancel()  # whatever else may be under way is obsolete
        self.optimized, self._interim = plan, None
        self._timer.stamp()
        PLANS.made += 1
        log("tier", self.options.name, reason, tier=plan.kind, depth=self.depth)
        return plan

    def _no_opt_plan(self) -> Plan:
        """The plan for when optimisation or profiling is off; kept apart (R1.8)."""
        if self._plain is None:
            self._plain = self._evaluated_plan("no-opt")
            self._dump(NO_OPT, self.module.to_mlir)
            log("tier", self.options.name, "optimisation or profiling is off", tier="no-opt")
        return self._plain

    def _evaluated_plan(self, kind: str) -> Plan:
        adapt = self.options.processor.adapter(self.module)
        return evaluated_plan(kind, self.module, self.options.name, self._count_op, adapt)

    def _dump(self, title: str, text: Callable[[], str]) -> None:
        dump_graph(knobs.dump, title, self.options.name, text)

    def _start_profiling(self) -> None:
        asked = self.options.profiled_runs
        runs = knobs.profiled_runs if asked is None else asked
        record = Record(instrument(self.module), runs)
        self.warm = WarmState(lambda: self.module, self.history, runs, self.options)
        with self.work.timed("recalled", self.options.name):
            self._seen = dict.fromkeys(self.warm.restore(record, self.counters, self.reasons))

        if not (record.is_restored or runs):
            self.reasons.append(UNPROFILED)

        def on_run(inputs: list, seconds: float) -> None:
            self.counters.profiled_runs += 1
            note_types(self._seen, inputs)
            self.work.note("profiled", seconds, self.options.name)
            with self.work.timed("prepared", self.options.name):
                warm_up(self.options.background)  # warm starts may compile nothing

        self.record = record
        adapt = self.options.processor.adapter(record.module)
        self._profiling = profiling_plan(record, self.options.name, self._count_op, on_run, adapt)
        log("tier", self.options.name, "first call", tier="profiling", depth=self.depth)

    @property
    def tier(self) -> str:
        """Tier of the plan that the next call would start on."""
        if self.optimized is not None:
            return self.optimized.kind
        if self.pending is not None:
            return "compiling"
        return "no-opt" if self.record is None and self._plain is not None else "profiling"

    # --- compiling ----------------------------------------------------------------------------

    def _optimize(self, recalls: bool, waits: bool) -> Plan | None:
        """Obtain and install the plan, on this call; the graph is pinned if that goes wrong.

        ``recalls``: it may be stored; ``waits``: it is compiled otherwise. None where neither gives
        one. Raises StrictFusionError where `strict_fusion` asks for what cannot be done.
        """
        strict = self.options.strict or is_strict()
        start = time.perf_counter()
        try:
            with compiler_errors("specialising the graph"):
                request = self._make_request()
                requested = time.perf_counter() - start
                result = self._obtain(request, recalls, waits)
                if result is None:
                    return None
                add(result, REQUEST, requested)
                with rest_of(LINK, result.seconds):
                    if strict:
                        check_strict(result.module, result.failures, self.options.name)
                    made = self._link(result)
                self.seconds = time.perf_counter() - start
        except (StrictFusionError, KnobError):
            raise  # what was asked for cannot be done, or a setting is wrong
        except ProfuseError as error:
            if strict:
                raise refused(self.options.name, error) from error
            self.work.note("failed", time.perf_counter() - start, self.options.name, error.what)
            return self._pin(error)
        plan = self._swap_in(made)
        count = len(result.kernels)
        detail = f"{self._behavior} specialisation with {count} kernel{'s' * (count != 1)}"
        self.work.note_plan(
            result.found_in, time.perf_counter() - start, self.options.name, detail
        )  # fmt: skip
        return plan

    def _obtain(self, request: CompileRequest, recalls: bool, waits: bool) -> CompileResult | None:
        found = None
        if recalls and self.warm is not None:
            found = self.warm.stored(request, self.counters, self.reasons)
        if found is None and waits:
            found = compile_now(request, self.counters, background=self.options.background)
        return found

    @property
    def _behavior(self) -> str:
        return behavior_at(self.strategy, self.depth)

    def _make_request(self) -> CompileRequest:
        assert self.record is not None
        before, after = registered()
        text = self.record.module.to_mlir()
        self._dump(PROFILED, lambda: text)
        pipeline = optimizing_pipeline(
            self._behavior, knobs.min_fusion_size, knobs.max_fusion_values, knobs.max_fusion_ops,
            stable_sizes((*self.history, *self._seen)),
            fuse=knobs.general_fuser, before=before, after=after,
        )  # fmt: skip
        self.request = make_request(text, pipeline, self.options)
        return self.request

    def _meanwhile(self) -> Plan:
        """Have the plan compiled elsewhere, unless it is; until it is there, run op by op."""
        if self.pending is None or self.pending.is_lost:
            try:
                with compiler_errors("asking for the specialised graph"):
                    request = self.request or self._make_request()
                    self.pending = Pending.submitted(request, self._link, self._arrive, self._lock)
            except KnobError:
                raise
            except ProfuseError as error:
                return self._pin(error)
        if self._interim is None:
            self._interim = self._evaluated_plan("compiling")
            log("tier", self.options.name, "compiles in the background", tier="compiling")
        return self._interim

    def _arrive(self, pending: Pending, made: _Chained | ProfuseError) -> None:
        """Swap in what was compiled elsewhere, unless it is obsolete; the lock is held."""
        if self.pending is not pending:
            return
        self.pending = None
        pending.report(self.counters, self.reasons)
        if isinstance(made, ProfuseError):
            self._pin(made)
        else:
            self.seconds = pending.seconds
            self._swap_in(made)

    def _pin(self, error: ProfuseError) -> Plan:
        """Pin this graph to tier 0, with the reason kept."""
        self._retire_fallbacks()
        self.fallbacks, self.result = {}, None
        self.counters.compile_failures += 1
        self.reasons.append(Reason.of_error(Kind.NOT_COMPILED, error))
        log("compile-failed", self.options.name, str(error))
        return self._install(self._evaluated_plan("simple"), f"not compiled: {error.what}")

    def _link(self, result: CompileResult) -> _Chained:
        """Load kernels, build the fallback executors (R1.42) and generate the plan.

        The profile is stored here because this may run on another thread, under no lock.
        """
        if self.depth < 1:
            raise InternalError(f"{self.options.name} is specialised with depth {self.depth}")
        record = self.record
        if self.warm is not None and record is not None:
            self.warm.keep(record, tuple(self._seen))
        guarded = guarded_types(result.module)
        fallbacks: dict[str, Executor] = {}

        def fallback(callee: str) -> Callable[[list], list]:
            history = (*self.history, *guarded.get(callee, ()))
            body, options = result.module.part(callee), self.options.of_fallback(callee)
            depth = self.depth - 1
            child = Executor(body, options, history, self._clock, self.work, depth=depth)
            child.plan()  # stores the depth, builds its first plan before it runs
            fallbacks[callee] = child
            return child.run

        linked = link(result, self.counters, self.options, fallback, self.donated)
        return _Chained(linked, fallbacks)

    def _swap_in(self, made: _Chained) -> Plan:
        """Make a linked plan the one that calls run on; the lock is held."""
        result = made.linked.result
        self.result, self.fallbacks = result, made.fallbacks
        self.reasons += made.linked.reasons
        self._dump(OPTIMISED, lambda: result.ir)
        self.counters.compiles += 1
        log(
            "compile", self.options.name, f"{self._behavior} specialisation", self.seconds,
            depth=self.depth, **about(result),
        )  # fmt: skip
        return self._install(made.linked.plan, f"specialised, {self._behavior}")

    # --- life cycle ---------------------------------------------------------------------------

    def _release(self) -> None:
        """Drop record, profiling and no-opt plan; the graph stays as a packed copy (R1.13)."""
        with self._lock:
            if not self._timer.pending:
                return
            self._timer.done = True
            if self.warm is not None and self.record is not None:
                self.warm.pack(self.record, tuple(self._seen), self.request)
            self._profiling = self._plain = self.record = self.request = None
            if self.optimized is None or self.optimized.graph is not self.module:
                self._graph.pack()  # else the plan runs the very graph
            PLANS.made += 1
            log("release", self.options.name, "optimised; what only profiling needed is dropped")

    def flush(self) -> None:
        """Forget record, plans, fallbacks and kernels; the next call profiles anew (R1.14)."""
        with self._lock:
            self._retire_fallbacks()
            self._cancel()
            self.options = replace(self.options, recall=False)
            self._reset()
            log("flush", self.options.name, "asked for by the user")

    def entries(self) -> list[Entry]:
        """Profile and compile of this executor, as far as there are any, for a saved file."""
        if self.warm is None:
            return []
        return self.warm.entries(self.record, tuple(self._seen), self.request, self.result)
