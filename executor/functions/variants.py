"""The traced graphs of one jitted function, each with its executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ...dialect.dataclass import dataclass
from ...dialect.importers.tracing.pytree import TreeDef
from ...dialect.importers.tracing.tracer import Trace
from ...dialect.reasons import Kind, Reason
from ..memory.output_pool import unreadable
from ..tiers.choice import AnyExecutor

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..dispatch.arguments import Arguments


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
        takes_tape: arrays of the tape have been among the arguments of a call.
    """

    trace: Trace
    executor: AnyExecutor
    key: Key
    calls: int = 0
    used: int = 0
    takes_tape: bool = False
    counts_calls: ClassVar[bool] = True

    @property
    def results(self) -> TreeDef:
        """The structure of the results."""
        return self.trace.out_tree

    def arguments(
        self, *, first: int = 0, exchange: Exchange | None = None, on_tape: bool = False
    ) -> Arguments:
        """The arguments of a call of emitted code; see `dispatch.dispatcher.Graph`."""
        from ..dispatch.arguments import arguments_of
        from ..dispatch.conditions.baked import baked_tests

        trace = self.trace
        held = list(zip(trace.captured, trace.held, strict=True))
        found = arguments_of(*self.key, held, first=first, exchange=exchange, on_tape=on_tape)
        found.tests += baked_tests(trace.guards, found.values)
        return found

    def note_copies(self) -> None:
        """Note, once, which captured arrays each call copies, and why."""
        names = argument_names(self.trace)[len(self.trace.kinds) :]
        for name, array in zip(names, self.trace.captured, strict=True):
            why = unreadable(array)
            reason = Reason(Kind.COPIED, subject=name, detail=why or "")
            if why:
                self.executor.note_slower(reason)
