"""Which executor a graph gets: the one place that reads the modes for a new graph (R1.2, R2.1).

The modes differ in when they are read. ``executor_mode`` counts when a graph is made, and that
graph keeps what it got. ``profiling_mode`` counts at each request for a plan too: an executor that
profiles runs its graph as it is for as long as the mode is off (R1.8, in `Executor.plan`).
"""

from __future__ import annotations

from ..dialect.program import Module
from .engine import Executor, Options
from .knobs import knobs


def make_executor(module: Module, options: Options) -> Executor:
    """The executor of a graph made now; a graph is made at the first call that needs it."""
    return Executor(module, options, profiles=knobs.executor_mode)
