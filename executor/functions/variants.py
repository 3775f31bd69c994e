"""The traced graphs of one jitted function, each with its executor."""

from __future__ import annotations

from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.importers.tracing.pytree import TreeDef
from ...dialect.importers.tracing.tracer import Trace
from ...dialect.reasons import Kind, Reason
from ..memory.output_pool import unreadable
from ..tiers.choice import AnyExecutor


def argument_names(trace: Trace) -> tuple[str, ...]:
    """The user's name for each input of a traced graph."""
    names = (name.replace("'", "", 2) for name in trace.names)
    return (*names, *(f"captured array {k}" for k in range(len(trace.captured))))


Key = tuple[TreeDef, tuple[Any, ...]]  # key of a graph: argument structure, kinds of leaves


@dataclass(eq=False)
class Variant:
    """One trace and its executor.

    Attributes:
        trace: the trace.
        executor: the executor of the traced graph.
        key: key of the calls that the trace serves.
        calls: the executor's number of calls when `_make_room` last looked.
        used: number of the latest run of `_make_room` that found new calls.
    """

    trace: Trace
    executor: AnyExecutor
    key: Key
    calls: int = 0
    used: int = 0

    def note_copies(self) -> None:
        """Note, once, which captured arrays each call copies, and why."""
        names = argument_names(self.trace)[len(self.trace.kinds) :]
        for name, array in zip(names, self.trace.captured, strict=True):
            why = unreadable(array)
            reason = Reason(Kind.COPIED, subject=name, detail=why or "")
            if why:
                self.executor.note_slower(reason)
