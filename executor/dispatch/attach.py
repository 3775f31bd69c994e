"""The builtin of a jitted function, made from the function's settled plans."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ..memory import output_pool, thread_block
from ..memory.placement import Refused
from ..plans.kernel_call import native_kernel
from ..plans.last_executed import LAST, RECENT
from ..plans.plan import Plan
from ..plans.processor import backend_of
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from .arguments import arguments_of
from .conditions.baked import baked_tests
from .counter_table import Settings
from .counts import LeafCounts, Level
from .dispatcher import Chain
from .entry import Entry, make_entry
from .layout import refusal
from .leaf_spec import ArrayValue, HostKernel, Kernel, Leaf
from .reader import leaf_of

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange
    from ..functions.variants import Variant

MAX_LEAVES = 16  # per function; further specialisations are found by the Python dispatcher
MAX_VALUES = 1024  # arguments and results of a call; for more, emitting code would take seconds

_recent = (ctypes.c_char * len(RECENT)).from_buffer(RECENT)  # the export also forbids resizing it


@dataclass(frozen=True)
class Made:
    """A builtin with its data; replaced as a whole, because other threads read it without a lock.

    Attributes:
        entry: the builtin and its table.
        executors: the outermost executor of each leaf.
        counts: the counts of each leaf.
    """

    entry: Entry
    executors: tuple[AnyExecutor, ...]
    counts: tuple[LeafCounts, ...]


def made_of(
    found: Sequence[tuple[Variant, Chain]], slow: Callable[..., Any], clock: Callable[[], int],
    refuse: Callable[[str], None], *, into: bool,
) -> Made | None:  # fmt: skip
    """A builtin for the plans of these graphs; None if none of them can be emitted.

    Args:
        found: the graphs, each with its chain of plans.
        slow: the Python dispatcher, called with the same arguments if no specialisation fits.
        clock: adds up the misses of the previous builtin, and returns that builtin's clock.
        refuse: notes why a plan is left to the Python dispatcher.
        into: True = the first argument is the array into which the result is written.
    """
    if (reason := refusal()) is not None:
        refuse(reason)
        return None
    leaves: list[tuple[Leaf, list[Level]]] = []
    executors: list[AnyExecutor] = []
    keep: list[Any] = []
    for variant, chain in found:
        for exchange in _exchanges(variant, refuse):
            try:
                for leaf, levels, kept in _leaves(variant, chain, exchange, into):
                    leaves.append((leaf, levels))
                    executors.append(chain[0][0])
                    keep += kept
            except Refused as refused:
                refuse(str(refused))
    clock()
    if not leaves:
        return None
    if len(leaves) > MAX_LEAVES:
        refuse(f"only {MAX_LEAVES} specialisations of a function are emitted")
    leaves, executors = leaves[:MAX_LEAVES], executors[:MAX_LEAVES]
    entry = make_entry([leaf for leaf, _ in leaves], slow, _settings(), keep)
    RECENT[0] = 0  # RECENT may name an old dispatcher whose table had the same address
    entry.set_clock(clock())
    counts = [
        LeafCounts(leaf, number, entry, levels) for number, (leaf, levels) in enumerate(leaves)
    ]
    return Made(entry, tuple(executors), tuple(counts))


def _exchanges(variant: Variant, refuse: Callable[[str], None]) -> Sequence[Exchange | None]:
    """The ways in which emitted code can read a graph's arrays; notes why others fail."""
    processor = variant.executor.options.processor
    found, reasons = backend_of(processor.device).exchanges(processor.device)
    for reason in reasons:
        refuse(reason)
    return found


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
