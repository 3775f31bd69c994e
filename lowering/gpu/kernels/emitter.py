"""Emitting the members of a nest in a kernel, several neighbouring elements per thread.

`place` maps the loops of the nest to index expressions, which tell the element that a thread works
on. Each unrolled iteration has index expressions of its own, so values that one stage computes can
stay in registers for the next stage.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.ir.symbolic import Dim
from ...emit.nest import NestEmitter
from ...emit.reduction_loops import Carried
from ...schedule import affine as ix
from ...schedule.access import accesses
from ...schedule.affine import AffineIndex, Atom
from ...schedule.graph import Buffer, Compute, Tensor
from ...schedule.groups import Loop, loop_index
from ...schedule.memory import buffer_of, buffer_or_none, strides_of
from ...schedule.nests import Nest, NestStage
from .combine import combined, combiners_of, neutral
from .kernel import VECTOR, Kernel, element_size


@dataclass(frozen=True)
class ElementLane:
    """The element that is computed, among ``width`` neighbours; ``atom`` indexes the first one."""

    atom: Atom
    number: int
    width: int

    @property
    def index(self) -> AffineIndex:
        return AffineIndex({self.atom: 1}, self.number)


class KernelEmitter(NestEmitter):
    """Emits members of a nest at the indices given by `place`."""

    searches = False  # a search pays for vectors, and a thread has none
    versions = False

    def __init__(self, kernel: Kernel, nest: Nest) -> None:
        super().__init__(kernel.ops, kernel.memory.graph, nest, kernel.block, kernel.pointers, kernel.names)
        self.kernel = kernel
        self.gpu = kernel.ops
        self.place: dict[Loop, AffineIndex] = {}
        self.lane: ElementLane | None = None

    # --- indices ---------------------------------------------------------------------------------

    def own_loops(self, op: Compute) -> list[AffineIndex]:
        return [self._placed(g) for g in self.nest.group.loops[op]]

    def _placed(self, loop: Loop) -> AffineIndex:
        place = self.place.get(loop)
        return place if place is not None else loop_index(loop)

    def index_data(self, index: AffineIndex, type_: ir.Type) -> ir.Value:
        # Bodies compute with indices in 64 bits, even if words have 32 bits.
        if type_ == self.ops.index or self.ops.word == self.ops.i64:
            return super().index_data(index, type_)
        value = self.ops.i64
        parts = []
        for atom, coefficient in index.terms.items():
            part = self.ops.cast_index(self.index_value(ix.atom(atom)), value)
            parts.append(self.ops.create("arith.muli", value, part, self._wide(coefficient)))
        total = self._wide(index.const)
        for part in parts:
            total = self.ops.create("arith.addi", value, total, part)
        return total

    def _wide(self, size: Dim) -> ir.Value:
        if isinstance(size, int):  # any number of a body, which a word may be too narrow for
            return self.ops.constant(size, self.ops.i64)
        return self.ops.cast_index(self.size(size), self.ops.i64)

    def lanes(self, atom: Atom, width: int, groups: Sequence[Sequence[Loop]]) -> Iterator[ElementLane]:
        """Iterate over the neighbouring elements, and set `place` for each of them."""
        for number in range(width):
            self.lane = ElementLane(atom, number, width)
            self.place_spread(groups, self.lane.index)
            yield self.lane
        self.lane = None

    def place_spread(self, groups: Sequence[Sequence[Loop]], linear: AffineIndex) -> None:
        """Set `place` for groups of merged loops, from one index over all their iterations."""
        self.place.update(spread(groups, linear))

    # --- values ----------------------------------------------------------------------------------

    def is_inlined(self, op: Compute) -> bool:
        if op in self.nest.group.loops and op.anchor:
            # The value is in no register any more; computing it again is cheaper than storing it.
            return True
        return super().is_inlined(op)

    def load(self, buffer: Buffer, base: ir.Value, offset: AffineIndex) -> ir.Value:
        if buffer.scalar:
            return self.pointers[buffer]
        width = self.width_at(buffer, offset)
        if width == 1 or self.lane is None:
            return super().load(buffer, base, offset)
        number = self.lane.number % width
        start = offset + ix.constant(-number)

        def vector() -> ir.Value:
            pointer = self.address(buffer, base, start)
            return self.gpu.load_vector(pointer, buffer.element, width, element_size(buffer))

        def element() -> ir.Value:
            return self.gpu.lane_of(self.once(("vector", buffer, start), [offset], vector), number)

        return self.once(("load", buffer, offset), [offset], element)

    def width_at(self, buffer: Buffer, offset: AffineIndex) -> int:
        """Number of elements that one aligned access can cover at the current lane's offset."""
        lane = self.lane
        if lane is None or offset.coefficient(lane.atom) != 1:
            return 1
        width = min(lane.width, VECTOR // element_size(buffer))
        if width == 1:
            return 1
        others = [a for a in offset.terms if a != lane.atom]
        if any(not self._is_fixed(a, lane) for a in others):
            return 1
        steps = [offset.terms[a] for a in others] + [offset.const + (-lane.number)]
        if all(self.kernel.divisible(s, width) for s in steps) and self.kernel.aligned(
            buffer, width * element_size(buffer)
        ):
            return width
        return 1

    def _is_fixed(self, atom: Atom, lane: ElementLane) -> bool:
        """True if an index is the same for all lanes of a vector."""
        inside = ix.atoms_of(ix.atom(atom))
        depth = self.atoms[lane.atom][1]
        return lane.atom not in inside and all(isinstance(a, (Loop, tuple)) or self.atoms[a][1] < depth for a in inside)

    # --- threads ---------------------------------------------------------------------------------

    @contextmanager
    def only_if(self, condition: ir.Value):
        """Emit code that runs only if a condition holds."""
        with self.scope.point():
            choice = ir.Operation.create("scf.if", operands=[condition], regions=2)
        with self.branch(choice, choice.regions[0].blocks.append()):
            yield
            ir.Operation.create("scf.yield")

    @contextmanager
    def first_only(self, thread: ir.Value):
        """Emit code that runs only in the thread with the number 0."""
        with self.scope.point():
            is_first = self.gpu.equal(thread, self.gpu.constant(0))
        with self.only_if(is_first):
            yield

    # --- reductions ------------------------------------------------------------------------------

    def neutrals(self, carried: Sequence[Carried]) -> list[ir.Value]:
        """The initial values of accumulators: neutral elements."""
        kinds = [c.tensor.element for c in carried]
        return [neutral(self.gpu, c, t) for c, t in zip(combiners_of(carried), kinds, strict=True)]

    def fold(self, carried: Sequence[Carried], totals: Sequence[ir.Value]) -> list[ir.Value]:
        """Fold the current element into the accumulators; returns their new values."""
        new: list[ir.Value] = []
        for op in dict.fromkeys(c.op for c in carried):
            mine = {c.number: t for c, t in zip(carried, totals, strict=True) if c.op is op}
            values = self.body(op, self.own_loops(op), mine)
            new += [values[number] for number in mine]
        return new

    def complete(self, carried: Sequence[Carried], totals: Sequence[ir.Value]) -> None:
        """Remember the results of reductions: initial value and total, combined."""
        for one, combiner, total in zip(carried, combiners_of(carried), totals, strict=True):
            index = self.own_index(one.op, one.number)
            value = combined(self.gpu, combiner, self.initial(one), total)
            self.scope.memo[one.tensor, index] = value

    # --- stores ----------------------------------------------------------------------------------

    def store_lanes(self, atom: Atom, width: int, groups: Sequence[Sequence[Loop]], stage: NestStage) -> None:
        """Evaluate and store the pointwise members of a stage at neighbouring elements."""
        with self.scope.point():
            for op in stage.maps:
                for number, tensor in enumerate(op.outputs):
                    if tensor.buffer is not None:
                        self._store(
                            op,
                            number,
                            tensor,
                            [(lane, *self._member(op, number, tensor)) for lane in self.lanes(atom, width, groups)],
                        )

    def _member(self, op: Compute, number: int, tensor: Tensor) -> tuple[tuple[AffineIndex, ...], ir.Value]:
        index = self.own_index(op, number)
        value = self.remembered((tensor, index))
        return index, value if value is not None else self.inline(op, tensor, index)

    def _store(
        self,
        op: Compute,
        number: int,
        tensor: Tensor,
        elements: list[tuple[ElementLane, tuple[AffineIndex, ...], ir.Value]],
    ) -> None:
        buffer = buffer_of(tensor)
        self.lane, index, _ = elements[0]
        width = self.width_at(buffer, ix.linear(index, strides_of(tensor)))
        self.lane = None
        for start in range(0, len(elements), width):
            part = elements[start : start + width]
            pointer = self.slot(tensor, part[0][1])
            if width == 1:
                self.ops.store(part[0][2], pointer)
            else:
                self.gpu.store_vector([v for _, _, v in part], pointer, element_size(buffer))

    def store_tail(self, inside: Sequence[Loop] = ()) -> None:
        """Store the members without inner loops, in the first iteration of the loops ``inside``."""
        places = [self._placed(loop) for loop in inside if self.nest.tail]
        with ExitStack() as conditions:
            for place in filter(lambda p: p.terms, places):
                with self.scope.point():
                    is_first = self.gpu.equal(self.index_value(place), self.size(0))
                conditions.enter_context(self.only_if(is_first))
            for op in self.nest.tail:
                self.store_outputs(op)


# --- what a nest reads and writes ------------------------------------------------------------


@dataclass(frozen=True)
class Offsets:
    """The element offsets, over nest loops, at which the members of a nest read and store.

    Attributes:
        pairs: tensors with their offsets.
        linear: True if the list is complete and nothing else depends on the loops.
    """

    pairs: tuple[tuple[Tensor, AffineIndex], ...]
    linear: bool


def offsets(nest: Nest) -> Offsets:
    """The offsets at which the members of a nest read and store."""
    group = nest.group
    pairs: list[tuple[Tensor, AffineIndex]] = []
    linear = True
    for op in group.members:
        linear = linear and not _uses_indices(op)
        for access in accesses(op):
            if access.index is not None:
                index = group.index_of(op, access.index)
                pairs.append((access.tensor, ix.linear(index, strides_of(access.tensor))))
            elif not access.reinterpreted:
                linear = False
        for number, tensor in enumerate(op.outputs):
            loops = [loop_index(group.loops[op][k]) for k in op.axes[number]]
            pairs.append((tensor, ix.linear(loops, strides_of(tensor))))
    return Offsets(tuple(pairs), linear)


def _uses_indices(op: Compute) -> bool:
    """True if an operation, or one inlined into it, computes with the indices of its elements."""
    if op.body.loops or op.body.extracts:
        return True
    tensors = [r.tensor for r in op.reads] + [t for t in op.inits if t is not None]
    producers = [t.producer for t in tensors]
    return any(isinstance(p, Compute) and not p.anchor and _uses_indices(p) for p in producers)


def merged(nest: Nest, loops: Sequence[Loop]) -> list[list[Loop]]:
    """Merge neighbouring loops if every access can use one index for both; outermost first."""
    accessed = offsets(nest)
    groups: list[list[Loop]] = []
    for loop in reversed(loops):
        if groups and accessed.linear and _merge(loop, groups[0], accessed):
            groups[0].insert(0, loop)
        else:
            groups.insert(0, [loop])
    return groups


def _merge(outer: Loop, inner: list[Loop], accessed: Offsets) -> bool:
    size = extent(inner)
    return not any(
        any(isinstance(a, ix.Quotient) for a in offset.terms)
        or offset.coefficient(outer) != offset.coefficient(inner[-1]) * size
        for _, offset in accessed.pairs
    )


def spread(groups: Sequence[Sequence[Loop]], linear: AffineIndex) -> dict[Loop, AffineIndex]:
    """The index of each loop, from one index over all iterations of groups of merged loops.

    In a group, the last loop gets the index of the whole group, and all others get 0.
    """
    place: dict[Loop, AffineIndex] = {}
    inner: Dim = 1
    for position, loops in reversed(list(enumerate(groups))):
        size = extent(loops)
        index = linear if inner == 1 else ix.quotient(linear, inner, False)
        if position:
            index = ix.quotient(index, size, True)
        place.update((loop, ix.constant(0)) for loop in loops)
        place[loops[-1]] = index
        inner = inner * size
    return place


def extent(loops: Iterable[Loop]) -> Dim:
    """Number of iterations of merged loops."""
    return ix.product(g.extent for g in loops)


def iterations(groups: Iterable[Sequence[Loop]]) -> Dim:
    """Number of iterations of nested groups of merged loops."""
    return extent(itertools.chain.from_iterable(groups))


def vector_width(nest: Nest, loop: Loop) -> int:
    """Number of elements per thread, so that the narrowest access along ``loop`` has 16 bytes."""
    sizes = [
        element_size(tensor)
        for tensor, offset in offsets(nest).pairs
        if offset.coefficient(loop) == 1 and buffer_or_none(tensor) is not None
    ]
    return min(8, VECTOR // min(sizes)) if sizes else 1
