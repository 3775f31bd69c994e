"""The builtin of a jitted function, made from the function's settled plans."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import HOST
from ..memory import output_pool, thread_block
from ..memory.offsets import Refused
from ..plans.kernel_call import native_kernel
from ..plans.last_executed import LAST, RECENT
from ..plans.plan import Plan
from ..plans.processor import backend_of
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from .counter_table import Settings
from .counts import LeafCounts, Level
from .dispatcher import Chain, DispatchedGraph, Served
from .effect_leaf import write_in_place
from .layout import refusal
from .leaf_spec import HostKernel, Kernel, Leaf
from .leaf_values import ArrayValue, Value
from .loaded_dispatcher import Entry, make_entry
from .reader import leaf_of, subgraph_of
from .refs import DescribedRef
from .tape_leaf import detached, noting_of, read_tape

if TYPE_CHECKING:
    from ..cuda.exchange.dlpack_exchange import Exchange

MAX_LEAVES = 16  # per function; further specialisations are found by the Python dispatcher
MAX_VALUES = 1024  # arguments and results of a call; for more, emitting code would take seconds

_recent = (ctypes.c_char * len(RECENT)).from_buffer(RECENT)  # the export also forbids resizing it


@dataclass(frozen=True)
class AttachedDispatch:
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
    calls: Sequence[Served],
    slow: Callable[..., Any],
    clock: Callable[[], int],
    refuse: Callable[[str], None],
    *,
    into: bool,
    asks: bool,
) -> AttachedDispatch | None:
    """A builtin for the plans of these graphs; None if none of them can be emitted.

    Args:
        calls: those to serve.
        slow: the Python dispatcher, called with the same arguments if no specialisation fits.
        clock: adds up the misses of the previous builtin, and returns that builtin's clock.
        refuse: notes why a plan is left to the Python dispatcher.
        into: True = the first argument is the array into which the result is written.
        asks: calls may be plain Python's (`settings.plain`).
    """
    if (reason := refusal()) is not None:
        refuse(reason)
        return None
    leaves: list[tuple[Leaf, list[Level]]] = []
    executors: list[AnyExecutor] = []
    keep: list[Any] = []
    for served in calls:
        for exchange in _exchanges(served.graph, refuse):
            try:
                for leaf, levels, owners in _leaves(served, exchange, into):
                    leaves.append((leaf, levels))
                    executors.append(served.chain[0][0])
                    keep += owners
            except Refused as refused:
                refuse(str(refused))
    clock()
    if not leaves:
        return None
    if len(leaves) > MAX_LEAVES:
        refuse(f"only {MAX_LEAVES} specialisations of a function are emitted")
    leaves, executors = leaves[:MAX_LEAVES], executors[:MAX_LEAVES]
    entry = make_entry([leaf for leaf, _ in leaves], slow, _settings(asks), keep)
    RECENT[0] = 0  # RECENT may name an old dispatcher whose table had the same address
    entry.set_clock(clock())
    counts = [LeafCounts(leaf, number, entry, levels) for number, (leaf, levels) in enumerate(leaves)]
    return AttachedDispatch(entry, tuple(executors), tuple(counts))


def _exchanges(graph: DispatchedGraph, refuse: Callable[[str], None]) -> Sequence[Exchange | None]:
    """The ways in which emitted code can read a graph's arrays; notes why others fail."""
    processor = graph.executor.options.processor
    exchanges, reasons = backend_of(processor.device).exchanges(processor.device)
    for reason in reasons:
        refuse(reason)
    return exchanges


def _settings(asks: bool) -> Settings:
    return Settings(
        time_every=knobs.time_every,
        release_from=knobs.release_gil_ns,
        recent=ctypes.addressof(_recent),
        last=LAST,
        empty=output_pool.empty,
        workspace=output_pool.workspace,
        scratch=thread_block.take,
        asks=asks,
    )


Found = tuple[Leaf, list[Level], list[Any]]  # a leaf, its levels, the owners of its kernels


def _leaves(served: Served, exchange: Exchange | None, into: bool) -> Iterator[Found]:
    """Yield what emitted code needs of each specialisation of a graph.

    Raises Refused at the first specialisation that cannot be emitted; the Python dispatcher serves
    the calls that none of the specialisations before it fits.
    """
    graph, chain = served.graph, served.chain
    arguments = graph.arguments(first=int(into), exchange=exchange, on_tape=served.tape, tensors=served.tensors)
    values = arguments.values
    if len(values) + graph.results.leaves > MAX_VALUES:
        raise Refused(f"a call has more than {MAX_VALUES} arguments and results")
    call_level = Level(graph.executor.counters, (), calls=graph.counts_calls)
    halves = served.halves
    if halves is None:
        specialisations = _specialised(chain, detached(values))
    else:
        specialisations = _noted(chain, halves, values)
    for leaf, levels, keep in specialisations:
        leaf.tensors = next((type_ for type_ in served.tensors if type_ is not None), None)
        if served.tape:
            read_tape(leaf, values)
        if arguments.drawing is not None:
            leaf.between.insert(0, (0, arguments.drawing))
        if arguments.writing is not None:
            leaf.noting, leaf.final = arguments.writing, [*arguments.final]
            if halves is None and not (into or served.tape):
                write_in_place(leaf, arguments.writing)
        repeats = len(set(leaf.outputs)) < len(leaf.outputs)  # equal results, which are two arrays
        is_in_order = leaf.tensors is not None and not repeats and _is_in_order(leaf, arguments.orders)
        is_made = arguments.views is not None or ((leaf.turned or repeats) and arguments.laid is not None)
        if is_made and not is_in_order:
            leaf.noting = arguments.views or arguments.laid
        _see_to_tensors(leaf)
        leaf.exchange, leaf.remembered = exchange, chain[0][1].ref
        leaf.finish(arguments, graph.results.spec)
        if into:
            leaf.write_to(0, values)
        elif leaf.noting is None and arguments.writing is None and leaf.tensors is None:
            plan = chain[len(leaf.missed)][1]
            if plan.donations and not plan.sole:  # who else holds an array is not asked for
                leaf.donate(plan.donations, values)
        yield leaf, [call_level, *levels], keep


def _is_in_order(leaf: Leaf, orders: Sequence[tuple[int, ...] | None] | None) -> bool:
    """True if the results of kernels, with turned axes, lie in memory as they have to."""
    for output, order in zip(leaf.outputs, orders or (), strict=False):
        turned = leaf.turned.get(output)
        if turned is None and order is None:
            continue
        count = len(turned or order or ())
        axes = tuple(turned.index(k) for k in range(count)) if turned is not None else tuple(range(count))
        if axes != (tuple(range(count)) if order is None else order):
            return False
    return orders is not None


def _see_to_tensors(leaf: Leaf) -> None:
    """Give arrays to what Python does of a call with tensors; raises Refused where it wants others between kernels."""
    described = any(isinstance(v, ArrayValue) and isinstance(v.ref, DescribedRef) for v in leaf.values.values())
    if not described or leaf.device != HOST:
        return
    if leaf.host_operands:
        raise Refused("a function of NumPy's runs between kernels of a call with tensors")
    if leaf.noting is not None:
        from .tensor_leaf import on_arrays

        leaf.noting, leaf.tensors = on_arrays(leaf.noting, leaf.tensors), None


def _specialised(chain: Chain, inputs: Sequence[Value]) -> Iterator[Found]:
    """Yield the specialisations of a chain of plans whose graph has these inputs."""
    missed: list[Level] = []
    numbers: set[int] = set()  # positions of outputs whose one element outer graphs return
    order: Sequence[int] | None = None
    for executor, plan in chain:
        _check(plan)
        kernels, keep = _kernels(plan)
        assert plan.steps is not None
        leaf, fallback = leaf_of(plan.steps, kernels, inputs, order)
        leaf.numbers |= {leaf.outputs[k] for k in numbers}
        leaf.evaluated += len(numbers)
        leaf.missed = tuple(level.missed for level in missed if level.missed is not None)
        yield leaf, [*missed, Level(executor.counters, plan.guards)], keep
        if fallback is None:
            return
        missed.append(Level(executor.counters, plan.guards, missed=fallback.checked))
        inputs, order = fallback.inputs, fallback.order
        numbers |= set(fallback.numbers)


def _noted(chain: Chain, halves: Sequence[Chain], inputs: Sequence[Value]) -> Iterator[Found]:
    """Yield the specialisations of a graph that is one differentiable subgraph.

    Args:
        chain: the plans of calls that are noted.
        halves: for each, the chain of the forward half.
        inputs: the inputs of the graph.
    """
    missed: list[Level] = []
    order = None
    for (executor, plan), half in zip(chain, halves, strict=True):
        _check(plan)
        assert plan.steps is not None
        subgraph, fallback = subgraph_of(plan.steps, inputs, order)
        level = Level(executor.counters, plan.guards)
        for leaf, levels, keep in _specialised(half, detached(subgraph.operands)):
            leaf.tests = [*subgraph.tests, *leaf.tests]
            leaf.missed = (*(before.missed or () for before in missed), *leaf.missed)
            leaf.noting = noting_of(subgraph, plan.graphs[0])
            yield leaf, [*missed, level, *levels], keep
        if fallback is None:
            return
        missed.append(Level(executor.counters, plan.guards, missed=fallback.checked))
        inputs, order = fallback.inputs, fallback.order


def _check(plan: Plan) -> None:
    """Raise Refused for a plan that emitted code may not run."""
    if plan.steps is None or any(guard.stressed for guard in plan.guards):
        raise Refused("guards fail on purpose (stress)")


def _kernels(plan: Plan) -> tuple[dict[str, Kernel], list[Any]]:
    """The kernels of a plan by fusion function, and the objects that own their machine code."""
    kernels: dict[str, Kernel] = {}
    keep: list[Any] = []
    for name, runner in plan.kernels.items():
        code = native_kernel(runner)
        if code is not None:
            artifact, loaded = code
            kernels[name] = HostKernel(artifact, loaded.address)
            keep.append(loaded)
        elif (native := getattr(runner, "native", None)) is not None:
            kernels[name] = native()
            keep.append(runner)
    return kernels, keep
