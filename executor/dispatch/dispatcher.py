"""Keeps the builtin of a jitted function up to date.

The builtin is a callable made of emitted machine code (see docs/dispatch.md). The modules that emit
it are loaded when the first builtin is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ...dialect.dataclass import dataclass
from ...dialect.errors import ProfuseError
from ...dialect.ir.device import HOST
from ..arguments.device_kinds import kinds_met
from ..compile.request import compiler_errors
from ..plans.plan import Plan
from ..settings.events import log
from ..settings.fork_gate import loaded
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor

if TYPE_CHECKING:
    from ...dialect.trees.pytree import TreeDef
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..exchange.host_tensors import TensorClass
    from .arguments import CallArguments
    from .attach import AttachedDispatch
    from .loaded_dispatcher import Entry

Chain = list[tuple[AnyExecutor, Plan]]
Pattern = tuple["TensorClass | None", ...]  # for each leaf, the type of a tensor, or None for anything else


class DispatchedGraph(Protocol):
    """A graph whose calls emitted code may serve."""

    @property
    def executor(self) -> AnyExecutor:
        """Its executor."""
        ...

    @property
    def results(self) -> TreeDef:
        """The structure of the results of a call."""
        ...

    @property
    def takes_tape(self) -> bool:
        """True if arrays of the tape have been among the arguments of a call."""
        ...

    @property
    def counts_calls(self) -> bool:
        """True if the executor counts its calls, and not what calls it."""
        ...

    @property
    def patterns(self) -> Sequence[Pattern]:
        """The patterns of arguments that have been tensors of other libraries in host memory."""
        ...

    def arguments(self, *, first: int, exchange: Exchange | None, on_tape: bool, tensors: Pattern) -> CallArguments:
        """The arguments of a call, from position ``first`` on, with the tests for them.

        Raises Refused for arguments that only the Python dispatcher can take.
        """
        ...


class PositionalGraph:
    """A graph whose calls have arrays and numbers of given kinds, by position; a `DispatchedGraph`.

    Attributes:
        kinds: of the arguments.
    """

    takes_tape: ClassVar[bool] = False
    patterns: ClassVar[tuple[Pattern, ...]] = ()
    kinds: tuple[Any, ...] = ()

    def arguments(
        self, *, first: int = 0, exchange: Exchange | None = None, on_tape: bool = False, tensors: Pattern = ()
    ) -> CallArguments:
        """The inputs, by position."""
        from .arguments import flat_arguments

        return flat_arguments(self.kinds, exchange)


@dataclass(frozen=True)
class Served:
    """Calls of a graph that emitted code can serve, by the same plans.

    Attributes:
        graph: the graph.
        chain: the executors of a call with their plans, outermost first.
        kinds: number of device array types seen so far, 0 on the host: a new type needs new code.
        tape: whether arrays of the tape may be among the arguments.
        halves: of calls that are noted on the tape, the chain of the forward half of the subgraph
            of each plan of ``chain``; None = calls are not noted.
        tensors: which arguments are tensors of another library in host memory; () = none is.
    """

    graph: DispatchedGraph
    chain: Chain
    kinds: int = 0
    tape: bool = False
    halves: list[Chain] | None = None
    tensors: Pattern = ()


class Dispatcher:
    """Keeps the builtin of a function up to date with the plans of its specialisations.

    Args:
        name: name of the function.
        slow: the Python dispatcher, called with the same arguments if no specialisation fits.
        into: True = the first argument is the array into which the result is written.
        asks: calls may be plain Python's, of which the Python dispatcher decides.

    Attributes:
        reasons: why plans were left to the Python dispatcher, oldest first.
        slow: the Python dispatcher.
    """

    def __init__(self, name: str, slow: Callable[..., Any], *, into: bool = False, asks: bool = False) -> None:
        self._name, self.slow, self._into, self._asks = name, slow, into, asks
        self.reasons: dict[str, None] = {}
        self._lock = ForkLock()  # held while code is emitted; calls take no lock
        self._made: AttachedDispatch | None = None
        self._served: list[Served] = []
        self._clock = 0  # the value of the entry's clock when misses were last added up

    @property
    def entry(self) -> Entry | None:
        """The builtin and its table; None while Python dispatches the calls."""
        dispatch = self._made
        return dispatch.entry if dispatch else None

    @property
    def call(self) -> Callable[..., Any] | None:
        """The builtin; None while Python dispatches the calls."""
        dispatch = self._made
        return dispatch.entry.call if dispatch else None

    @property
    def current(self) -> AnyExecutor | None:
        """The outermost executor of the last call; None if that call ran in Python."""
        dispatch = self._made
        number = dispatch.entry.current if dispatch else 0
        return dispatch.executors[number - 1] if dispatch and number else None

    def forget_current(self) -> None:
        """Note that the last call ran in the Python dispatcher."""
        dispatch = self._made
        if dispatch:
            dispatch.entry.forget()

    def add_up_misses(self) -> None:
        """Add the misses of emitted code to the guards, before Python code counts another miss."""
        dispatch = self._made
        if dispatch and dispatch.entry.clock != self._clock:
            self._clock = dispatch.entry.clock
            for counts in dispatch.counts:
                counts.add_up()

    def _clock_now(self) -> int:
        """The clock of the present builtin, with which the next one goes on."""
        self.add_up_misses()
        return self._clock

    def needs(self, graphs: Sequence[DispatchedGraph]) -> bool:
        """True if `refresh` has something to do."""
        return knobs.native_dispatch and self._found(graphs) != self._served

    def _found(self, graphs: Sequence[DispatchedGraph]) -> list[Served]:
        """The calls of graphs that emitted code may serve; those that are noted come last."""
        out = []
        usable = [graph for graph in graphs if unserved(graph) is None]
        for graph in usable:
            on_host, chain = graph.executor.options.processor.is_host, _chain(graph.executor)
            if chain and (on_host or not self._into):  # `into` is for host arrays
                out.append(Served(graph, chain, 0 if on_host else kinds_met()))
        if not self._into:
            chains = [(graph, _chain(graph.executor)) for graph in usable if graph.patterns]
            out += [Served(g, chain, tensors=pattern) for g, chain in chains if chain for pattern in g.patterns]
        taped = [graph for graph in usable if graph.takes_tape and not self._into]
        bare = [(graph, _chain(graph.executor)) for graph in taped]
        noted = [
            (graph, *_noted_chain(executor))
            for graph in taped
            for executor in reversed(tuple(graph.executor.noted.values()))  # the latest first
        ]
        out += [Served(graph, chain, tape=True) for graph, chain in bare if chain]
        out += [Served(graph, chain, tape=True, halves=h) for graph, chain, h in noted if chain]
        return out

    def refresh(self, graphs: Sequence[DispatchedGraph]) -> None:
        """Replace the builtin if the function has other plans than those that the builtin serves.

        Args:
            graphs: the graphs of the function.
        """
        with self._lock:
            self._refresh(graphs)

    def _refresh(self, graphs: Sequence[DispatchedGraph]) -> None:
        served = self._found(graphs)
        if served == self._served or not knobs.native_dispatch:
            return
        self._served = served
        if not served:
            self.add_up_misses()
            self._made = None
            return
        start = time.perf_counter()
        dispatch: AttachedDispatch | None
        try:
            with compiler_errors("emitting the dispatcher"):
                dispatch = loaded("executor.dispatch.attach").made_of(
                    served, self.slow, self._clock_now, self._refuse, into=self._into, asks=self._asks
                )
        except ProfuseError as error:
            self._refuse(error.what)
            dispatch = None
        self._made = dispatch
        if dispatch is not None:
            seconds, count = time.perf_counter() - start, len(dispatch.counts)
            log("dispatch", self._name, "calls run in emitted code", seconds, specialisations=count)

    def _refuse(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons[reason] = None
            log("dispatch-refused", self._name, reason)


def unserved(graph: DispatchedGraph) -> str | None:
    """The reason why calls of a graph can never run in emitted code; None = they can."""
    if graph.executor.python_only:
        return graph.executor.python_only
    options = graph.executor.options
    if options.processor.is_host and options.device not in (None, HOST):
        return "each call looks for the device that was asked for"
    return None


def _chain(executor: AnyExecutor | None) -> Chain:
    """An executor and its fallbacks with their settled plans, outermost first.

    Each attribute is read once, because another thread may flush the executors meanwhile.
    """
    chain: Chain = []
    while executor is not None:
        plan = executor.settled
        if plan is None or plan.kind != "optimized":
            break
        chain.append((executor, plan))
        children = tuple(executor.fallbacks.values())
        if executor.settled is not plan:
            break
        executor = children[0] if len(children) == 1 else None
    return chain


def _noted_chain(executor: AnyExecutor | None) -> tuple[Chain, list[Chain]]:
    """The executors of calls that are noted, and the chain of the forward half behind each.

    Both end where a plan is more than one differentiable subgraph, or where its half has not
    settled.
    """
    chain, halves = _chain(executor), []
    for _, plan in chain:
        half = _chain(plan.graphs[0].forward) if len(plan.graphs) == 1 else []
        if not half:
            break
        halves.append(half)
    return chain[: len(halves)], halves
