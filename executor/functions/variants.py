"""The traced graphs of one jitted function, each with its executor."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ...dialect.dataclass import dataclass
from ...dialect.errors import TraceError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.ir.dtypes import BOOL, I64
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.serialize import module_to_json
from ...dialect.ops.queries import Item
from ...dialect.reasons import Kind, Reason
from ...dialect.trees.pytree import TreeDef
from ..memory.offsets import Refused
from ..memory.output_pool import unreadable
from ..routing.graph_trial import GraphTrial
from ..routing.patience import FEW_TRIES
from ..tiers.choice import AnyExecutor

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..dispatch.arguments import CallArguments
    from ..dispatch.dispatcher import Pattern
    from .results import Results
    from .untaped import Untaped


def argument_names(trace: Trace) -> tuple[str, ...]:
    """The user's name for each input of a traced graph."""
    names = (name.replace("'", "", 2) for name in trace.names)
    captured = (f"captured array {k}" for k in range(len(trace.captured)))
    return (*names, *captured, *(f"{draw.method}()" for draw in trace.draws))


Key = tuple[TreeDef, tuple[Any, ...]]  # key of a graph: argument structure, kinds of leaves


_ON_TAPE = "Python runs calls with arrays of the tape: "
_TAKEN = TraceError(_ON_TAPE + "numbers are taken out of arrays, through which no gradient flows")
_OVERWRITTEN = TraceError(_ON_TAPE + "an array is written to under pf.no_grad()")
_EFFECTS = TraceError(_ON_TAPE + "the function changes what was there before the call")
_SWITCHED_ON = TraceError(_ON_TAPE + "the function asks for gradients, and its caller for none")


@dataclass(eq=False)
class Variant:
    """One trace and its executor.

    Attributes:
        trace: the trace.
        executor: the executor of the traced graph.
        key: key of the calls that the trace serves.
        trial: the verdicts on these calls.
        calls: the executor's number of calls when `_make_room` last looked.
        used: number of the latest run of `_make_room` that found new calls.
        takes_tape: arrays of the tape have been among the arguments of a call.
        keeps_byte_order: results may have that of arguments; Python runs calls with foreign ones.
        memory: how results are made of arguments and of what the graph gives; None = they are that.
        patterns: which arguments of calls have been tensors of other libraries: for each leaf, its
            type, or None for anything else.
        is_untaped: calls with arrays of the tape have run as those with plain ones.
        is_copied: the results are copies of what they would be, or share memory with, in Python.
    """

    trace: Trace
    executor: AnyExecutor
    key: Key
    trial: GraphTrial
    calls: int = 0
    used: int = 0
    takes_tape: bool = False
    keeps_byte_order: bool = False
    memory: Results | None = None
    is_untaped: bool = False
    is_copied: bool = False
    patterns: tuple[Pattern, ...] = ()
    counts_calls: ClassVar[bool] = True

    def serves(self, *, plain: bool) -> bool:
        """True for calls whose results are ``plain``, in memory of their own; else for those that share it."""
        if plain:
            return self.memory is None or self.memory.is_plain
        return not self.is_copied

    def off_tape(self) -> TraceError | None:
        """The reason why the graph does not serve calls with arrays of the tape; None if it does."""
        if self.trace.asks_for_gradients and not gradient_mode():
            return _SWITCHED_ON
        return self._off_tape

    @cached_property
    def _off_tape(self) -> TraceError | None:
        main = self.trace.module.main
        items = [i.results[0] for i in main.body.walk() if i.op is Item]
        if any(getattr(main.type_of(v), "dtype", None) not in (BOOL, I64) for v in items):
            return _TAKEN  # constants on the tape, but not in a graph
        if self.trace.overwrites:
            return _OVERWRITTEN
        return _EFFECTS if self.trace.has_effects else None

    @cached_property
    def untaped(self) -> Untaped:
        """The conditions on which calls with arrays of the tape run as those with plain ones."""
        from .untaped import Untaped

        return Untaped(self.trace)

    @property
    def results(self) -> TreeDef:
        """The structure of the results."""
        return self.trace.out_tree

    def arguments(
        self, *, first: int = 0, exchange: Exchange | None = None, on_tape: bool = False, tensors: Pattern = ()
    ) -> CallArguments:
        """The arguments of a call of emitted code; see `dispatch.dispatcher.Graph`."""
        from ..dispatch.arguments import apart_from, arguments_of
        from ..dispatch.conditions.baked import baked_tests
        from ..dispatch.conditions.state_reads import in_state, state_tests

        trace = self.trace
        if self.trial.renewals > FEW_TRIES:
            raise Refused("the objects that the function reads are replaced again and again")
        memory = self.memory
        if self.is_copied and not (first or on_tape):
            raise Refused("its results are in memory of their own, for calls of `into` or on the tape")
        if memory is not None and not memory.is_plain and (trace.has_effects or first or on_tape):
            raise Refused("a result is an argument, or a view of it or of another result")
        if trace.has_effects and (first or on_tape or exchange is not None):
            raise Refused("the function writes to what was there before the call, or draws random numbers")
        if trace.draws and tensors:
            raise Refused("a call with tensors draws random numbers")
        captures = list(zip(trace.captured, trace.held, strict=True))
        slots = list(zip(map(in_state, trace.slots), trace.slot_kinds_held, strict=True))
        ways: dict[str, Any] = {"first": first, "exchange": exchange, "on_tape": on_tape, "tensors": tensors}
        arguments = arguments_of(*self.key, captures, slots=slots, **ways)
        # First: later tests rely on pointers that look-ups of attributes might make stale.
        arguments.tests[:0] = state_tests(trace.reads)
        arguments.tests += baked_tests(trace.guards, arguments.values)
        arguments.tests += apart_from(arguments.generators, trace.generators)
        if trace.sources is not None:
            from ..dispatch.effect_leaf import effects_of

            arguments.writing, arguments.final = effects_of(trace, arguments)
        if memory is not None and exchange is None and not (first or on_tape):
            memory.see_to(arguments, trace.out_tree.leaves)
        if trace.draws:
            from .emitted_draws import draw_in_emitted_code

            draw_in_emitted_code(trace, arguments, self.executor)
        return arguments

    def is_outdated_by(self, trace: Trace) -> bool:
        """True if a trace has the graph of this one, and reads other objects into it."""
        old = self.trace
        return (
            bool(old.reads)
            and not old.draws
            and not trace.draws
            and not old.holds_what_it_held()
            and old.out_tree == trace.out_tree
            and old.guards == trace.guards
            and old.signature() == trace.signature()
            and old.held == trace.held
            and module_to_json(old.module) == module_to_json(trace.module)
        )

    def renewed(self, trace: Trace) -> Variant:
        """The same graph with another trace of it."""
        self.trial.renewals += 1
        return replace(self, trace=trace)

    def note_copies(self) -> None:
        """Note, once, which captured arrays each call copies, and why."""
        names = argument_names(self.trace)[len(self.trace.kinds) :]
        for name, array in zip(names, self.trace.captured, strict=True):
            why = unreadable(array)
            reason = Reason(Kind.COPIED, subject=name, detail=why or "")
            if why:
                self.executor.note_slower(reason)
