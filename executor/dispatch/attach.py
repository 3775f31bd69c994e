"""The builtin of a jitted function: made from the function's settled plans, and replaced with them.

The builtin is a callable made of emitted machine code (see docs/dispatch.md).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import ProfuseError
from ...dialect.ir.device import HOST
from ..arguments.device_kinds import kinds_met
from ..compile.request import compiler_errors
from ..memory import output_pool, thread_block
from ..memory.placement import Refused
from ..plans.kernel_call import native_kernel
from ..plans.last_executed import LAST, RECENT
from ..plans.plan import Plan
from ..plans.processor import backend_of
from ..settings.events import log
from ..settings.fork_lock import ForkLock
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from .arguments import arguments_of
from .conditions.baked import baked_tests
from .counter_table import Settings
from .counts import LeafCounts, Level
from .entry import Entry, make_entry
from .layout import refusal
from .leaf_spec import ArrayValue, HostKernel, Kernel, Leaf
from .reader import leaf_of

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..functions.variants import Variant

Chain = list[tuple[AnyExecutor, Plan]]
MAX_LEAVES = 16  # per function; further specialisations are found by the Python dispatcher
MAX_VALUES = 1024  # arguments and results of a call; for more, emitting code would take seconds

_recent = (ctypes.c_char * len(RECENT)).from_buffer(RECENT)  # the export also forbids resizing it


@dataclass(frozen=True)
class _Made:
    """A builtin with its data; replaced as a whole, because other threads read it without a lock.

    Attributes:
        entry: the builtin and its table.
        executors: the outermost executor of each leaf.
        counts: the counts of each leaf.
    """

    entry: Entry
    executors: tuple[AnyExecutor, ...]
    counts: tuple[LeafCounts, ...]


class Dispatcher:
    """Keeps the builtin of a function up to date with the plans of its specialisations.

    Args:
        name: name of the function.
        slow: the Python dispatcher, called with the same arguments if no specialisation fits.
        into: True = the first argument is the array into which the result is written.

    Attributes:
        reasons: why plans were left to the Python dispatcher, oldest first.
    """

    def __init__(self, name: str, slow: Callable[..., Any], *, into: bool = False) -> None:
        self._name, self._slow, self._into = name, slow, into
        self.reasons: dict[str, None] = {}
        self._lock = ForkLock()  # held while code is emitted; calls take no lock
        self._made: _Made | None = None
        self._served: list[tuple[Any, Chain, int]] = []
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

    def needs(self, variants: Sequence[Variant]) -> bool:
        """Whether `refresh` has something to do."""
        return knobs.native_dispatch and self._chains(variants) != self._served

    def _chains(self, variants: Sequence[Variant]) -> list[tuple[Variant, Chain, int]]:
        """The graphs that emitted code may serve.

        Each comes with its chain of plans, and with the number of device array types seen so far
        (0 on the host): a new type needs new code.
        """
        out = []
        for variant in variants:
            on_host, chain = variant.executor.options.processor.is_host, _chain(variant.executor)
            if self._into and not on_host:
                continue  # `into` is for host arrays
            if chain and unserved(variant) is None:
                out.append((variant, chain, 0 if on_host else kinds_met()))
        return out

    def refresh(self, variants: Sequence[Variant]) -> None:
        """Replace the builtin if the function has other plans than those that the builtin serves.

        Args:
            variants: the graphs of the function.
        """
        with self._lock:
            self._refresh(variants)

    def _refresh(self, variants: Sequence[Variant]) -> None:
        found = self._chains(variants)
        if found == self._served or not knobs.native_dispatch:
            return
        self._served = found
        if (reason := refusal()) is not None:
            self._refuse(reason)
            return
        start = time.perf_counter()
        try:
            with compiler_errors("emitting the dispatcher"):
                made = self._make([(variant, chain) for variant, chain, _ in found])
        except ProfuseError as error:
            self._refuse(error.what)
            made = None
        self._made = made
        if made is not None:
            seconds, count = time.perf_counter() - start, len(made.counts)
            log("dispatch", self._name, "calls run in emitted code", seconds, specialisations=count)

    def _make(self, found: Sequence[tuple[Variant, Chain]]) -> _Made | None:
        leaves: list[tuple[Leaf, list[Level]]] = []
        executors: list[AnyExecutor] = []
        keep: list[Any] = []
        for variant, chain in found:
            for exchange in self._exchanges(variant):
                try:
                    for leaf, levels, kept in _leaves(variant, chain, exchange, self._into):
                        leaves.append((leaf, levels))
                        executors.append(chain[0][0])
                        keep += kept
                except Refused as reason:
                    self._refuse(str(reason))
        self.add_up_misses()
        if not leaves:
            return None
        if len(leaves) > MAX_LEAVES:
            self._refuse(f"only {MAX_LEAVES} specialisations of a function are emitted")
        leaves, executors = leaves[:MAX_LEAVES], executors[:MAX_LEAVES]
        entry = make_entry([leaf for leaf, _ in leaves], self._slow, _settings(), keep)
        RECENT[0] = 0  # RECENT may name an old dispatcher whose table had the same address
        self.add_up_misses()
        entry.set_clock(self._clock)
        counts = [
            LeafCounts(leaf, number, entry, levels) for number, (leaf, levels) in enumerate(leaves)
        ]
        return _Made(entry, tuple(executors), tuple(counts))

    def _exchanges(self, variant: Variant) -> Sequence[Exchange | None]:
        """The ways in which emitted code can read a graph's arrays; notes why others fail."""
        processor = variant.executor.options.processor
        found, reasons = backend_of(processor.device).exchanges(processor.device)
        for reason in reasons:
            self._refuse(reason)
        return found

    def _refuse(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons[reason] = None
            log("dispatch-refused", self._name, reason)


def _settings() -> Settings:
    return Settings(
        time_every=knobs.time_every,
        release_from=knobs.release_gil_ns,
        recent=ctypes.addressof(_recent),
        last=LAST,
        empty=output_pool.empty,
        workspace=output_pool.workspace,
        scratch=thread_block.take,
    )


def unserved(variant: Variant) -> str | None:
    """Why calls of a graph can never run in emitted code; None = they can."""
    if variant.executor.python_only:
        return variant.executor.python_only
    options = variant.executor.options
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


def _leaves(
    variant: Variant, chain: Chain, exchange: Exchange | None, into: bool
) -> Iterator[tuple[Leaf, list[Level], list[Any]]]:
    """Yield the leaf, the levels and the kernels of each specialisation of a graph.

    Raises Refused at the first specialisation that cannot be emitted; the Python dispatcher serves
    the calls that none of the specialisations before it fits.
    """
    trace = variant.trace
    held = list(zip(trace.captured, trace.held, strict=True))
    arguments = arguments_of(*variant.key, held, first=int(into), exchange=exchange)
    arguments.tests += baked_tests(trace.guards, arguments.values)
    if len(arguments.values) + trace.out_tree.leaves > MAX_VALUES:
        raise Refused(f"a call has more than {MAX_VALUES} arguments and results")
    inputs = given = arguments.values
    levels: list[Level] = []
    missed: list[tuple[ArrayValue, ...]] = []
    order = None
    for executor, plan in chain:
        if plan.graph is None or any(guard.stressed for guard in plan.guards):
            raise Refused("guards fail on purpose (stress)")
        kernels, keep = _kernels(plan)
        leaf, fallback = leaf_of(plan.graph, kernels, inputs, order)
        leaf.missed, leaf.exchange = tuple(missed), exchange
        leaf.remembered = chain[0][1].ref
        leaf.finish(arguments, trace.out_tree.spec)
        if into:
            leaf.write_to(0, given)
        elif plan.donations:
            leaf.donate(plan.donations, given)
        levels.append(Level(executor.counters, plan.guards))
        yield leaf, list(levels), keep
        if fallback is None:
            return
        inputs, order = list(fallback.inputs), fallback.order
        missed.append(fallback.checked)


def _kernels(plan: Plan) -> tuple[dict[str, Kernel], list[Any]]:
    """The kernels of a plan by fusion function, and the objects that own their machine code."""
    kernels: dict[str, Kernel] = {}
    keep: list[Any] = []
    for name, runner in plan.kernels.items():
        found = native_kernel(runner)
        if found is not None:
            artifact, loaded = found
            kernels[name] = HostKernel(artifact, loaded.address)
            keep.append(loaded)
        elif (native := getattr(runner, "native", None)) is not None:
            kernels[name] = native()
            keep.append(runner)
    return kernels, keep
