"""Plans that run a graph op by op: the graph as imported, or the graph with observers."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...dialect.ir.program import Module
from ..interpret.evaluate import Adapt, Evaluator
from ..interpret.loop_limit import LIMITS, SoonerInPython, has_rounds
from ..interpret.record import Record, RunRecord
from .plan import Plan


def evaluated_plan(kind: str, module: Module, name: str, on_op: Callable[[], None], adapt: Adapt | None = None) -> Plan:
    """A plan that evaluates a graph; `Evaluator` explains ``on_op`` and ``adapt``.

    Where a `Limit` holds, a graph with loops raises SoonerInPython.
    """
    evaluator = Evaluator(module.main, module, on_op=on_op, adapt=adapt)
    run: Callable[[list], list] = evaluator
    if has_rounds(module):

        def run(inputs: list) -> list:
            if LIMITS.current is not None:
                raise SoonerInPython
            return evaluator(inputs)

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
    A run whose loops end at a `Limit` has seen enough of types, and raises SoonerInPython.
    """
    module = record.module

    def run(inputs: list) -> list:
        start, frame, limit = time.perf_counter(), RunRecord(), LIMITS.current
        if limit is not None:
            limit.begin()
        try:
            outputs = Evaluator(module.main, module, frame, on_op, adapt)(inputs)
        except Exception:
            if limit is None or not limit.over:
                raise
            # What has been computed of the rounds there were need not be right.
        on_run(inputs, time.perf_counter() - start)
        record.finish(frame)
        if limit is not None and limit.over:
            raise SoonerInPython
        return outputs

    return Plan("profiling", run, (False,) * len(module.main.outputs), graph=module, name=name)
