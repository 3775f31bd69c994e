"""The spec-keyed executor: one plan per dtypes and ranks of the arguments, compiled on first use.

It serves graphs that were made while profiling mode was off (R2.1). It does not profile: it
compiles plans for types without sizes, so every size in a plan is a symbol (R2.2 - R2.14, R2.16).
Where a kernel needs more (equal sizes, a layout), the plan contains a guard; if the guard fails,
the unspecialised body runs op by op.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.errors import ArgumentError, ProfuseError
from ...dialect.ir.device import DeviceTensor
from ...dialect.ir.program import Module
from ...dialect.ir.types import TensorType, type_of
from ...dialect.profiling.input_types import with_input_types
from ...dialect.reasons import Kind
from ..arguments.argument_spec import ArgumentSpec, compile_recipe
from ..compile.pending import make_request, pipeline_options
from ..compile.request import CompileRequest, CompileResult, compiler_errors
from ..interpret.evaluate import Evaluator
from ..memory.destinations import Destinations
from ..plans.link import PlanWithFallbacks, Specialised, link, run_plan
from ..plans.plan import Plan
from ..plans.plan_options import Options
from ..settings.differentiation import needs_gradient
from ..settings.events import log
from ..settings.knobs import knobs
from .executor_base import BaseExecutor

if TYPE_CHECKING:
    from ..compile.cache.entry import CacheEntry

_usage_logged = threading.Event()


@dataclass(frozen=True)
class KeyedState:
    """The state of a spec-keyed executor (R2.16).

    Attributes:
        graph: IR text of the graph as imported.
        fallback: the unspecialised plan; None if no call has needed it yet.
        plans: the compiled plan of each spec; every entry was one cache miss.
    """

    graph: str
    fallback: Plan | None
    plans: Mapping[ArgumentSpec, Plan]


class KeyedExecutor(BaseExecutor):
    """Runs one graph with plans that it looks up by `ArgumentSpec`.

    Args:
        module: the graph, as imported.
        options: per-function settings; this executor ignores the fusion strategy.
        depths: for each of the first inputs, the number of containers around it in the call.
    """

    many_plans: ClassVar[Literal[True]] = True
    may_donate = False
    takes_undefined = True  # R2.7
    joins_traces = True
    python_only = "without profiling, plans are looked up by argument spec"

    def __init__(self, module: Module, options: Options, depths: Sequence[int] = ()) -> None:
        super().__init__(options)
        self._module = module
        self.optimize = knobs.optimize  # read once, like the choice of the executor (A3)
        self.recipe = compile_recipe(module.main, depths)
        self.counters.executors_constructed += 1
        self._arity = len(module.main.inputs)
        self._reset()

    def _reset(self) -> None:
        super()._reset()
        self.cache: dict[ArgumentSpec, Specialised] = {}
        self.current: Specialised | None = None
        self._failed: set[ArgumentSpec] = set()
        self._fallback: Plan | None = None

    @property
    def module(self) -> Module:
        """The graph, as imported."""
        return self._module

    # --- running ------------------------------------------------------------------------------

    def run(self, inputs: list, into: Destinations | None = None) -> list:
        """Run the graph; the outputs share memory with no input (R2.3).

        If more inputs are given than the graph has, the graph gets the last ones. Raises
        ArgumentError if too few are given.
        """
        if len(inputs) != self._arity:
            if len(inputs) < self._arity:
                raise ArgumentError(f"{self.options.name} needs {self._arity} inputs, {len(inputs)} given")
            inputs = inputs[len(inputs) - self._arity :]
        self.count_invocation()
        return run_plan(self.plan(inputs), inputs, into)

    def count_invocation(self) -> None:
        """Count a run, also one inside a trace; the process's first one is logged (R2.3)."""
        if not _usage_logged.is_set():
            _usage_logged.set()
            log("api-usage", self.options.name, "the spec-keyed executor is in use")
        self.counters.invocations += 1

    def plan(self, inputs: Sequence[Any]) -> Plan:
        """The plan for these inputs; compiles it, under the lock, if their spec is new (R2.6).

        Raises StrictFusionError if `strict_fusion` holds and the graph cannot be fused as asked.
        """
        if not self.optimize:
            return self.fallback_plan()
        spec = self.recipe.spec(inputs)
        with self._lock:
            specialised = self.cache.get(spec)
            if specialised is not None:
                self.counters.cache_hits += 1
                self.current = specialised
                return specialised.plan
            if spec in self._failed:
                return self.fallback_plan()
            ask = partial(self._asked, spec, inputs)
            if self.options.background and not self._strict:
                # The graph runs op by op until the compile has ended.
                return self._specialise_elsewhere(spec, ask) or self.fallback_plan()
            plan = self._specialise(spec, ask)
            assert plan is not None
            return plan

    def _fail(self, spec: ArgumentSpec, error: ProfuseError) -> Plan:
        """Note a failed compile, which counts neither as an entry nor as a miss (R2.6).

        The spec is remembered, so that later calls do not try the same compile again.
        """
        self._failed.add(spec)
        self._note_failure(Kind.NOT_COMPILED, error, f" for {spec}", spec=str(spec))
        return self.fallback_plan()

    def fallback_plan(self) -> Plan:
        """The plan of the graph after the required passes only; built once (R2.5)."""
        with self._lock:
            if self._fallback is None:
                self._fallback = self._evaluated_plan("no-opt", self._required())
                log("tier", self.options.name, "runs op by op", tier="no-opt")
            return self._fallback

    def _required(self) -> Module:
        if self.options.background:
            return self.module  # tier 0 can run it as it is, and the call waits for no worker
        try:
            with compiler_errors("running the required passes"):
                module = with_input_types(self.module, [None] * self._arity)
                return self._compile(self._request(module, "required")).module
        except ProfuseError as error:
            self._note_failure(Kind.AS_IMPORTED, error)
            return self.module

    # --- compiling ----------------------------------------------------------------------------

    def _asked(self, spec: ArgumentSpec, inputs: Sequence[Any]) -> CompileRequest:
        """The compile request for a spec (R2.10)."""
        types = self.recipe.types(spec)
        options = pipeline_options(self.options, gradients=needs_gradient(self.module, types), strict=self._strict)
        units, contiguous = size_hints(inputs)
        pipeline = replace(options, units=units, contiguous=contiguous).keyed()
        return self._request(with_input_types(self.module, types), pipeline)

    def _told(self, spec: ArgumentSpec, result: CompileResult) -> tuple[str, str]:
        return f"new spec: {spec}", f"plan for {spec}"

    def _adopt(self, spec: ArgumentSpec, request: CompileRequest, new_plan: PlanWithFallbacks, seconds: float) -> Plan:
        linked = new_plan.linked
        # Each spec has halves of its own, under the same names.
        self.halves |= {f"{len(self.cache)}/{name}": half for name, half in new_plan.halves.items()}
        entry = Specialised(linked.plan, request, linked.result, seconds, about=str(spec))
        self.cache[spec] = self.current = entry
        self.counters.cache_misses += 1
        return entry.plan

    def _request(self, module: Module, pipeline: str) -> CompileRequest:
        return make_request(module.to_mlir(), pipeline, self.options)

    def _link(self, result: CompileResult) -> PlanWithFallbacks:
        """Load the kernels, and make an evaluator for the failing side of each guard."""
        graphs, halves = self._halved(result)
        linked = link(
            result,
            self.counters,
            self.options,
            lambda callee, _: self._evaluated(callee, result.module),
            graphs=graphs,
            strict=self._strict,
        )
        self._ready(linked.plan)
        return PlanWithFallbacks(linked, {}, halves)

    def _evaluated(self, name: str, module: Module) -> Callable[[list], list]:
        """A function that runs the failing side of a guard op by op; its first call is logged."""
        adapt = self.options.adapter(module)
        evaluator = Evaluator(module.functions[name], module, on_op=self._count_op, adapt=adapt)
        logged = threading.Event()

        def run(inputs: list) -> list:
            if not logged.is_set():
                logged.set()
                shapes = [getattr(value, "shape", ()) for value in inputs]
                reason = "sizes or layout do not fit the kernel: runs op by op"
                log("guard-miss", self.options.name, reason, group=name, shapes=shapes)
            return [self._own(out, inputs) for out in evaluator(inputs)]

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
        """A snapshot of the graph and the plans (R2.16)."""
        with self._lock:
            plans = {spec: specialised.plan for spec, specialised in self.cache.items()}
            return KeyedState(self.module.to_mlir(), self._fallback, MappingProxyType(plans))

    def entries(self) -> list[CacheEntry]:
        """Entries for a saved file: none, since such files serve only graphs with profiles."""
        return []


def size_hints(inputs: Sequence[Any]) -> tuple[str, str]:
    """The axes of size 1 and the C-contiguous inputs, as options of the pass `assume-sizes`.

    The hints decide which guards a plan has. They never change a result.
    """
    types = {
        k: type_
        for k, v in enumerate(inputs)
        if isinstance(v, (np.ndarray, DeviceTensor)) and isinstance(type_ := type_of(v), TensorType)
    }
    units = [f"{k}.{axis}" for k, t in types.items() for axis, d in enumerate(t.shape or ()) if d == 1]
    contiguous = [str(k) for k, t in types.items() if t.strides == "contiguous"]
    return ":".join(units), ":".join(contiguous)
