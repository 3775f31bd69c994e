"""The spec-keyed executor: one plan per dtypes and ranks of the arguments, compiled on first use.

It serves graphs that were made while profiling mode was off (R2.1). Nothing is profiled: plans are
compiled for types without sizes, so every size in them is a symbol (R2.2 - R2.14, R2.16). What a
kernel needs beyond that (equal sizes, layout) is guarded inside the plan, with the unspecialised
body on the other side, run op by op.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.errors import ArgumentError, KnobError, ProfuseError, StrictFusionError
from ...dialect.ir.device import DeviceTensor
from ...dialect.ir.program import Module
from ...dialect.ir.types import TensorType, type_of
from ...dialect.profiling.input_types import with_input_types
from ...dialect.reasons import Kind, Reason
from ..arguments.argument_spec import ArgumentSpec, compile_recipe
from ..compile.pending import Pending, compile_now, make_request
from ..compile.request import CompileRequest, CompileResult, compiler_errors, keyed_pipeline
from ..compile.timings import LINK, about, rest_of
from ..interpret.evaluate import Evaluator
from ..memory.destinations import Destinations
from ..plans.evaluated import evaluated_plan
from ..plans.link import Linked, link, own, refuse, run_plan
from ..plans.plan import Plan
from ..settings.events import Counters, absorb, log, new_counters
from ..settings.fork_lock import ForkLock
from ..settings.gradient_mode import needs_gradient
from ..settings.knobs import knobs
from ..settings.strict import check_strict, is_strict, refused
from ..settings.user_passes import registered
from .profiling import Options
from .slow_calls import WorkLog

if TYPE_CHECKING:
    from ..compile.cache.entry import Entry

_usage_logged = threading.Event()


@dataclass(frozen=True)
class Specialised:
    """One entry of the plan cache.

    Attributes:
        plan: what runs.
        request, result: what was compiled, and what came of it.
        seconds: how long that took.
    """

    plan: Plan
    request: CompileRequest
    result: CompileResult
    seconds: float


@dataclass(frozen=True)
class KeyedState:
    """What a spec-keyed executor holds (R2.16).

    Attributes:
        graph: IR text of the graph as imported.
        fallback: the unspecialised plan, None if it was never needed.
        plans: every (spec, plan) pair; as many as there were cache misses.
    """

    graph: str
    fallback: Plan | None
    plans: Mapping[ArgumentSpec, Plan]


class KeyedExecutor:
    """Runs one graph on plans looked up by `ArgumentSpec`.

    Args:
        module: the graph, as imported.
        options: per-function settings; the fusion strategy plays no part here.
        depths: in how many containers each of the first inputs was passed.
    """

    def __init__(self, module: Module, options: Options, depths: Sequence[int] = ()) -> None:
        self.module = module
        self.options = options
        self.optimize = knobs.optimize  # kept for good, as which executor a graph gets is (A3)
        self.recipe = compile_recipe(module.main, depths)
        self.counters: Counters = new_counters(self)
        self.counters.executors_constructed += 1
        self.work = WorkLog(self.counters)
        self.input_names: tuple[str, ...] = ()  # what the user calls them, where that is known
        self.notes: list[str] = []  # what the importer has to say about the graph
        self._arity = len(module.main.inputs)
        self._lock = ForkLock(self._reset)
        self._reset()

    def _reset(self) -> None:
        self.cache: dict[ArgumentSpec, Specialised] = {}
        self.reasons: list[Reason] = []
        self.device_failure = ""  # why no kernel of a device is tried any more
        self.current: Specialised | None = None
        self._failed: set[ArgumentSpec] = set()
        self._fallback: Plan | None = None
        self._pending: dict[ArgumentSpec, Pending] = {}

    # --- running ------------------------------------------------------------------------------

    def run(self, inputs: list, into: Destinations | None = None) -> list:
        """Outputs for the last inputs given; they share memory with no input (R2.3).

        Raises ArgumentError if there are fewer inputs than the graph has.
        """
        if len(inputs) != self._arity:
            if len(inputs) < self._arity:
                raise ArgumentError(
                    f"{self.options.name} needs {self._arity} inputs, {len(inputs)} given"
                )
            inputs = inputs[len(inputs) - self._arity :]
        self.count_invocation()
        return run_plan(self.plan(inputs), inputs, into)

    def count_invocation(self) -> None:
        """Count a run, traced ones included; the first of the process is logged (R2.3)."""
        if not _usage_logged.is_set():
            _usage_logged.set()
            log("api-usage", self.options.name, "the spec-keyed executor is in use")
        self.counters.invocations += 1

    def plan(self, inputs: Sequence[Any]) -> Plan:
        """The plan for these inputs; compiled if their spec is new, under the lock (R2.6).

        Raises StrictFusionError where `strict_fusion` asks for what cannot be done.
        """
        if not self.optimize:
            return self.fallback_plan()
        spec = self.recipe.spec(inputs)
        with self._lock:
            found = self.cache.get(spec)
            if found is not None:
                self.counters.cache_hits += 1
                self.current = found
                return found.plan
            if spec in self._failed:
                return self.fallback_plan()
            strict = self.options.strict or is_strict()
            if self.options.background and not strict:
                return self._meanwhile(spec, inputs)
            start = time.perf_counter()
            try:
                with compiler_errors("specialising the graph"):
                    made = self._specialised(spec, inputs, strict)
            except (StrictFusionError, KnobError):
                raise
            except ProfuseError as error:
                self.work.note("failed", time.perf_counter() - start, self.options.name, error.what)
                if strict:
                    raise refused(self.options.name, error) from error
                self._remember_failure(spec, error)
                return self.fallback_plan()
            if (pending := self._pending.pop(spec, None)) is not None:
                pending.cancel()
            self.cache[spec] = self.current = made
            self.counters.cache_misses += 1
            return made.plan

    def _remember_failure(self, spec: ArgumentSpec, error: ProfuseError) -> None:
        """Neither entry nor miss (R2.6); the spec is remembered, or each call would fail."""
        self._failed.add(spec)
        self.counters.compile_failures += 1
        self.reasons.append(Reason.of_error(Kind.NOT_COMPILED, error, subject=f" for {spec}"))
        log("compile-failed", self.options.name, str(error), spec=str(spec))

    def fallback_plan(self) -> Plan:
        """The graph after the required passes alone, built once (R2.5)."""
        with self._lock:
            if self._fallback is None:
                module = self._required()
                adapt = self.options.processor.adapter(module)
                self._fallback = evaluated_plan(
                    "no-opt", module, self.options.name, self._count_op, adapt
                )
                log("tier", self.options.name, "runs op by op", tier="no-opt")
            return self._fallback

    def _required(self) -> Module:
        if self.options.background:
            return self.module  # which tier 0 can run: no call waits for a worker
        try:
            with compiler_errors("running the required passes"):
                module = with_input_types(self.module, [None] * self._arity)
                return self._compile(self._request(module, "required")).module
        except ProfuseError as error:
            self.counters.compile_failures += 1
            self.reasons.append(Reason.of_error(Kind.AS_IMPORTED, error))
            log("compile-failed", self.options.name, str(error))
            return self.module

    def _count_op(self) -> None:
        self.counters.evaluated_ops += 1

    # --- compiling ----------------------------------------------------------------------------

    def _specialised(self, spec: ArgumentSpec, inputs: Sequence[Any], strict: bool) -> Specialised:
        """Compile the graph for one spec (R2.10), on this call."""
        request, differentiated = self._asked(spec, inputs)
        start = time.perf_counter()
        result = self._compile(request)
        with rest_of(LINK, result.seconds):
            if strict:
                check_strict(result.module, result.failures, self.options.name)
            linked = self._link(result)
        seconds = time.perf_counter() - start
        self.work.note_plan(result.found_in, seconds, self.options.name, f"plan for {spec}")
        return self._made(spec, request, linked, seconds, differentiated)

    def _asked(self, spec: ArgumentSpec, inputs: Sequence[Any]) -> tuple[CompileRequest, bool]:
        """What to compile for a spec, and whether the graph has to be differentiated."""
        types = self.recipe.types(spec)
        differentiated = needs_gradient(self.module, types)
        before, after = registered()
        pipeline = keyed_pipeline(
            knobs.min_fusion_size, knobs.max_fusion_values, knobs.max_fusion_ops,
            *size_hints(inputs),
            fuse=not differentiated, before=before, after=after,
        )  # fmt: skip
        return self._request(with_input_types(self.module, types), pipeline), differentiated

    def _made(
        self, spec: ArgumentSpec, request: CompileRequest, linked: Linked, seconds: float,
        differentiated: bool,
    ) -> Specialised:  # fmt: skip
        """The entry for a linked plan, with what is to be said of it."""
        result = linked.result
        self.reasons += linked.reasons
        if differentiated:
            refuse(Reason(Kind.GRADIENTS), self.counters, self.reasons, self.options.name)
        self.counters.compiles += 1
        log(
            "compile", self.options.name, f"new spec: {spec}", seconds,
            **about(result),
        )  # fmt: skip
        return Specialised(linked.plan, request, result, seconds)

    def _compile(self, request: CompileRequest) -> CompileResult:
        return compile_now(request, self.counters, background=self.options.background)

    def _meanwhile(self, spec: ArgumentSpec, inputs: Sequence[Any]) -> Plan:
        """Have a spec compiled elsewhere, unless it is; until it is there, run op by op."""
        pending = self._pending.get(spec)
        if pending is None or pending.is_lost:
            try:
                with compiler_errors("asking for the specialised graph"):
                    self._submit(spec, inputs)
            except KnobError:
                raise
            except ProfuseError as error:
                self._remember_failure(spec, error)
        return self.fallback_plan()

    def _submit(self, spec: ArgumentSpec, inputs: Sequence[Any]) -> None:
        request, differentiated = self._asked(spec, inputs)

        def swap(pending: Pending, made: Linked | ProfuseError) -> None:
            self._arrive(spec, differentiated, pending, made)

        pending = Pending.submitted(request, self._link, swap, self._lock)
        if pending is not None:
            self._pending[spec] = pending

    def _arrive(
        self, spec: ArgumentSpec, grad: bool, pending: Pending, made: Linked | ProfuseError
    ) -> None:
        """Cache what was compiled elsewhere, unless it is obsolete; the lock is held."""
        if self._pending.get(spec) is not pending:
            return
        del self._pending[spec]
        pending.report(self.counters, self.reasons)
        if isinstance(made, ProfuseError):
            self._remember_failure(spec, made)
            return
        entry = self._made(spec, pending.request, made, pending.seconds, grad)
        self.cache[spec] = self.current = entry
        self.counters.cache_misses += 1

    def _request(self, module: Module, pipeline: str) -> CompileRequest:
        return make_request(module.to_mlir(), pipeline, self.options)

    def _link(self, result: CompileResult) -> Linked:
        """Load kernels, and put an evaluator on the other side of each guard."""
        return link(
            result, self.counters, self.options, lambda f: self._evaluated(f, result.module)
        )

    def _evaluated(self, name: str, module: Module) -> Callable[[list], list]:
        """The other side of a guard, op by op; the first time is logged."""
        adapt = self.options.processor.adapter(module)
        evaluator = Evaluator(module.functions[name], module, on_op=self._count_op, adapt=adapt)
        told = threading.Event()

        def run(inputs: list) -> list:
            if not told.is_set():
                told.set()
                shapes = [getattr(value, "shape", ()) for value in inputs]
                reason = "sizes or layout do not fit the kernel: runs op by op"
                log("guard-miss", self.options.name, reason, group=name, shapes=shapes)
            return [own(out, inputs) for out in evaluator(inputs)]

        return run

    # --- state and life cycle -----------------------------------------------------------------

    @property
    def tier(self) -> str:
        """``"optimized"`` once a plan was compiled, else ``"no-opt"``."""
        return "optimized" if self.cache else "no-opt"

    def compiled(self) -> list[Specialised]:
        """Every cached plan, in the order of compilation."""
        with self._lock:
            return list(self.cache.values())

    def debug_state(self) -> KeyedState:
        """A snapshot of graph and plans (R2.16)."""
        with self._lock:
            plans = {spec: made.plan for spec, made in self.cache.items()}
            return KeyedState(self.module.to_mlir(), self._fallback, MappingProxyType(plans))

    def under_way(self) -> list[Pending]:
        """Compiles that run elsewhere."""
        with self._lock:
            return [p for p in self._pending.values() if not p.is_lost]

    def _cancel(self) -> None:
        for pending in self._pending.values():
            pending.cancel()

    def retire(self, into: Counters) -> None:
        """Leave the counts to another object; nobody will call this executor again."""
        with self._lock:
            self._cancel()
            absorb(into, self.counters)

    def flush(self) -> None:
        """Forget all plans; the next call compiles anew."""
        with self._lock:
            self._cancel()
            self._reset()
            log("flush", self.options.name, "asked for by the user")

    def entries(self) -> list[Entry]:
        """For a saved file: nothing, as code is looked up there for graphs with profiles only."""
        return []

    def chain(self) -> Iterator[KeyedExecutor]:
        """Itself: behind its guards are no executors."""
        yield self


def size_hints(inputs: Sequence[Any]) -> tuple[str, str]:
    """Axes of size 1 and C-contiguous inputs, as `assume-sizes` takes them.

    They choose what guards ask for and never what is computed.
    """
    types = {
        k: type_ for k, v in enumerate(inputs)
        if isinstance(v, (np.ndarray, DeviceTensor)) and isinstance(type_ := type_of(v), TensorType)
    }  # fmt: skip
    units = [
        f"{k}.{axis}" for k, t in types.items() for axis, d in enumerate(t.shape or ()) if d == 1
    ]
    contiguous = [str(k) for k, t in types.items() if t.strides == "contiguous"]
    return ":".join(units), ":".join(contiguous)
