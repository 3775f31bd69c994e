"""Effects of a function: results of its graph that go where the function writes them.

The graph reads each array that is written through a copy, and its last outputs are what these
copies hold in the end; what the function assigns to attributes and items are outputs, too. All is
written when everything has been computed: a call that fails has written nothing yet, and Python
runs it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.errors import TraceError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.ops.indexing.inplace import LOANS, BorrowedArrays
from ..interpret.loop_limit import SoonerInPython, within
from ..memory.output_pool import data_pointer
from ..routing.ledger import NoGraph
from ..routing.verdict import Cause

if TYPE_CHECKING:
    from .graph_runs import GraphRuns
    from .variants import Variant

_FEW = 8  # pairs of arrays that are compared as they are


def are_apart(trace: Trace, inputs: Sequence[Any]) -> bool:
    """True if the written arrays can be written, and share no memory with what the graph reads.

    That includes arrays whose contents are constants of the graph. Where arrays overlap, a write
    to one is seen through the other, which no graph shows.
    """
    for array in (inputs[k] for k in trace.writes):
        if not isinstance(array, np.ndarray) or not array.flags.writeable:
            return False
        if _may_overlap_itself(array):
            return False
    every = (*inputs, *trace.plain)
    arrays = {k: x for k, x in enumerate(every) if isinstance(x, np.ndarray) and x.nbytes}
    if len(arrays) * len(trace.writes) <= _FEW:
        return _are_apart(trace.writes, arrays)
    spans = sorted((*_span(x), k in trace.writes) for k, x in arrays.items())
    reached, written = 0, False  # the end of all spans so far, and whether one of these is written
    for start, end, writes in spans:
        if start >= reached:
            written = False
        elif writes or written:
            return _are_apart(trace.writes, arrays)
        reached, written = max(reached, end), written or writes
    return True


def _may_overlap_itself(array: np.ndarray) -> bool:
    """False if each element certainly has memory of its own, as few strided windows have."""
    if array.flags.forc:
        return False
    reach = array.itemsize
    steps = sorted((abs(step), n) for step, n in zip(array.strides, array.shape, strict=True))
    for step, size in steps:
        if size > 1 and step < reach:
            return True
        reach += (size - 1) * step
    return False


def _span(array: np.ndarray) -> tuple[int, int]:
    """The address of an array's first byte, and of the one behind its last."""
    if array.flags.forc:
        start = data_pointer(array)
        return start, start + array.nbytes
    return np.lib.array_utils.byte_bounds(array)


def _are_apart(writes: Sequence[int], arrays: dict[int, np.ndarray]) -> bool:
    return not any(
        j != k and np.may_share_memory(arrays[k], other) for k in writes if k in arrays for j, other in arrays.items()
    )


def apply_effects(
    trace: Trace, outputs: Sequence[Any], inputs: Sequence[Any], objects: Sequence[Any] | None = None
) -> Any:
    """Write what a graph has computed where the function writes it.

    Args:
        trace: the graph.
        outputs: of the graph.
        inputs: of the graph, as the caller and the objects from outside have them, and behind these
            the containers among the arguments, if the graph has any (`Trace.containers`).
        objects: the same as they are handed on; None = they are ``inputs``.

    Returns the result of the call.
    """
    finals = outputs[len(outputs) - len(trace.writes) :]
    for k, final in zip(trace.writes, finals, strict=True):
        if final is not inputs[k]:  # where it is, it has been written
            np.copyto(inputs[k], final)
    objects = inputs if objects is None else objects
    leaves = [outputs[k] if k >= 0 else objects[~k] for k in trace.sources or ()]
    first = trace.out_tree.leaves
    behind = len(inputs) - len(trace.containers.kinds) if trace.containers is not None else 0
    for store in trace.stores:
        last = first + store.count
        value = store.value(leaves[first:last])
        first = last
        number = store.place.node
        holder = store.place.holder if number is None else inputs[behind + number]
        store.place.put(holder, value)
    return trace.out_tree.unflatten(leaves[: trace.out_tree.leaves])


def note_captured_writes(writes: Sequence[int], inputs: Sequence[Any], captured: Sequence[Any]) -> None:
    """Tell the libraries of tensors that functions close over that these are written to.

    Args:
        writes: the inputs of a graph that it writes to.
        inputs: its inputs as arrays, the last of which are captured.
        captured: these as the function has them.
    """
    first = len(inputs) - len(captured)
    for k in writes:
        if k >= first and not isinstance(captured[k - first], np.ndarray):
            from ..exchange.host_tensors import note_write

            note_write(captured[k - first])


@contextmanager
def lent(trace: Trace) -> Iterator[None]:
    """Have a graph write to the caller's arrays where they are; an error undoes that."""
    if not trace.lends:
        yield
        return
    before, LOANS.open = LOANS.open, BorrowedArrays()
    loan = LOANS.open
    try:
        yield
    except BaseException:
        loan.undo()
        raise
    finally:
        LOANS.open = before


def note_writes(arrays: Sequence[Any]) -> None:
    """Note on the tape that a call has written to these arrays, as far as they are of it."""
    from ..tape.array import Array
    from ..tape.node import users_place

    place = users_place()
    for x in arrays:
        if type(x) is Array:
            x.wrote(place)


def run_with_effects(
    runs: GraphRuns,
    variant: Variant,
    inputs: Sequence[Any],
    arrays: Sequence[Any],
    objects: Sequence[Any] | None,
    args: tuple,
    kwargs: dict[str, Any],
) -> Any:
    """The result of a call by a graph with effects: draw, run the graph, and write what the function writes.

    Args:
        runs: runs the graph.
        variant: the graph.
        inputs: its inputs but for captured arrays and draws, as kernels can read them.
        arrays: its inputs but for draws, as the caller and the objects from outside have them, without the tape.
        objects: the arguments with arrays of the tape; None = there are none.
        args: those of the call.
        kwargs: the same, by name.

    Raises as `GraphRuns.run_call` does.
    """
    trace, memory, may_be_pythons = variant.trace, variant.memory, variant.trial.may_be_pythons
    executor, graphs = variant.executor, runs.graphs
    containers: list[Any] = [] if trace.containers is None else trace.containers.find(args, kwargs)
    drawing = None
    if is_drawn := bool(trace.draws or trace.generators):
        from .drawing import drawing_of

        drawing = drawing_of(trace, args, kwargs)
    if (
        (is_drawn and drawing is None)
        or not (trace.containers is None or trace.containers.are_apart(containers))
        or not are_apart(trace, arrays)
        or (memory is not None and may_be_pythons and memory.orders(arrays) is None)
    ):
        if graphs.source.has_code:
            raise NoGraph(Cause.EFFECTS)
        raise TraceError(
            f"{graphs.name} writes to an array that shares memory with another one of the call, or draws "
            "from a generator that it was not made for",
            hint="pass arrays that do not overlap: x.copy()",
        )
    draws: list[Any] = []
    try:
        if drawing is not None:
            draws = drawing.run(arrays)
        with lent(trace):
            outputs = runs.run(executor, [*graphs.inputs(variant, inputs), *draws])
    except SoonerInPython:
        if drawing is None or drawing.undo():
            raise
        # Other threads have drawn since: Python would draw other numbers.
        with within(None), lent(trace):
            outputs = runs.run(executor, [*graphs.inputs(variant, inputs), *draws])
    except Exception:
        # Python would draw other numbers, may not repeat the call, or is not there.
        lost = drawing is not None and not drawing.take_back(executor)
        if lost or not (graphs.source.has_code and may_be_pythons):
            raise
        executor.counters.calls -= drawing is None  # Python counts the call
        # Python leaves what NumPy has written before the error, and raises that again.
        raise NoGraph(Cause.FAILED) from None
    note_captured_writes(trace.writes, arrays, trace.captured)
    if memory is not None:
        every = [*arrays, *draws]
        outputs = memory.put(outputs, every, memory.orders(every))
    if trace.sources is None:
        return trace.out_tree.unflatten(outputs)
    every = [*arrays, *draws, *containers]
    if objects is None:
        return apply_effects(trace, outputs, every)
    objects = [*objects, *every[len(objects) :]]
    result = apply_effects(trace, variant.untaped.retaped(outputs, objects), every, objects)
    note_writes([objects[k] for k in trace.writes])
    return result
