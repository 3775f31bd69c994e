"""Keeps the builtin of a jitted function up to date.

The builtin is a callable made of emitted machine code (see docs/dispatch.md). The modules that emit
it are loaded when the first builtin is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

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
    from ...dialect.importers.numpy.tracing.pytree import TreeDef
    from ..cuda.exchange.dlpack_exchange import Exchange
    from .arguments import Arguments
    from .attach import Made
    from .entry import Entry

Chain = list[tuple[AnyExecutor, Plan]]


class Graph(Protocol):
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
        """Whether arrays of the tape have been among the arguments of a call."""
        ...

    @property
    def counts_calls(self) -> bool:
        """Whether the executor counts its calls, and not what calls it."""
        ...

    def arguments(self, *, first: int, exchange: Exchange | None, on_tape: bool) -> Arguments:
        """The arguments of a call, from position ``first`` on, with the tests for them.

        Raises Refused for arguments that only the Python dispatcher can take.
        """
        ...


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
    """

    graph: Graph
    chain: Chain
    kinds: int = 0
    tape: bool = False
    halves: list[Chain] | None = None


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

    def __init__(
        self, name: str, slow: Callable[..., Any], *, into: bool = False, asks: bool = False
    ) -> None:
        self._name, self.slow, self._into, self._asks = name, slow, into, asks
        self.reasons: dict[str, None] = {}
        self._lock = ForkLock()  # held while code is emitted; calls take no lock
        self._made: Made | None = None
        self._served: list[Served] = []
        self._clock = 0  # the value of the entry's clock when misses were last added up

    @property
    def entry(self) -> Entry | None:
        """The builtin and its table; None while Python dispatches the calls."""
        made = self._made
        return made.entry if made else None

    @property
    def call(self) -> Callable[..., Any] | None:
        """The builtin; None while Python dispatches the calls."""
        made = self._made
        return made.entry.call if made else None

    @property
    def current(self) -> AnyExecutor | None:
        """The outermost executor of the last call; None if that call ran in Python."""
        made = self._made
        number = made.entry.current if made else 0
        return made.executors[number - 1] if made and number else None

    def forget_current(self) -> None:
        """Note that the last call ran in the Python dispatcher."""
        made = self._made
        if made:
            made.entry.forget()

    def add_up_misses(self) -> None:
        """Add the misses of emitted code to the guards, before Python code counts another miss."""
        made = self._made
        if made and made.entry.clock != self._clock:
            self._clock = made.entry.clock
            for counts in made.counts:
                counts.add_up()

    def _clock_now(self) -> int:
        """The clock of the present builtin, with which the next one goes on."""
        self.add_up_misses()
        return self._clock

    def needs(self, graphs: Sequence[Graph]) -> bool:
        """Whether `refresh` has something to do."""
        return knobs.native_dispatch and self._found(graphs) != self._served

    def _found(self, graphs: Sequence[Graph]) -> list[Served]:
        """The calls of graphs that emitted code may serve; those that are noted come last."""
        out = []
        usable = [graph for graph in graphs if unserved(graph) is None]
        for graph in usable:
            on_host, chain = graph.executor.options.processor.is_host, _chain(graph.executor)
            if chain and (on_host or not self._into):  # `into` is for host arrays
                out.append(Served(graph, chain, 0 if on_host else kinds_met()))
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

    def refresh(self, graphs: Sequence[Graph]) -> None:
        """Replace the builtin if the function has other plans than those that the builtin serves.

        Args:
            graphs: the graphs of the function.
        """
        with self._lock:
            self._refresh(graphs)

    def _refresh(self, graphs: Sequence[Graph]) -> None:
        found = self._found(graphs)
        if found == self._served or not knobs.native_dispatch:
            return
        self._served = found
        if not found:
            self.add_up_misses()
            self._made = None
            return
        start = time.perf_counter()
        made: Made | None
        try:
            with compiler_errors("emitting the dispatcher"):
                made = loaded("executor.dispatch.attach").made_of(
                    found, self.slow, self._clock_now, self._refuse, into=self._into,
                    asks=self._asks,
                )  # fmt: skip
        except ProfuseError as error:
            self._refuse(error.what)
            made = None
        self._made = made
        if made is not None:
            seconds, count = time.perf_counter() - start, len(made.counts)
            log("dispatch", self._name, "calls run in emitted code", seconds, specialisations=count)

    def _refuse(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons[reason] = None
            log("dispatch-refused", self._name, reason)


def unserved(graph: Graph) -> str | None:
    """Why calls of a graph can never run in emitted code; None = they can."""
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
