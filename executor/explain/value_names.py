"""Names for the values of a specialised graph in the user's terms.

A fallback is a graph of its own, whose inputs are values of the graph around it: `Naming` follows
them outwards, so that one array has one name, and one identity, on every level of the chain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ...dialect.dataclass import dataclass
from ...dialect.ir.program import Instr, Module
from ...dialect.ops.speculation import CallFallback, FusionGroup, Guard
from ..plans.guard import PlanGuard
from ..plans.plan import Plan
from ..tiers.profiling import Executor


@dataclass(frozen=True, slots=True)
class ValueSource:
    """The origin of a value.

    Attributes:
        key: equal for the same value on all levels of a fallback chain.
        name: of the user's argument; "" for a computed value.
        made_by: how a computed value is made, e.g. ``"matmul at model.py:12"``.
    """

    key: Hashable
    name: str = ""
    made_by: str = ""

    def label(self, operand: int) -> str:
        """``x``, or ``operand 1 (matmul at model.py:12)``."""
        if self.name:
            return self.name
        return f"operand {operand} ({self.made_by})" if self.made_by else f"operand {operand}"


class Naming:
    """Sources of the values of one executor's optimised graph.

    Args:
        executor: the executor.
        plan: its optimised plan.
        inputs: sources of the graph's inputs; None = it is the outermost graph.
    """

    def __init__(self, executor: Executor, plan: Plan, inputs: Sequence[ValueSource] | None = None) -> None:
        assert plan.graph is not None
        self._of: dict[int, ValueSource] = {}
        self._calls: dict[str, Instr] = {}
        main, names = plan.graph.main, executor.input_names
        sources = (
            inputs
            if inputs is not None
            else [
                ValueSource((id(executor), k), names[k] if k < len(names) else f"input {k}")
                for k in range(len(main.inputs))
            ]
        )
        self._of.update(zip(main.inputs, sources, strict=True))
        for instr in main.body.walk():
            self._define(executor, plan.graph, instr)

    def _define(self, executor: Executor, graph: Module, instr: Instr) -> None:
        name = instr.op.name
        if issubclass(instr.op, Guard):
            for alias, value in zip(instr.results, instr.operands, strict=False):
                self._of[alias] = self.source(value)
            return
        if instr.op is CallFallback:
            self._calls[instr.attrs["callee"]] = instr
        loc = f" at {instr.loc}" if instr.loc is not None else ""
        made_by = f"{_group_in(instr) or name}{loc}"
        for result in instr.results:
            self._of[result] = ValueSource((id(executor), "value", result), "", made_by)

    def source(self, value: int) -> ValueSource:
        """The origin of a value."""
        return self._of.get(value) or ValueSource(("block argument", value))

    def inputs_of(self, fallback: str) -> list[ValueSource] | None:
        """Sources of a fallback's inputs; None if the graph does not call it."""
        call = self._calls.get(fallback)
        return None if call is None else [self.source(o) for o in call.operands]


def _group_in(instr: Instr) -> str:
    """The group whose results a guarded ``if`` returns; "" for any other op."""
    for block in instr.blocks:
        for inner in block.instrs:
            if issubclass(inner.op, FusionGroup):
                return f"result of @{inner.attrs['callee']}"
    return ""


@dataclass(frozen=True)
class NamedGuard:
    """One guard of a chain, with the sources of the values that it checks.

    Attributes:
        executor: the executor of its plan.
        guard: the guard.
        sources: the sources of the values that it checks, in order.
        level: number of fallbacks around it; 0 = outermost executor.
    """

    executor: Executor
    guard: PlanGuard
    sources: tuple[ValueSource, ...]
    level: int

    def labels(self) -> list[str]:
        """The label of each checked value, in the user's terms."""
        return [source.label(k) for k, source in enumerate(self.sources)]


def guards_of(executor: Executor, inputs: Sequence[ValueSource] | None = None, level: int = 0) -> Iterator[NamedGuard]:
    """Every guard of an executor and of the fallbacks below it, outermost first."""
    plan = executor.optimized
    if plan is None or plan.graph is None or plan.kind != "optimized":
        return
    naming = Naming(executor, plan, inputs)
    for guard in plan.guards:
        sources = tuple(naming.source(o) for o in guard.operands)
        yield NamedGuard(executor, guard, sources, level)
    for name, child in tuple(executor.fallbacks.items()):
        child_inputs = naming.inputs_of(name)
        if child_inputs is not None:
            yield from guards_of(child, child_inputs, level + 1)
