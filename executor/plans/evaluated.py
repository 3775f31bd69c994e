"""Plans that run a graph op by op: the graph as imported, or the graph with observers."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...dialect.ir.program import Module
from ..interpret.evaluate import Adapt, Evaluator
from ..interpret.record import Frame, Record
from .plan import Plan


def evaluated_plan(
    kind: str, module: Module, name: str, on_op: Callable[[], None], adapt: Adapt | None = None
) -> Plan:
    """A plan that evaluates a graph; `Evaluator` explains ``on_op`` and ``adapt``."""
    run = Evaluator(module.main, module, on_op=on_op, adapt=adapt)
    return Plan(kind, run, (False,) * len(module.main.outputs), graph=module, name=name)


def profiling_plan(
    record: Record,
    name: str,
    on_op: Callable[[], None],
    on_run: Callable[[list, float], None],
    adapt: Adapt | None = None,
) -> Plan:
    """A plan whose runs are recorded (R1.11).

    ``on_run`` is called with the inputs and the seconds of each run before the record counts it.
    """
    module = record.module

    def run(inputs: list) -> list:
        start, frame = time.perf_counter(), Frame()
        outputs = Evaluator(module.main, module, frame, on_op, adapt)(inputs)
        on_run(inputs, time.perf_counter() - start)
        record.finish(frame)
        return outputs

    return Plan("profiling", run, (False,) * len(module.main.outputs), graph=module, name=name)
