"""Which executor a graph gets: the one place that reads the modes for a new graph (R1.2, R2.1).

The modes differ in when they are read. ``executor_mode`` and ``profiling_mode`` are read when a
graph is made, and that graph keeps the executor that it got. ``profiling_mode`` and ``optimize``
are read at each request for a plan, too: an executor that profiles runs its graph op by op for as
long as one of them is off (R1.8, in `Executor.plan`). A spec-keyed executor keeps the ``optimize``
that it was made with (A3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from ...dialect.ir.program import Module
from ..plans.options import Options
from ..settings.knobs import knobs
from .keyed import KeyedExecutor
from .profiling import Executor

AnyExecutor = Union[Executor, KeyedExecutor]


def make_executor(module: Module, options: Options, depths: Sequence[int] = ()) -> AnyExecutor:
    """The executor of a graph made now; a graph is made at the first call that needs it.

    ``depths``: in how many containers each of the first inputs is passed.
    """
    if not knobs.executor_mode:
        return Executor(module, options, profiles=False)
    if not knobs.profiling_mode:
        return KeyedExecutor(module, options, depths)
    return Executor(module, options)
