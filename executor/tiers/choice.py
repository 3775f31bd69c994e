"""The choice of an executor for a new graph, by the modes that the user has set (R1.2, R2.1).

The modes are read at different times. `make_executor` reads ``executor_mode`` and
``profiling_mode`` when a graph is made, and the graph keeps its executor. `Executor.plan` reads
``profiling_mode`` and ``optimize`` again at each request for a plan: a profiling executor runs its
graph op by op for as long as one of the two is off (R1.8). A spec-keyed executor reads
``optimize`` once, when it is made (A3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from ...dialect.ir.program import Module
from ..plans.plan_options import Options
from ..settings.knobs import knobs
from .profiling import Executor

if TYPE_CHECKING:
    from .keyed import KeyedExecutor

AnyExecutor = Union[Executor, "KeyedExecutor"]


def make_executor(module: Module, options: Options, depths: Sequence[int] = ()) -> AnyExecutor:
    """Make the executor of a new graph.

    Args:
        module: the graph, as imported.
        options: per-function settings.
        depths: for each of the first inputs, the number of containers around it in the call.
    """
    executor: AnyExecutor
    if not knobs.executor_mode:
        executor = Executor(module, options, profiles=False)
    elif not knobs.profiling_mode:
        from .keyed import KeyedExecutor  # loaded where the mode asks for it

        executor = KeyedExecutor(module, options, depths)
    else:
        executor = Executor(module, options)
    executor.make = make_executor
    return executor
