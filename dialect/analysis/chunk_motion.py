"""Ops that are computed chunk by chunk: they move from before a chunk to behind it (R3.23 to R3.26). No MLIR."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from ..ir.op import Op
from ..ir.program import Block, Instr, Program
from ..ir.types import INTS, Shape, TensorType, Type, contiguous_strides
from ..ops.elementwise.families import Elementwise
from ..ops.late import Late
from ..ops.manipulation.split import Chunk
from ..ops.nn.copies import BroadcastingChunk
from ..ops.size_lists import BroadcastSizes, SizesOf
from ..ops.sizes import normalize_axis

CHUNKS: tuple[type[Op], ...] = (Chunk, BroadcastingChunk)


class ChunkMotion:
    """The rewrite of one op and the chunk that cuts its result (R3.24).

    Args:
        split: a `Chunk` or `BroadcastingChunk`.
        index: the operand of it that ``producer`` makes.

    Attributes:
        operands: the tensors that ``producer`` reads, once each.
        is_typed: True if the types of what is to be made are known.
    """

    def __init__(
        self, program: Program, type_of: Callable[[int], Type], split: Instr, index: int, producer: Instr
    ) -> None:
        self.program, self.type_of = program, type_of
        self.split, self.index, self.producer = split, index, producer
        self.operands = [v for v in dict.fromkeys(producer.operands) if isinstance(type_of(v), TensorType)]
        types = [*map(type_of, self.operands), *map(type_of, split.results)]
        self.is_typed = all(isinstance(t, TensorType) and t.is_complete for t in types)

    @staticmethod
    def is_elementwise(instr: Instr) -> bool:
        """True for an op whose chunks are those of its operands, computed alone."""
        return issubclass(instr.op, Elementwise) and len(instr.results) == 1

    def sizes(self, queries: Sequence[Instr]) -> list[Instr]:
        """The values that stand for queries of the sizes of the op's result: the sizes of its operands tell."""
        if not queries:
            return []
        if len(self.operands) == 1:
            return [replace(query, operands=tuple(self.operands)) for query in queries]
        asked = [Instr(SizesOf, (v,), (self.program.new_value(INTS),), loc=self.producer.loc) for v in self.operands]
        shapes = tuple(query.results[0] for query in asked)
        return [*asked, *(Instr(BroadcastSizes, shapes, query.results, loc=query.loc) for query in queries)]

    def apply(self) -> tuple[Instr, list[Instr]]:
        """The chunk that cuts the operands of the op beside what it cut else, and a copy of the op per chunk.

        The copies make the values that were the chunks of the op's result.
        """
        attrs, split, k = dict(self.split.attrs), self.split, self.index
        count = Chunk.count(attrs)
        cut = [split.results[n : n + count] for n in range(0, len(split.results), count)]
        slots = dict(zip(split.operands, cut, strict=True))
        chunks = slots.pop(split.operands[k])
        fresh = {v: self._chunks_of(v, chunks) for v in self.operands if v not in slots}
        before = [v for v in split.operands[:k] if v in slots]
        behind = [v for v in split.operands[k + 1 :] if v in slots]
        slots |= fresh
        operands = (*before, *fresh, *behind)
        pieces = Instr(BroadcastingChunk, operands, tuple(r for v in operands for r in slots[v]), attrs, loc=split.loc)
        copies = []
        for n, result in enumerate(chunks):
            own = tuple(slots[v][n] if v in slots else v for v in self.producer.operands)
            copies.append(replace(self.producer, operands=own, results=(result,), attrs=dict(self.producer.attrs)))
            type_ = self.type_of(result)
            assert isinstance(type_, TensorType)
            self.program.types[result] = replace(type_, strides=None)  # it is a view no more
        return pieces, copies

    def _chunks_of(self, value: int, like: Sequence[int]) -> tuple[int, ...]:
        """New values for the chunks of a tensor that is broadcast to the sizes of what was cut (R3.25)."""
        type_ = self.type_of(value)
        shapes = [t.shape for t in map(self.type_of, like) if isinstance(t, TensorType)]
        assert isinstance(type_, TensorType)
        strides = broadcast_strides(type_, _joined(shapes, self.split.attrs))
        return tuple(self.program.new_value(replace(type_, shape=shape, strides=strides)) for shape in shapes)


def _joined(shapes: Sequence[Shape | None], attrs: dict) -> Shape | None:
    """The sizes of what chunks of these sizes were cut of."""
    first = shapes[0]
    if first is None:
        return None
    axis = normalize_axis(attrs.get("axis", 0), len(first))
    sizes = [shape[axis] for shape in shapes if shape is not None]
    numbers = [size for size in sizes if isinstance(size, int)]
    total = sum(numbers) if len(numbers) == len(shapes) else None
    return (*first[:axis], total, *first[axis + 1 :])


def broadcast_strides(type_: TensorType, shape: Shape | None) -> tuple[int, ...] | None:
    """Element strides of a tensor that is broadcast to a shape, and of chunks of it (R3.25).

    None where they are not known. Those of axes of size 1 tell nothing; what stands there for an
    axis that the tensor has not got is the stride of the next one.
    """
    steps = contiguous_strides(type_.shape or ()) if type_.strides == "contiguous" else type_.strides  # type: ignore[arg-type]
    if type_.shape is None or shape is None or not isinstance(steps, tuple):
        return None
    extra = len(shape) - len(type_.shape)
    if not all(isinstance(number, int) for number in (*steps, *shape, *type_.shape)) or extra < 0:
        return None
    out: list[int] = []
    for size, own, step in reversed(list(zip(shape[extra:], type_.shape, steps, strict=True))):
        if own not in (size, 1):
            return None
        out.append(step if own == size else 0)  # type: ignore[arg-type]
    for size in reversed(shape[:extra]):
        out.append(out[-1] if size == 1 and out else 0)
    return tuple(reversed(out))


def is_size_query(instr: Instr) -> bool:
    """True for an instruction that asks for all sizes of a value."""
    return instr.op is SizesOf


def lower_broadcasting_chunks(program: Program, block: Block, kept: Container[int] = ()) -> int:
    """Make plain chunks of those of several operands, which are broadcast before (R3.26); returns how many.

    ``kept``: what ``id`` gives for instructions that stay.
    """
    out: list[Instr] = []
    lowered = 0
    for instr in block.instrs:
        if instr.op is not BroadcastingChunk or id(instr) in kept:
            out.append(instr)
            continue
        lowered += 1
        count = Chunk.count(instr.attrs)
        operands = _broadcast(program, instr, out)
        for k, operand in enumerate(operands):
            pieces = instr.results[k * count : (k + 1) * count]
            out.append(Instr(Chunk, (operand,), pieces, dict(instr.attrs), loc=instr.loc))
    block.instrs[:] = out
    return lowered


def _broadcast(program: Program, instr: Instr, out: list[Instr]) -> tuple[int, ...]:
    """The operands of an instruction, each broadcast to the sizes of all at run time."""
    if len(instr.operands) == 1:
        return instr.operands

    def emit(op: type[Op], operands: tuple[int, ...], type_: Type, attrs: dict) -> int:
        value = program.new_value(type_)
        out.append(Instr(op, operands, (value,), attrs, loc=instr.loc))
        return value

    asked = tuple(emit(SizesOf, (v,), INTS, {}) for v in instr.operands)
    sizes = emit(BroadcastSizes, asked, INTS, {})
    count = Chunk.count(instr.attrs)
    wide = []
    for k, operand in enumerate(instr.operands):
        pieces = [program.type_of(r) for r in instr.results[k * count : (k + 1) * count]]
        type_ = program.type_of(operand)
        if isinstance(type_, TensorType):
            shape = _joined([t.shape for t in pieces if isinstance(t, TensorType)], instr.attrs)
            type_ = replace(type_, shape=shape, strides=broadcast_strides(type_, shape))
        wide.append(emit(Late, (operand, sizes), type_, {"op": "broadcast_to", "names": ("shape",)}))
    return tuple(wide)
