"""The profiling executor: it profiles a graph, compiles it, and keeps a depth for its fallbacks.

An `Executor` owns one graph, which it first profiles and then runs with an optimised plan. If a
guard of the plan fails, another `Executor` runs the fallback. Its depth is one less, and it
profiles in turn. At depth 0 a plan is neither profiled nor guarded (R1.7 - R1.14, R1.42, R1.44).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError, KnobError, ProfuseError
from ...dialect.ir.program import Module
from ...dialect.profiling.observers import instrument
from ...dialect.reasons import Kind, Reason
from ..compile.ir_dump import NO_OPT, OPTIMISED, PROFILED, SIMPLE, dump_graph
from ..compile.pending import make_request, pipeline_options, warm_up
from ..compile.request import CompileRequest, CompileResult, compiler_errors
from ..interpret.record import Record
from ..interpret.size_history import Types, note_types, stable_sizes
from ..memory.destinations import Destinations
from ..plans.evaluated import profiling_plan
from ..plans.link import PlanWithFallbacks, Specialised, link, run_plan
from ..plans.plan import PLANS, Plan
from ..plans.plan_options import Options
from ..settings.device_fusion import left_devices
from ..settings.differentiation import was_differentiated
from ..settings.events import log
from ..settings.knobs import knobs
from ..settings.strategy import behavior_at, get_fusion_strategy, normalize, total_depth
from .executor_base import BaseExecutor
from .release import SWITCH, Clock, ReleasableGraph, ReleaseTimer
from .slow_calls import WorkLog
from .warm_start import WarmState

if TYPE_CHECKING:
    from ..compile.cache.entry import CacheEntry


UNPROFILED = Reason(Kind.UNPROFILED)


KEY = None  # the key of the only plan: this executor has one plan at a time


@dataclass(frozen=True)
class DebugState:
    """A snapshot of an optimised executor (R1.15).

    Attributes:
        graph: IR text of the optimised graph, or of the imported graph if the plan runs that one.
        plans: the optimised plan under the key ``()``, since it serves all arguments.
        created: when the plan was made, in whole seconds of the executor's clock; None = the plan
            is not specialised.
    """

    graph: str
    plans: Mapping[tuple, Plan]
    created: int | None


class Executor(BaseExecutor):
    """Runs one graph through its tiers.

    Args:
        module: the graph, as imported: without observers and types.
        options: per-function settings.
        history: the input types for which outer executors have specialised this graph.
        clock: gives the time in seconds; the delay before a release is measured with it.
        profiles: False = never profile or compile (R1.2). Fallback executors always have True.
        work: the log of slow work; None = the executor makes its own log.
        depth: number of re-specialisations left, unless a request states another one; None = the
            strategy's total. A fallback gets its depth here, because its first request may come
            while a mode is off (R1.42).
    """

    many_plans: ClassVar[Literal[False]] = False

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
        super().__init__(options, work)
        self._given_depth = depth
        self._graph = ReleasableGraph(module)
        self._clock = clock
        self._timer = ReleaseTimer(clock)
        self._profiles = profiles
        self.history = history
        self._reset()

    def _reset(self) -> None:
        """Drop all learnt data and read the settings again (R1.5, R1.14)."""
        super()._reset()
        strategy = self.options.strategy
        self.strategy = get_fusion_strategy() if strategy is None else normalize(strategy)
        self._depth: int | None = None
        self._timer.reset()
        self._graph.keep()
        self.optimized: Plan | None = None
        self._profiling: Plan | None = None
        self._plain: Plan | None = None
        self.record: Record | None = None
        self.result: CompileResult | None = None
        self.request: CompileRequest | None = None
        self._interim: Plan | None = None
        self.warm: WarmState | None = None
        self.seconds = 0.0
        self._seen: dict[Types, None] = {}

    # --- running ------------------------------------------------------------------------------

    def run(self, inputs: list, into: Destinations | None = None) -> list:
        """Run the graph with the current plan; the outputs share memory with no input."""
        return run_plan(self.plan(), inputs, into)

    def plan(self, depth: int | None = None) -> Plan:
        """The plan for the next call; requests a compile once the record is ready (R1.7).

        Args:
            depth: number of re-specialisations left; None = the depth that the executor was made
                with. The first request stores the depth, and later ones do not change it. While
                the general fuser is off, every request stores its own depth (R1.9, A5).
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
        """Number of re-specialisations left; before the first request, the initial depth."""
        return self._initial_depth() if self._depth is None else self._depth

    def _initial_depth(self) -> int:
        depth = self._given_depth
        return total_depth(self.strategy) if depth is None else depth

    @property
    def settled(self) -> Plan | None:
        """The optimised plan; None while there is none, or while a release is still due."""
        return None if self._timer.pending else self.optimized

    @property
    def created(self) -> int | None:
        """Time when the optimised plan was made, in whole seconds; None = no plan yet (R1.12)."""
        return self._timer.created

    @property
    def released(self) -> bool:
        """True once the executor has dropped the data that only profiling needs (R1.13)."""
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
                plan = self._evaluated_plan("simple", self.module)
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
                    return self._fail(KEY, error)
            assert self.record is not None
            if not self.record.ready:
                assert self._profiling is not None
                return self._profiling
            recalls = at_once and self.record.is_restored
            waits = self._strict or not self.options.background
            optimized = None
            if recalls or waits:
                optimized = self._specialise(KEY, self._make_request, recalls=recalls, waits=waits)
            if optimized is None:
                return self._meanwhile()
            if at_once and self._timer.pending:
                self._release()
            return optimized

    def _install(self, plan: Plan, reason: str) -> Plan:
        self._cancel()  # this plan makes a compile under way obsolete
        self.optimized, self._interim = plan, None
        self._timer.stamp()
        PLANS.count += 1
        log("tier", self.options.name, reason, tier=plan.kind, depth=self.depth)
        return plan

    def _no_opt_plan(self) -> Plan:
        """The plan that runs while optimisation or profiling is off; stored separately (R1.8)."""
        if self._plain is None:
            self._plain = self._evaluated_plan("no-opt", self.module)
            self._dump(NO_OPT, self.module.to_mlir)
            log("tier", self.options.name, "optimisation or profiling is off", tier="no-opt")
        return self._plain

    def _dump(self, title: str, text: Callable[[], str]) -> None:
        dump_graph(knobs.dump, title, self.options.name, text)

    def _start_profiling(self) -> None:
        runs = self.options.recorded_runs
        # Values are observed for the fuser of device groups alone (R3.5).
        speculates = bool(left_devices(self.options.processor.device))
        record = Record(instrument(self.module, values=speculates), runs)
        self.warm = WarmState(lambda: self.module, self.history, runs, self.options, values=speculates)
        with self.work.timed("recalled", self.options.name):
            self._seen = dict.fromkeys(self.warm.restore(record, self.counters, self.reasons))

        if not (record.is_restored or runs):
            self.reasons.append(UNPROFILED)

        def on_run(inputs: list, seconds: float) -> None:
            self.counters.profiled_runs += 1
            note_types(self._seen, inputs)
            self.work.note("profiled", seconds, self.options.name)
            with self.work.timed("prepared", self.options.name):
                warm_up(self.options.background)  # not earlier: a warm start may need no compile

        self.record = record
        adapt = self.options.adapter(record.module)
        self._profiling = self._ready(profiling_plan(record, self.options.name, self._count_op, on_run, adapt))
        log("tier", self.options.name, "first call", tier="profiling", depth=self.depth)

    @property
    def is_recorded(self) -> bool:
        """True if the record is ready, so that a call requests a compile."""
        record = self.record
        return record is not None and record.ready

    @property
    def tier(self) -> str:
        """Tier of the plan with which the next call would start."""
        if self.optimized is not None:
            return self.optimized.kind
        if self._pending:
            return "compiling"
        return "no-opt" if self.record is None and self._plain is not None else "profiling"

    @property
    def remaining_depth(self) -> int:
        """Number of re-specialisations left below the deepest specialised executor."""
        return min(e.depth if e.optimized is None else max(e.depth - 1, 0) for e in self.chain())

    def compiled(self) -> list[Specialised]:
        """The specialisation, as a list of one; empty before the first compile."""
        # Each field is read once, because another thread may flush the executor meanwhile.
        plan, result = self.optimized, self.result
        if plan is None or result is None:
            return []
        about = ", ".join(dict.fromkeys(g.behavior for g in plan.guards)) or "unguarded"
        return [Specialised(plan, self.request, result, self.seconds, self.depth, about)]

    def debug_state(self) -> DebugState | None:
        """A snapshot of the optimised plan (R1.15); None before the first plan."""
        if self.optimized is None:
            return None
        graph = self.result.ir if self.result else self.module.to_mlir()
        return DebugState(graph, MappingProxyType({(): self.optimized}), self.created)

    # --- compiling ----------------------------------------------------------------------------

    def _stored(self, request: CompileRequest) -> CompileResult | None:
        if self.warm is None:
            return None
        return self.warm.stored(request, self.counters, self.reasons)

    def _told(self, key: None, result: CompileResult) -> tuple[str, str]:
        count, what = len(result.kernels), f"{self._behavior} specialisation"
        return what, f"{what} with {count} kernel{'s' * (count != 1)}"

    def _facts(self) -> dict[str, Any]:
        return {"depth": self.depth}

    @property
    def _behavior(self) -> str:
        return behavior_at(self.strategy, self.depth)

    def _make_request(self) -> CompileRequest:
        assert self.record is not None
        text = self.record.module.to_mlir()
        self._dump(PROFILED, lambda: text)
        options = replace(
            pipeline_options(self.options, gradients=self._differentiates, strict=self._strict),
            dynamic=self._behavior == "dynamic",
            stable_sizes=stable_sizes((*self.history, *self._seen)),
        )
        self.request = make_request(text, options.optimizing(), self.options)
        return self.request

    @property
    def _differentiates(self) -> bool:
        """True if subgraphs are differentiated, and not fused here (R1.27)."""
        assert self.record is not None
        return self.options.gradients and was_differentiated(self.record.module)

    def _meanwhile(self) -> Plan:
        """Request a background compile unless one is under way; the plan to run until it ends."""
        pinned = self._specialise_elsewhere(KEY, lambda: self.request or self._make_request())
        if pinned is not None:
            return pinned
        if self._interim is None:
            self._interim = self._evaluated_plan("compiling", self.module)
            log("tier", self.options.name, "compiles in the background", tier="compiling")
        return self._interim

    def _fail(self, key: None, error: ProfuseError) -> Plan:
        """Pin this graph to tier 0 and keep the reason."""
        self._note_failure(Kind.NOT_COMPILED, error)
        plan = self._evaluated_plan("simple", self.module)
        return self._install(plan, f"not compiled: {error.what}")

    def _link(self, result: CompileResult) -> PlanWithFallbacks:
        """Load the kernels, make the fallback executors (R1.42) and generate the plan.

        This method may run on another thread without the lock, so it also writes the profile to
        disk.
        """
        if self.depth < 1:
            raise InternalError(f"{self.options.name} is specialised with depth {self.depth}")
        record = self.record
        if self.warm is not None and record is not None:
            self.warm.keep(record, tuple(self._seen))
        fallbacks: dict[str, Executor] = {}

        def fallback(callee: str, guarded: Types | None) -> Callable[[list], list]:
            history = self.history if guarded is None else (*self.history, guarded)
            body, options = result.module.part(callee), self.options.of_fallback(callee)
            depth = self.depth - 1
            child = Executor(body, options, history, self._clock, self.work, depth=depth)
            child.make, child.shared = self.make, self.shared
            child.plan()  # the child stores its depth and makes its first plan before it runs
            fallbacks[callee] = child
            return child.run

        graphs, halves = self._halved(result)
        linked = link(result, self.counters, self.options, fallback, self.donated, graphs, strict=self._strict)
        self._ready(linked.plan).sole = self.sole
        return PlanWithFallbacks(linked, fallbacks, halves)

    def _adopt(self, key: None, request: CompileRequest, new_plan: PlanWithFallbacks, seconds: float) -> Plan:
        result = new_plan.linked.result
        self.result, self.fallbacks, self.seconds = result, new_plan.fallbacks, seconds
        self.halves = new_plan.halves
        self._dump(OPTIMISED, lambda: result.ir)
        return self._install(new_plan.linked.plan, f"specialised, {self._behavior}")

    # --- life cycle ---------------------------------------------------------------------------

    def _release(self) -> None:
        """Drop record, profiling plan and no-opt plan; keep the graph as a packed copy (R1.13)."""
        with self._lock:
            if not self._timer.pending:
                return
            self._timer.done = True
            if self.warm is not None and self.record is not None:
                self.warm.pack(self.record, tuple(self._seen), self.request)
            self._profiling = self._plain = self.record = self.request = None
            if self.optimized is None or self.optimized.graph is not self.module:
                self._graph.pack()  # else the plan runs the very graph
            PLANS.count += 1
            log("release", self.options.name, "optimised; what only profiling needed is dropped")

    def flush(self) -> None:
        """Drop record, plans, fallbacks and kernels; the next call profiles again (R1.14)."""
        with self._lock:
            self.options = replace(self.options, recall=False)
            super().flush()

    def entries(self) -> list[CacheEntry]:
        """Entries for a saved file: profile and compile of this executor, if it has them."""
        if self.warm is None:
            return []
        return self.warm.entries(self.record, tuple(self._seen), self.request, self.result)
