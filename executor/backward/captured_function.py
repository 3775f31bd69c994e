"""A captured run as a function: what reports and explanations show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, SupportsIndex

from ...dialect.ir.device import HOST
from ...dialect.ir.program import Module
from .. import explain
from ..functions.function import GraphFunction
from ..functions.mlir_source import MlirSource
from ..plans.plan_options import Options
from ..tiers.choice import AnyExecutor

if TYPE_CHECKING:
    from ..explain.state import ExecutorState
    from .emitted import EmittedRuns

_TIERS = ("profiling", "compiling", "no-opt", "simple", "optimized")  # what is told of sections


class BackwardFunction(GraphFunction):
    """A captured run as a function, for reports and explanations; runs call its executors.

    Args:
        about: says why the run was captured, and what calls code of users where.
    """

    def __init__(self, module: Module, options: Options, about: Sequence[str]) -> None:
        self._about = list(about)
        self._parts: list[AnyExecutor] = []
        self._per_run = 1
        self._emitted: list[EmittedRuns] = []
        source = MlirSource(module, options)
        self.executor = source.executor(HOST, options)
        super().__init__(source, options)
        self.run = self._router.graph_calls.runs.run

    def consists_of(self, parts: Sequence[AnyExecutor], per_run: int) -> None:
        """Have the executors of sections be those of this function; ``per_run``: their calls."""
        self._parts, self._per_run = list(parts), per_run

    def emits(self, runs: EmittedRuns) -> None:
        """Note that there may be emitted code."""
        self._emitted.append(runs)

    def state(self) -> ExecutorState:
        """Tier, specialisations, counters and reasons; whether emitted code serves runs.

        Of a graph in sections the tier is the one that is least far. Each run is one call.
        """
        state = super().state()
        emitted = any(runs.call is not None for runs in self._emitted)
        if not self._parts:
            return replace(state, emitted=emitted)
        tier = min((e.tier for e in self._parts), key=_TIERS.index)
        counters = {**state.counters, "calls": state.counters["calls"] // self._per_run}
        return replace(state, tier=tier, counters=MappingProxyType(counters), emitted=emitted)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple:
        """Pickle and copy the graph only, without profiles and plans."""
        return BackwardFunction, (self.module, self._options, self._about)

    def _executors(self) -> list[AnyExecutor]:
        return [*self._parts, *super()._executors()] if self._parts else super()._executors()

    def _explained(self, executors: list[AnyExecutor]) -> list[str]:
        own = executors[: len(self._parts)] or executors
        return [explain.explained(e, e.options.name) for e in own]

    def _remarks(self) -> list[str]:
        return self._about
