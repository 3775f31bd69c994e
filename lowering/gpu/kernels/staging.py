"""Keeps elements of a row in shared memory, from one stage of a row kernel to later ones.

It keeps elements that a stage loads, or computes at some cost, and that a later stage needs again.
All stages divide rows among threads in the same way, so a thread reads only elements that it has
stored itself, and no barrier is needed. The layout avoids bank conflicts of neighbouring threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.ir.symbolic import Dim
from ...emit.loop_ops import is_splat
from ...emit.value_emitter import Position
from ...schedule import affine as ix
from ...schedule.affine import AffineIndex, Atom
from ...schedule.graph import Compute, Tensor, read_at, viewed
from ...schedule.groups import Loop, loop_index
from ...schedule.memory import buffer_or_none, strides_of
from ...schedule.nests import Nest, NestStage
from .emitter import KernelEmitter, spread
from .kernel import VECTOR, element_size
from .ops import Address, is_float

Element = tuple[Tensor, Position]
# Number of a stage -> the index of its loop over the row, and the nest loops that it merges.
RowLoops = Mapping[int, tuple[Atom, Sequence[Sequence[Loop]]]]


@dataclass(eq=False)
class Slot:
    """A part of a block's shared memory, for one element per element of a row.

    Attributes:
        size: number of elements of the row.
        bytes_: bytes of an element.
        start: byte offset in the row's shared memory.
        free: number of the stage that reads the slot for the last time.
    """

    size: Dim
    bytes_: int
    start: Dim
    free: int


@dataclass(frozen=True)
class Staged:
    """A kept element of a row.

    Attributes:
        tensor: the tensor of the element.
        index: index of the element, over ``atom`` and other atoms.
        atom: the index of the row's loop.
        slot: the part of shared memory that holds the elements of the row.
    """

    tensor: Tensor
    index: Position
    atom: Atom
    slot: Slot

    def key(self, lane: AffineIndex) -> Element:
        """The element at another index of the row."""

        def moved(atom: Atom) -> AffineIndex:
            return lane if atom == self.atom else ix.atom(atom)

        return self.tensor, ix.substituted(self.index, moved)


@dataclass
class Staging:
    """The kept elements of a row.

    Attributes:
        stored: number of a stage -> elements that it stores.
        loaded: number of a stage -> elements that it loads.
        bytes_: bytes of shared memory per row.
    """

    stored: dict[int, list[Staged]] = field(default_factory=dict)
    loaded: dict[int, list[Staged]] = field(default_factory=dict)
    bytes_: Dim = 0


def staging(nest: Nest, outer: dict[Loop, AffineIndex], rows: RowLoops) -> Staging:
    """Choose the elements to keep.

    Args:
        nest: the nest.
        outer: outer loop -> its index.
        rows: the stages that loop over their rows.
    """
    needs = _Needs(nest, outer, rows)
    first: dict[Element, int] = {}
    kept: set[Element] = set()
    for number in rows:
        for element in needs.of(number, set()):
            if element in first and _is_costly(nest, element[0]):
                kept.add(element)
            first.setdefault(element, number)
    # Elements that are only needed to compute kept elements are needed once, so they are not kept.
    uses: dict[Element, list[int]] = {}
    for number in rows:
        for element in needs.of(number, {k for k in kept if first[k] < number}):
            if element in kept or _is_loaded(nest, element[0]):
                uses.setdefault(element, []).append(number)
    return _placed({e: stages for e, stages in uses.items() if len(stages) > 1}, rows)


def _placed(uses: dict[Element, list[int]], rows: RowLoops) -> Staging:
    plan = Staging()
    slots: list[Slot] = []
    for (tensor, index), stages in sorted(uses.items(), key=lambda item: item[1][0]):
        atom, groups = rows[stages[0]]
        size = ix.product(loop.extent for group in groups for loop in group)
        bytes_ = element_size(tensor)
        slot = next((s for s in slots if s.free <= stages[0] and (s.size, s.bytes_) == (size, bytes_)), None)
        if slot is None:
            slot = Slot(size, bytes_, plan.bytes_, 0)
            slots.append(slot)
            plan.bytes_ = plan.bytes_ + _aligned(size * bytes_)
        slot.free = stages[-1]
        one = Staged(tensor, index, atom, slot)
        plan.stored.setdefault(stages[0], []).append(one)
        for number in stages[1:]:
            plan.loaded.setdefault(number, []).append(one)
    return plan


def _aligned(bytes_: Dim) -> Dim:
    return ix.ceil_div(bytes_, VECTOR) * VECTOR


def _is_costly(nest: Nest, tensor: Tensor) -> bool:
    """True if a tensor is the result of an anchor of the nest, and its elements can be stored."""
    op, element = tensor.producer, tensor.element
    return (
        isinstance(op, Compute)
        and op.anchor
        and not op.is_reduction
        and op in nest.group.loops
        and (is_float(element) or ir.IntegerType(element).width >= 8)
    )


def _is_loaded(nest: Nest, tensor: Tensor) -> bool:
    """True if a tensor is in memory before the kernel: an argument, a constant, or a result."""
    op = tensor.producer
    return not isinstance(op, Compute) or (op.anchor and op not in nest.group.loops)


class _Needs:
    """The elements that stages need at one index of their rows."""

    def __init__(self, nest: Nest, outer: dict[Loop, AffineIndex], rows: RowLoops) -> None:
        self.nest, self.outer, self.rows = nest, outer, rows

    def of(self, number: int, known: set[Element]) -> Iterator[Element]:
        """The elements, each once, that a stage needs and that differ along its row.

        Elements that it needs only to compute elements of ``known`` are left out.
        """
        atom, groups = self.rows[number]
        place = {**self.outer, **spread(groups, ix.atom(atom))}
        waiting = list(self._roots(self.nest.stages[number], place))[::-1]
        seen: set[Element] = set()
        while waiting:
            element = waiting.pop()
            if element in seen or not any(atom in ix.atoms_of(i) for i in element[1]):
                continue
            seen.add(element)
            tensor, index = element
            op = tensor.producer
            if isinstance(op, Compute) and not _is_loaded(self.nest, tensor):
                if element not in known:
                    waiting += _read(op, op.loop_values(tensor.number, index))[::-1]
                yield element
            elif _is_memory(tensor) and atom in _moving(tensor, index):
                yield element

    def _roots(self, stage: NestStage, place: dict[Loop, AffineIndex]) -> Iterator[Element]:
        for op in stage.members:
            loops = [place.get(loop, loop_index(loop)) for loop in self.nest.group.loops[op]]
            if op.is_reduction:
                yield from _read(op, loops)
                continue
            for tensor, axes in zip(op.outputs, op.axes, strict=True):
                if tensor.buffer is not None:
                    yield tensor, tuple(loops[k] for k in axes)


def _read(op: Compute, loops: Sequence[AffineIndex | None]) -> list[Element]:
    indices = [i if i is not None else ix.constant(0) for i in loops]
    numbers = op.body.direct if op.body.view is None else (op.body.view,)
    # A reduction does not read its accumulator from memory.
    inputs = [n for n in numbers if n < len(op.reads) or not op.is_reduction]
    return [viewed(*read_at(op, number, indices)) for number in inputs]


def _is_memory(tensor: Tensor) -> bool:
    buffer = buffer_or_none(tensor)
    return buffer is not None and not buffer.scalar and not is_splat(buffer)


def _moving(tensor: Tensor, index: Position) -> set[Atom]:
    """The atoms on which an element's address depends."""
    return ix.atoms_of(ix.linear(index, strides_of(tensor)))


class RowMemory:
    """The kept elements in the dynamic shared memory of a kernel.

    Args:
        emitter: emits the kernel.
        kept: the kept elements.
        width: number of neighbouring elements per access of the row.
        rows: number of rows per block, along y.
    """

    def __init__(self, emitter: KernelEmitter, kept: Staging, width: int, rows: int) -> None:
        self.emitter, self.gpu, self.kept = emitter, emitter.gpu, kept
        self.width, self.rows = width, rows
        self.memory: ir.Value | None = None

    def declare(self) -> None:
        """Declare the shared memory; called at the kernel's beginning."""
        if self.kept.stored:
            self.memory = self.emitter.kernel.shared_by_launch(self.kept.bytes_ * self.rows)

    def take(self, stage: int) -> None:
        """Load the current elements that earlier stages have stored for this one."""
        for one in self.kept.loaded.get(stage, ()):
            count, element = self._count(one), one.tensor.element
            for first in range(0, self.width, count):
                place = self._place(one, first)
                if count == 1:
                    values = [self.gpu.load(place, element)]
                else:
                    vector = self.gpu.load_vector(place, element, count, one.slot.bytes_)
                    values = [self.gpu.lane_of(vector, number) for number in range(count)]
                for number, value in enumerate(values, first):
                    key = one.key(AffineIndex({one.atom: 1}, number))
                    self.emitter.scope.memo[key] = value

    def leave(self, stage: int, groups: Sequence[Sequence[Loop]]) -> None:
        """Store the current elements that later stages need."""
        for one in self.kept.stored.get(stage, ()):
            lanes = self.emitter.lanes(one.atom, self.width, groups)
            values = [self.emitter.value(*one.key(lane.index)) for lane in lanes]
            count = self._count(one)
            for first in range(0, self.width, count):
                place = self._place(one, first)
                if count == 1:
                    self.gpu.store(values[first], place)
                else:
                    part = values[first : first + count]
                    self.gpu.store_vector(part, place, one.slot.bytes_)

    def _count(self, one: Staged) -> int:
        """Number of elements per access of shared memory."""
        return min(self.width, VECTOR // one.slot.bytes_)

    def _place(self, one: Staged, first: int) -> Address:
        """The address of the current elements, from number ``first`` on.

        The first vectors of all threads come before all second vectors, so no bank is skipped.
        """
        gpu, slot = self.gpu, one.slot
        vectors = self.width // self._count(one)
        index = self.emitter.index_value(ix.atom(one.atom))
        if vectors > 1:
            index = gpu.create("arith.shrui", gpu.word, index, gpu.constant(vectors.bit_length() - 1))
        if first:
            index = gpu.add(index, self.emitter.size(slot.size // self.width * first))
        return gpu.offset(self._view(one), index, one.tensor.element)

    def _view(self, one: Staged) -> Address:
        """A slot as an array of elements that starts at this row of the block."""
        gpu, emitter, slot = self.gpu, self.emitter, one.slot
        element = one.tensor.element
        key = ("slot", slot.start, element)
        with emitter.at(0):
            memo = emitter.scope.memo
            if key not in memo:
                row = self.kept.bytes_ // slot.bytes_
                count = emitter.size(row * (self.rows - 1) + slot.size)
                assert self.memory is not None
                view = gpu.viewed(self.memory, emitter.size(slot.start), count, element)
                start = None
                if self.rows > 1:
                    start = gpu.mul(gpu.position("thread_id", "y"), emitter.size(row))
                memo[key] = Address(view, start)
            return memo[key]
