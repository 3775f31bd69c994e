"""Plans of functions whose ops are device groups, compiled once from the profile of one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import profuse as pf
from profuse.dialect.ir.op import Fusion
from profuse.dialect.mlir.rewrite import body_of, op_class
from profuse.dialect.mlir.typed_values import main_functions
from profuse.dialect.ops.speculation import CudaGroup
from profuse.dialect.passes.base import PASSES, Pass, register_pass
from profuse.dialect.passes.partition.partition import Partition
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.request import CompileRequest, CompileResult
from profuse.executor.interpret.evaluate import Evaluator
from profuse.executor.plans.link import link
from profuse.executor.plans.plan import Plan
from profuse.executor.plans.plan_options import Options
from profuse.executor.settings.events import Counters
from profuse.lowering.target import host_target

PIPELINE = (
    "specialize,functionalize,form-whole-groups,insert-device-guards,erase-types,convert-fallbacks,prepare-kernels"
)


class WholeGroups(Partition[bool]):
    """Everything that can be in one group is."""

    call, prefix = CudaGroup, "cuda_group"

    def may_join(self, n: int, op: Any) -> bool | None:
        cls = op_class(op)
        return True if cls is not None and cls.fusion not in (None, Fusion.NONE) and cls.pure else None

    def joins(self, a: int, b: int) -> bool | None:
        return True

    def is_worth(self, group: int) -> bool:
        classes = [op_class(self.graph.ops[n]) for n in self.groups.members[group]]
        return any(cls is not None and cls.fusion is not Fusion.QUERY for cls in classes)

    def run(self) -> None:
        self.analyse()
        while self.merge_along_values(self.facts):
            pass
        self.outline_groups(self.worthy())


if "form-whole-groups" not in PASSES:

    @register_pass
    @dataclass(frozen=True)
    class FormWholeGroups(Pass):
        """Make device groups of all ops that can be in one."""

        name: ClassVar[str] = "form-whole-groups"

        def run(self, module: Any) -> None:
            for func in main_functions(module):
                WholeGroups(module, func, body_of(func)).run()


@dataclass
class GroupedPlan:
    """A plan with the counts of its run."""

    plan: Plan
    result: CompileResult
    counters: Counters

    def __call__(self, *args: Any) -> Any:
        """The results for arguments: one alone, or a tuple."""
        out = self.plan.run(list(args))
        return out[0] if len(out) == 1 else tuple(out)


def grouped_plan(fn: Callable[..., Any], *args: Any) -> GroupedPlan:
    """The plan of a function, compiled for what one call of it was profiled with.

    Where a guard fails, the body is evaluated op by op.
    """
    f = pf.jit(fn, profiled_runs=1, background=False)
    f(*args)
    return plan_of(f.ir("profiled"), PIPELINE)


def plan_of(text: str, pipeline: str) -> GroupedPlan:
    """The plan of a graph that a pipeline has compiled; see `grouped_plan`."""
    result = compile_graph(CompileRequest(text, pipeline, host_target(), verify_each=True))
    counters = Counters()

    def fallback(callee: str, _: Any) -> Callable[[Sequence[Any]], list]:
        return Evaluator(result.module.functions[callee], result.module)

    linked = link(result, counters, Options(), fallback)
    return GroupedPlan(linked.plan, result, counters)
