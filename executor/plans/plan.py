"""A callable that runs a graph, with its description."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.program import Module
from ...dialect.ir.types import TensorType
from ...dialect.ops.speculation import CallFallback
from ..interpret.evaluate import Adapt, own
from ..settings.events import Counters
from .guard import PlanGuard
from .kernel_call import native_kernel
from .plan_steps import PlanSteps, plan_steps
from .python_source import PythonSource, Runner

FallbackMaker = Callable[[str, Union[tuple[TensorType, ...], None]], Callable[[list], list]]


@dataclass
class Plan:
    """A callable that runs a graph, with its description.

    Attributes:
        kind: ``"profiling"``, ``"compiling"``, ``"optimized"``, ``"simple"`` (depth 0) or
            ``"no-opt"``.
        run: list of inputs -> list of outputs. An optimised plan takes `Destinations.direct` as a
            second argument.
        fresh: per output, True if it can never share memory with an input.
        guards: the guards, in order of execution.
        source: Python source of an optimised plan, for people to read.
        graph: the graph that the plan runs.
        name: name of the function that the plan runs (R1.49).
        kernels: fusion function name -> callable.
        counters: the counters of the executor.
        steps: the steps of an optimised plan.
        donations: pairs (output, input): the output may be written into the input's memory.
        sole: that holds for arrays which nobody but the list of inputs holds, not for all.
        graphs: what runs the differentiable subgraphs, a `DiffOp` each.
        own: makes of an output that may share memory with an input one that shares none.
        ref: weak reference to this plan, for `last_executed_graph`.
    """

    kind: str
    run: Callable[..., list]
    fresh: tuple[bool, ...]
    guards: list[PlanGuard] = field(default_factory=list)
    source: str = ""
    graph: Module | None = None
    name: str = ""
    kernels: dict[str, Runner] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters, repr=False, compare=False)
    steps: PlanSteps | None = None
    donations: tuple[tuple[int, int], ...] = ()
    sole: bool = False
    graphs: tuple[Any, ...] = ()
    own: Callable[[Any, Sequence[Any]], Any] = own
    ref: weakref.ref[Plan] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.ref = weakref.ref(self)


class _Plans:
    """Counts changes of plans in this process, so that callers can notice a new plan cheaply."""

    count = 0


PLANS = _Plans()


def build_plan(
    module: Module,
    kernels: dict[str, Runner],
    fallback: FallbackMaker,
    counters: Counters,
    donated: Sequence[int] = (),
    adapt: Adapt | None = None,
    graphs: Mapping[str, Any] | None = None,
    *,
    on_tape: bool = False,
    taken: bool = False,
) -> Plan:
    """Generate the Python function of an optimised module.

    Args:
        module: decoded optimised graph.
        kernels: fusion function name -> callable on the group's operands, which returns one value,
            or a tuple if the group has several results.
        fallback: (name of a fallback function, types that the guard before it asks for; None = no
            guard) -> callable on a list of operands.
        counters: the counters that the generated code increments.
        donated: indices of inputs whose memory the plan may reuse for results.
        adapt: see `Evaluator`; applied to ops outside of kernels.
        graphs: name of the forward half of a differentiable subgraph -> what runs the subgraph.
        taken: the inputs come from an iterator that lets go of each, and so does the plan.
        on_tape: values may be arrays of the tape, whose flags quick comparisons do not ask for.
    """
    native = {name: native_kernel(kernel) for name, kernel in kernels.items()}
    abis = {name: kernel[0].abi for name, kernel in native.items() if kernel is not None}
    steps = plan_steps(module.main, abis, donated, taken=taken)
    guarded = {guard.fallback: guard.types for guard in steps.guards}
    fallbacks = {callee: fallback(callee, guarded.get(callee)) for callee in module.main.callees(CallFallback)}
    python = PythonSource(steps, kernels, fallbacks, counters, adapt, graphs or {})
    python.is_quick = not on_tape
    run = python.function()
    return Plan(
        "optimized",
        run,
        tuple(o in python.fresh for o in module.main.outputs),
        steps.guards,
        python.source,
        module,
        module.main.name,
        kernels,
        steps=steps,
        donations=steps.donations,
        graphs=tuple((graphs or {}).values()),
    )
