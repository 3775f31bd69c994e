"""The steps of a schedule as functions: their names, and the memory that they are given."""

from __future__ import annotations

from ...dialect.dataclass import dataclass
from ..schedule.access import accesses
from ..schedule.block_steps import BlockStep, Window
from ..schedule.chunks import Chunks, Merged
from ..schedule.graph import Buffer, Product, Source, Tensor
from ..schedule.memory import buffer_or_none
from ..schedule.nests import Nest, Scratch
from .loop_ops import is_splat


@dataclass(frozen=True)
class StepFunction:
    """A step as a function ``name(pointers..., ranges..., sizes...)``.

    A range is the first iteration and the end of one of the loops that may be divided.
    """

    name: str
    step: Nest | Product | BlockStep
    buffers: list[Buffer]

    @property
    def part(self) -> str:
        """Name of the function that runs a chunk of the step."""
        return f"{self.name}_part"

    @property
    def ranges(self) -> int:
        """Number of ranges."""
        return 1 if self.step.chunks is None else len(self.chunks.choices)

    @property
    def chunks(self) -> Chunks:
        assert self.step.chunks is not None
        return self.step.chunks

    @property
    def memory(self) -> list[Buffer]:
        """The memory of all chunks for each of `Chunks.in_memory`."""
        return [memory_of(owner) for owner in self.chunks.in_memory]


def memory_of(owner: Merged | Scratch | Window) -> Buffer:
    """The memory of all chunks for one result or temporary."""
    assert owner.buffer is not None
    return owner.buffer


def buffers_of(step: Nest | Product | BlockStep) -> list[Buffer]:
    """Buffers that a step reads or writes, without the memory of its chunks (`memory_of`)."""
    if isinstance(step, BlockStep):
        return list(dict.fromkeys(buffer for part in step.steps for buffer in buffers_of(part)))
    buffers: dict[Buffer, None] = {}

    def add(tensor: Tensor) -> None:
        if isinstance(tensor.producer, Source):
            buffer = tensor.producer.buffer
            # Loops have the number of a splat; a library reads it in memory.
            if isinstance(step, Product) or not is_splat(buffer):
                buffers[buffer] = None
        elif tensor.producer is not None:
            stored = buffer_or_none(tensor)
            if stored is not None:  # None: the tensor stays in registers or on the stack
                buffers[stored] = None

    if isinstance(step, Product):
        for tensor in (*step.read_through_views, step.output):
            add(tensor)
        return list(buffers)
    for op in step.group.members:
        for access in accesses(op):
            add(access.tensor)
        for tensor in op.outputs:
            if tensor.buffer is not None:
                add(tensor)
    for scratch in step.scratch.values():
        if scratch.buffer is not None:
            buffers[scratch.buffer] = None
    return list(buffers)
