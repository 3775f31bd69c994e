"""Finds the inputs in whose memory a kernel may write an output: `KernelABI.in_place`.

This is allowed if no element of the input is read after its place has been written. It holds if the
input's last reader ends before the step that writes the output begins. It also holds within one
nest if both have the same shape and each iteration reads exactly the element that it writes; a nest
evaluates all results of an iteration before it stores one. All other outputs must overlap no input;
compiled code relies on that. What is read of an output later is the output, wherever that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import index as ix
from .access import accesses
from .blocks import Blocks
from .graph import Buffer, Product, Source, operands
from .groups import loop_index
from .index import Index
from .memory import buffer_or_none
from .nests import Nest

if TYPE_CHECKING:
    from .plan import Schedule


def in_place(plan: Schedule) -> tuple[tuple[int, int], ...]:
    """Pairs (output, input) of equal type that may be the same memory."""
    reads = [set(_read(step)) for step in plan.steps]
    found = []
    for output, tensor in enumerate(plan.graph.outputs):
        buffer = buffer_or_none(tensor)
        assert buffer is not None
        writers = [k for k, step in enumerate(plan.steps) if buffer in _written(step)]
        if not writers:
            continue
        for number, source in enumerate(plan.graph.inputs):
            assert isinstance(source.producer, Source)
            given = source.producer.buffer
            same = (given.element, given.dims) == (buffer.element, buffer.dims)
            if (
                given.scalar
                or not same
                or not given.dims
                or given.strides != ix.row_major(given.dims)
            ):
                continue
            last = max((k for k, r in enumerate(reads) if given in r), default=-1)
            if last < writers[0] or (last == writers[0] and _meets(plan, last, buffer, given)):
                found.append((output, number))
    return tuple(found)


def shared_in_nest(plan: Schedule, nest: Nest) -> set[Buffer]:
    """The buffers of a nest that may be the same memory as another buffer of the nest."""
    reads, writes = set(_read(nest)), set(_written(nest))
    found: set[Buffer] = set()
    for output, number in in_place(plan):
        source = plan.graph.inputs[number].producer
        target = buffer_or_none(plan.graph.outputs[output])
        assert isinstance(source, Source) and target is not None
        if source.buffer in reads and target in writes:
            found |= {source.buffer, target}
    return found


def _meets(plan: Schedule, number: int, output: Buffer, given: Buffer) -> bool:
    """True if a step writes an output where the same iteration, and no other, reads the input.

    Nests with reductions are excluded: emission declares the loops independent, and loops of
    reductions may depend on each other. So are nests of several stages, the first of which might
    write what the next one reads.
    """
    nest = plan.steps[number]
    if not isinstance(nest, Nest) or len(nest.stages) != 1 or nest.tail:
        return False
    if nest.scratch or any(op.is_reduction for op in nest.group.members):
        return False
    written: set[tuple[Index, ...]] = set()
    read: set[tuple[Index, ...] | None] = set()
    for op in nest.group.members:
        at = tuple(loop_index(loop) for loop in nest.group.loops[op])
        stores = [k for k, tensor in enumerate(op.outputs) if tensor.buffer is output]
        written |= {tuple(at[axis] for axis in op.axes[k]) for k in stores}
        for access in accesses(op):
            if buffer_or_none(access.tensor) is given:
                index = access.window if access.index is None else access.index
                known = index is not None and not access.reinterpreted
                read.add(ix.substituted(index or (), at.__getitem__) if known else None)
    return len(written) == 1 and read == written


def _read(step: Nest | Product | Blocks) -> Iterator[Buffer]:
    """Buffers of inputs and stored tensors that a step may read."""
    if isinstance(step, Blocks):
        for part in (step.first, step.nest, step.second):
            if part is not None:
                yield from _read(part)
        return
    if isinstance(step, Product):
        # The views that a product reads are not stored, but the tensors behind them are.
        tensors = [*operands(step), *step.read_through_views]
    else:
        tensors = [access.tensor for op in step.group.members for access in accesses(op)]
    for tensor in tensors:
        found = buffer_or_none(tensor)
        if found is not None:
            yield found


def _written(step: Nest | Product | Blocks) -> Iterator[Buffer]:
    if isinstance(step, Nest):
        made = step.group.outputs
    else:
        made = [step.output] if isinstance(step, Product) else step.outputs
    return (tensor.buffer for tensor in made if tensor.buffer is not None)
