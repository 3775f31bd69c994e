"""Grouping: which operations share a loop nest, and over which common outer loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Union

from ...dialect.dataclass import dataclass
from ...dialect.ir.postorder import postorder
from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .access import Access, accesses
from .affine import AffineIndex
from .graph import Compute, Graph, Product, RowMajorReshape, Tensor, operands
from .memory import strides_of

if TYPE_CHECKING:
    from .block_steps import BlockStep


@dataclass(eq=False)
class Loop:
    """A loop of a nest; ``extent`` is its size, ``serial`` a number for its name.

    ``span``: the first index and the number of those that it goes through; None = all.
    """

    extent: Dim
    serial: int
    span: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"i{self.serial}"


@dataclass(frozen=True)
class Aligned:
    """The loops of a group that run on blocks: `schedule.block_steps`.

    Attributes:
        batch: the loops over matrices, outermost first; the number of a matrix is row-major.
        rows: the loop over the rows of a matrix.
    """

    batch: tuple[Loop, ...]
    rows: Loop


@dataclass(eq=False)
class Group:
    """Operations computed in one nest.

    Attributes:
        members: the operations, in dependence order.
        outer: the loops that all members share. Their iterations are independent, except for
            reductions over them; no member reads the results of those.
        loops: member -> the nest loop of each of its own loops.
        lane: the outer loop that has to be innermost, in a group that reduces columns; else None.
        after: steps that must run before this group.
        aligned: the loops around all stages, of a group that runs on blocks; else None.
    """

    members: list[Compute] = field(default_factory=list)
    outer: list[Loop] = field(default_factory=list)
    loops: dict[Compute, list[Loop]] = field(default_factory=dict)
    lane: Loop | None = None
    after: set[Step] = field(default_factory=set)
    aligned: Aligned | None = None

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that the members define."""
        return [tensor for op in self.members for tensor in op.outputs]

    def reduced(self, op: Compute) -> set[Loop]:
        """The nest loops over which a member reduces."""
        return {self.loops[op][k] for k in op.loops if op.reduction[k]}

    def index_of(self, op: Compute, index: Sequence[AffineIndex]) -> tuple[AffineIndex, ...]:
        """Translate index expressions over a member's loops to expressions over nest loops."""
        loops = self.loops[op]
        return ix.substituted(index, lambda k: loop_index(loops[k]))


Step = Union[Group, Product, "BlockStep"]


def loop_index(loop: Loop) -> AffineIndex:
    """The index expression of a loop; it is 0 for a loop of size 1."""
    return ix.constant(0) if loop.extent == 1 else ix.atom(loop)


class Grouper:
    """Builds the groups of a graph, after its anchors have been chosen.

    Args:
        graph: the graph.
        accumulate: True = reductions over a group's outer loops may join the group.
        one_row: operations of at most this many elements may share a nest without a shared loop.
        places: True = nests may go through places that inputs name; else they go through all.
    """

    def __init__(self, graph: Graph, accumulate: bool = True, one_row: int = 0, places: bool = False) -> None:
        self.graph, self.accumulate, self.one_row = graph, accumulate, one_row
        self.places = places
        self.steps: list[Step] = []
        self.home: dict[Tensor, Step] = {}
        self.accesses: dict[Compute, list[Access]] = {}
        self._product_after: dict[Product, set[Step]] = {}
        self._serial = 0
        for op in graph.operations:
            if isinstance(op, Product):
                self._product(op)
            elif isinstance(op, Compute) and op.anchor:
                self._compute(op)
        self.steps = ordered(self.steps, self.before)

    def before(self, step: Step) -> set[Step]:
        """Steps that must run before this one."""
        return self._product_after[step] if isinstance(step, Product) else step.after

    def reads(self, step: Step) -> list[Tensor]:
        """The stored tensors that a step reads, with repetitions."""
        if isinstance(step, Product):
            tensors = [*step.read_through_views, *operands(step)[2:]]
        elif isinstance(step, Group):
            tensors = [a.tensor for op in step.members for a in self.accesses[op]]
        else:
            return [t for part in step.parts for t in self.reads(part)]
        return [t for tensor in tensors for t in stored_roots(tensor)]

    def replace(self, steps: Sequence[Group | Product], by: BlockStep) -> None:
        """Let one step take the place of several; what it needs of other steps is kept."""
        by.after = set().union(*map(self.before, steps)) - set(steps)
        kept = [step for step in self.steps if step not in steps]
        for step in kept:
            before = self.before(step)
            if not before.isdisjoint(steps):
                before -= set(steps)
                before.add(by)
        self.home = {t: by if home in steps else home for t, home in self.home.items()}
        place = self.steps.index(steps[-1])
        self.steps = ordered([*kept[: place + 1 - len(steps)], by, *kept[place + 1 - len(steps) :]], self.before)

    def _product(self, op: Product) -> None:
        tensors: list[Tensor] = []
        for tensor in operands(op):
            tensors += stored_roots(tensor)
        self._product_after[op] = {self.home[t] for t in tensors if t in self.home}
        self.steps.append(op)
        self.home[op.output] = op

    def _compute(self, op: Compute) -> None:
        reads = accesses(op)
        self.accesses[op] = reads
        needs = {self.home[t] for a in reads for t in stored_roots(a.tensor) if t in self.home}
        producers = [s for s in self.steps if isinstance(s, Group) and s in needs]
        chosen = None
        for group in reversed(producers):
            if self._joins(op, reads, group, needs):
                chosen = group
                break
        if chosen is None and not producers:
            for step in reversed(self.steps):
                if isinstance(step, Group) and self._joins_beside(op, reads, step, needs):
                    chosen = step
                    break
        if chosen is None:
            chosen = self._start(op, reads)
        chosen.after |= needs - {chosen}
        for tensor in op.outputs:
            self.home[tensor] = chosen

    def _loop(self, extent: Dim) -> Loop:
        self._serial += 1
        return Loop(extent, self._serial - 1)

    def _start(self, op: Compute, reads: list[Access]) -> Group:
        loops = [self._loop(e) for e in op.extents]
        for loop, first, size in op.part if op.partial else ():
            loops[loop].span = first, size
        group = Group([op], [], {op: loops})
        group.outer = [loop for k, loop in enumerate(loops) if not op.reduction[k]]
        if op.is_reduction:
            lane = best_lane(op, reads)
            if lane is not None and not op.reduction[lane]:
                group.lane = loops[lane]
        self.steps.append(group)
        return group

    def absorb(self, into: Group, group: Group, loops: dict[Loop, Loop]) -> None:
        """Move the members of a group into another; ``loops``: its loops there."""
        for op in group.members:
            into.members.append(op)
            into.loops[op] = [loops.get(loop, loop) for loop in group.loops[op]]
            for tensor in op.outputs:
                self.home[tensor] = into
        for step in self.steps:
            if group in self.before(step):
                self.before(step).discard(group)
                self.before(step).add(into)
        into.after = (into.after | group.after) - {into, group}
        self.steps.remove(group)
        self.steps = ordered(self.steps, self.before)

    # --- joining -------------------------------------------------------------------------------

    def reaches(self, start: Step, goal: Step) -> bool:
        """True if ``start`` has to run after ``goal``."""
        seen, work = {start}, [start]
        while work:
            for step in self.before(work.pop()):
                if step is goal:
                    return True
                if step not in seen:
                    seen.add(step)
                    work.append(step)
        return False

    def _joins(self, op: Compute, reads: list[Access], group: Group, needs: set[Step]) -> bool:
        """Add ``op`` to a group that computes some of its operands, if possible; returns if so."""
        if any(one.placed or one.partial for one in (op, *group.members)):
            return False
        if any(s is not group and self.reaches(s, group) for s in needs):
            return False
        inside = [a for a in reads if any(self.home.get(t) is group for t in stored_roots(a.tensor))]
        if any(a.index is None or a.reinterpreted or a.tensor not in self.home for a in inside):
            return False
        loops = self._match(op, inside, group)
        dropped: set[Loop] = set()
        for access in inside:
            producer = access.tensor.producer
            assert isinstance(producer, Compute)
            if producer.is_scan and access.tensor.number == 0:
                continue
            dropped |= group.reduced(producer)
        outer = [g for g in group.outer if g not in dropped]
        if all(g.extent == 1 for g in outer) and self._is_one_row(op, group):
            outer = []
        elif not outer:
            return False
        # Loops of size 1 are the same for all, if others are left to be shared.
        shared = [g for g in outer if g.extent != 1] or outer
        if any(g not in loops.values() for g in shared):
            return False
        for access in inside:
            if not _aligned(access, group, loops, shared):
                return False
        own = [loops.get(k) or self._loop(op.extents[k]) for k in op.loops]
        if group.lane is not None and (set(own) != set(outer) or op.is_reduction):
            return False
        if op.is_reduction and not self._reduction_fits(op, reads, own, outer):
            return False
        if not op.is_reduction and _runs_across(op, reads, own, outer):
            return False
        group.outer = outer
        group.members.append(op)
        group.loops[op] = own
        return True

    def _is_one_row(self, op: Compute, group: Group) -> bool:
        """True if an operation and a group together work on one small row of elements."""
        if not self.one_row or not all(map(_is_of_row, [op, *group.members])):
            return False
        if ix.product(op.extents) == 1:
            return True
        sizes = [ix.product(member.extents) for member in [op, *group.members]]
        return all(isinstance(n, int) and n <= self.one_row for n in sizes)

    def _reduction_fits(self, op: Compute, reads: list[Access], own: list[Loop], outer: list[Loop]) -> bool:
        reduced = {own[k] for k in op.loops if op.reduction[k]}
        inner = reduced - set(outer)
        if reduced & set(outer) and not (self.accumulate and all(op.combiners)):
            # The accumulators would have to live across all iterations of the outer loops.
            return False
        return not inner or not _runs_across(op, reads, own, outer)

    def _match(self, op: Compute, inside: list[Access], group: Group) -> dict[int, Loop]:
        """Map loops of ``op`` to loops of the group that run over the same index."""
        loops: dict[int, Loop] = {}
        for access in inside:
            producer = access.tensor.producer
            assert isinstance(producer, Compute) and access.index is not None
            for axis, index in enumerate(access.index):
                loop = index.single
                if not isinstance(loop, int):
                    continue
                counterpart = group.loops[producer][producer.axes[access.tensor.number][axis]]
                is_new = loop not in loops and counterpart not in loops.values()
                if is_new and op.extents[loop] == counterpart.extent:
                    loops[loop] = counterpart
        return loops

    def _joins_beside(self, op: Compute, reads: list[Access], group: Group, needs: set[Step]) -> bool:
        """Add ``op`` to a group with equal loops and an equal read, if possible; returns if so."""
        if any(self.reaches(s, group) for s in needs):
            return False
        like = group.members[0]
        if op.placed or like.placed or op.partial or like.partial:
            return False
        if like.reduction != op.reduction or like.extents != op.extents or op.is_scan:
            return False
        if like.is_scan or not op.extents or op.axes[0] != like.axes[0]:
            return False
        ours = {a for a in reads if a.index is not None}
        if not any(a in ours for a in self.accesses[like]):
            return False
        group.members.append(op)
        group.loops[op] = group.loops[like]
        return True


def _runs_across(op: Compute, reads: Sequence[Access], own: Sequence[Loop], outer: Sequence[Loop]) -> bool:
    """True if an operation would have inner loops, but its best innermost loop is an outer one."""
    lane = best_lane(op, reads)
    inner = any(loop.extent != 1 and loop not in outer for loop in own)
    return inner and lane is not None and own[lane] in outer


def _is_of_row(op: Compute) -> bool:
    """True for elementwise operations, and for reductions over all loops in any order."""
    if not op.is_reduction:
        return True
    return (
        not op.is_scan
        and all(op.reduction[k] or op.extents[k] == 1 for k in op.loops)
        and all(c is not None and not c.ordered for c in op.combiners)
    )


def _aligned(access: Access, group: Group, loops: dict[int, Loop], outer: Sequence[Loop]) -> bool:
    """True if each outer iteration reads only elements that the same iteration has computed."""
    producer = access.tensor.producer
    assert isinstance(producer, Compute) and access.index is not None
    theirs = group.loops[producer]
    axes = {theirs[loop]: axis for axis, loop in enumerate(producer.axes[access.tensor.number])}
    for loop in outer:
        if loop not in axes:
            return False
        single = access.index[axes[loop]].single
        if not isinstance(single, int) or loops.get(single) is not loop:
            return False
    return True


def stored_roots(tensor: Tensor) -> list[Tensor]:
    """The stored tensors on which a read of ``tensor`` depends, through reshapes and inlining."""
    return [t for t in postorder([tensor], _seen_through) if not _is_seen_through(t)]


def _is_seen_through(tensor: Tensor) -> bool:
    producer = tensor.producer
    if isinstance(producer, Compute):
        return not producer.anchor
    return isinstance(producer, RowMajorReshape)


def _seen_through(tensor: Tensor) -> list[Tensor]:
    """The tensors that a reshape or an inlined operation reads; empty for other tensors."""
    if not _is_seen_through(tensor):
        return []
    producer = tensor.producer
    if isinstance(producer, RowMajorReshape):
        return [producer.source]
    assert isinstance(producer, Compute)
    return [a.tensor for a in accesses(producer)]


def best_lane(op: Compute, reads: Sequence[Access]) -> int | None:
    """The loop that, as the innermost one, makes most accesses of an operation contiguous."""
    scores = dict.fromkeys(op.loops, 0.0)
    for access in reads:
        if access.index is not None:
            add_scores(scores, access.tensor, access.index)
    wide = [k for k in op.loops if op.extents[k] != 1]
    if not wide:
        return None
    return max(wide, key=lambda k: (scores[k], k))


def add_scores(scores: dict[Any, float], tensor: Tensor, index: Sequence[AffineIndex], weight: float = 1.0) -> None:
    """Add to the score of each loop how well an access vectorises if that loop is innermost."""
    offset = ix.linear(index, strides_of(tensor))
    if tensor.rank < 2:
        weight *= 0.5  # a small operand stays in cache whatever the order
    for loop in scores:
        scores[loop] += weight * lane_value(offset.coefficient(loop))


def lane_value(stride: Dim) -> float:
    """A score of a step of ``stride`` elements per iteration: higher vectorises better."""
    if stride == 0:
        return 0.0
    return 1.0 if stride == 1 else 0.5 if stride == -1 else -1.0


def ordered(steps: list[Step], before) -> list[Step]:
    """Sort steps by dependence, and keep the given order otherwise."""
    place = {step: number for number, step in enumerate(steps)}
    return list(postorder(steps, lambda step: sorted(before(step), key=place.__getitem__)))
