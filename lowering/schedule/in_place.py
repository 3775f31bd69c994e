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

from . import affine as ix
from .access import accesses
from .affine import AffineIndex
from .block_steps import BlockStep
from .graph import Buffer, Product, Source, operands
from .groups import loop_index
from .memory import buffer_or_none
from .nests import Nest

if TYPE_CHECKING:
    from .scheduling import Schedule


def in_place(plan: Schedule) -> tuple[tuple[int, int], ...]:
    """Pairs (output, input) of equal type that may be the same memory."""
    reads = [set(_read(step)) for step in plan.steps]
    inputs, outputs = plan.graph.specs, plan.graph.output_specs
    pairs = []
    for output, tensor in enumerate(plan.graph.outputs):
        buffer = buffer_or_none(tensor)
        assert buffer is not None
        writers = [k for k, step in enumerate(plan.steps) if buffer in _written(step)]
        if not writers:
            continue
        for number, source in enumerate(plan.graph.inputs):
            assert isinstance(source.producer, Source)
            input_ = source.producer.buffer
            # An output may be a reshape of its buffer: whoever passes the memory takes its shape for the output's.
            same = (input_.element, input_.dims) == (buffer.element, buffer.dims) and tensor.dims == buffer.dims
            # Elements of several dtypes are alike in memory, but whoever passes the memory takes its dtype, too.
            same = same and inputs[number].dtype == outputs[output].dtype
            if input_.scalar or not same or not input_.dims or input_.strides != ix.row_major(input_.dims):
                continue
            last = max((k for k, r in enumerate(reads) if input_ in r), default=-1)
            if last < writers[0] or (last == writers[0] and _meets(plan, last, buffer, input_)):
                pairs.append((output, number))
    return tuple(pairs)


def shared_in_nest(plan: Schedule, nest: Nest) -> set[Buffer]:
    """The buffers of a nest that may be the same memory as another buffer of the nest."""
    reads, writes = set(_read(nest)), set(_written(nest))
    buffers: set[Buffer] = set()
    for output, number in in_place(plan):
        source = plan.graph.inputs[number].producer
        target = buffer_or_none(plan.graph.outputs[output])
        assert isinstance(source, Source) and target is not None
        if source.buffer in reads and target in writes:
            buffers |= {source.buffer, target}
    return buffers


def _meets(plan: Schedule, number: int, output: Buffer, input_: Buffer) -> bool:
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
    written: set[tuple[AffineIndex, ...]] = set()
    read: set[tuple[AffineIndex, ...] | None] = set()
    for op in nest.group.members:
        at = tuple(loop_index(loop) for loop in nest.group.loops[op])
        stores = [k for k, tensor in enumerate(op.outputs) if tensor.buffer is output]
        written |= {tuple(at[axis] for axis in op.axes[k]) for k in stores}
        for access in accesses(op):
            if buffer_or_none(access.tensor) is input_:
                index = access.window if access.index is None else access.index
                is_known = index is not None and not access.reinterpreted
                read.add(ix.substituted(index or (), at.__getitem__) if is_known else None)
    return len(written) == 1 and read == written


def _read(step: Nest | Product | BlockStep) -> Iterator[Buffer]:
    """Buffers of inputs and stored tensors that a step may read."""
    if isinstance(step, BlockStep):
        for part in step.steps:
            yield from _read(part)
        return
    if isinstance(step, Product):
        # The views that a product reads are not stored, but the tensors behind them are.
        tensors = [*operands(step), *step.read_through_views]
    else:
        tensors = [access.tensor for op in step.group.members for access in accesses(op)]
    for tensor in tensors:
        buffer = buffer_or_none(tensor)
        if buffer is not None:
            yield buffer


def _written(step: Nest | Product | BlockStep) -> Iterator[Buffer]:
    if isinstance(step, Nest):
        outputs = step.group.outputs
    else:
        outputs = [step.output] if isinstance(step, Product) else step.outputs
    return (tensor.buffer for tensor in outputs if tensor.buffer is not None)
