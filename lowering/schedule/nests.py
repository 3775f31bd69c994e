"""Nests: the loops of a group's members, and the storage of their results.

A nest consists of outer loops around a sequence of stages. An operation that needs a complete
reduction is in a later stage than the reduction. Any other operation is in the earliest possible
stage; operations in one stage pass values in registers.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Dim
from .access import Access
from .graph import Buffer, Compute, Element, Tensor
from .groups import Group, Grouper, Loop, add_scores, loop_index

if TYPE_CHECKING:
    from .chunks import Chunks
    from .tiles import Tiling

TILE = 1024  # elements of a column tile: a few rows of accumulators fit into the L1 cache


@dataclass(eq=False)
class NestStage:
    """Loops inside the outer loops, and the members that their innermost iteration computes.

    Attributes:
        parallel: the parallel loops. They enclose the reduced loops, unless ``in_memory``.
        reduced: the loops over which the stage reduces.
        maps: pointwise members; those with storage are stored.
        reductions: members that reduce over exactly the loops in ``reduced``.
        in_memory: True if accumulators are arrays along the innermost loop, which is then parallel.
        rows: iterations of the innermost reduced loop that are folded, in order, between a load and
            a store of an accumulator in memory: `schedule.columns`.
        alone: (a, b), (c, d) = iterations are folded one by one if ``a <= b`` and ``c > d`` when
            the nest runs; None = sizes do not matter any more.
    """

    parallel: list[Loop]
    reduced: list[Loop] = field(default_factory=list)
    maps: list[Compute] = field(default_factory=list)
    reductions: list[Compute] = field(default_factory=list)
    in_memory: bool = False
    rows: int = 1
    alone: tuple[tuple[Dim, int], tuple[Dim, int]] | None = None

    @property
    def members(self) -> list[Compute]:
        return [*self.maps, *self.reductions]


@dataclass(eq=False)
class Scratch:
    """A temporary array that exists for one iteration of the outer loops.

    Attributes:
        tensor: the tensor that it stores.
        loops: the nest loops that index it.
        axes: the axis of the tensor for each of these loops.
        dims: its sizes; along a tiled loop, the size of a tile.
        buffer: its workspace buffer if it is too large for the stack; else None.
    """

    tensor: Tensor
    loops: list[Loop]
    axes: list[int]
    dims: tuple[Dim, ...]
    buffer: Buffer | None = None

    @property
    def element(self) -> Element:
        return self.tensor.element


@dataclass(eq=False)
class Nest:
    """One function of loops.

    Attributes:
        group: the members and their loops.
        outer: the loops around the stages.
        tile: a loop that is split into tiles; the loop over tiles is around the stages. None = no
            loop is tiled.
        width: elements of a tile.
        stages: the stages, in order.
        tail: members without inner loops that store or accumulate; they run after the stages.
        place: member -> number of its stage; for a member without inner loops, the number of the
            first stage that can follow it.
        scratch: tensor -> temporary array.
        accumulated: reductions over outer loops; their results are complete after the nest.
        tiling: the loops that run in tiles where arrays are large enough; None = none.
        chunks: how threads share the nest; None = it runs on one.
        places: True = the only member goes through the places that its inputs name.
    """

    group: Group
    outer: list[Loop]
    tile: Loop | None = None
    width: int = TILE
    stages: list[NestStage] = field(default_factory=list)
    tail: list[Compute] = field(default_factory=list)
    place: dict[Compute, int] = field(default_factory=dict)
    scratch: dict[Tensor, Scratch] = field(default_factory=dict)
    accumulated: list[Compute] = field(default_factory=list)
    tiling: Tiling | None = None
    chunks: Chunks | None = None
    places: bool = False

    @property
    def divided(self) -> list[Loop]:
        """The loops of which a call of the nest runs a part; empty = a call runs everything."""
        if self.group.aligned is not None:
            return [self.group.aligned.rows]
        if self.chunks is not None:
            return [c.loop for c in self.chunks.choices if c.loop is not None]
        first = self.outer[0] if self.outer else self.tile
        return [] if first is None else [first]

    @property
    def placed(self) -> Compute | None:
        """The only member, if it goes through places that its inputs name; else None."""
        first = self.group.members[0]
        return first if self.places else None

    def inner(self, op: Compute) -> list[Loop]:
        """A member's loops inside the outer loops, without loops of size 1."""
        return [loop for loop in self.group.loops[op] if loop not in self.outer and loop.extent != 1]


def build_nest(group: Group, grouper: Grouper, stored: set[Tensor]) -> Nest:
    """Make the nest of a group; ``stored``: tensors that have a buffer of their own."""
    return _Layout(group, grouper, stored).nest


class _Layout:
    def __init__(self, group: Group, grouper: Grouper, stored: set[Tensor]) -> None:
        self.group, self.stored = group, stored
        self.reads = {op: grouper.accesses[op] for op in group.members}
        self.nest = nest = Nest(group, [g for g in group.outer if g.extent != 1])
        if grouper.places and group.members[0].placed:
            self._go_through_places(group.members[0])
            return
        self._choose_outer()
        for op in group.members:
            self._place(op)
        for stage in nest.stages:
            self._order(stage)
        for op in group.members:
            self._keep(op)

    def _go_through_places(self, op: Compute) -> None:
        """Outer loops: those before the places; then all places; then what has one place."""
        nest, loops = self.nest, self.group.loops[op]
        order = [loops[k] for k in op.axes[0]]
        first = min(map(op.axes[0].index, op.placed))
        reduced = [loops[k] for k in op.loops if op.reduction[k]]
        nest.places, nest.place[op] = True, 0
        nest.outer = [g for g in order[:first] if g.extent != 1]
        nest.stages = [NestStage(order[first:], reduced, reductions=[op], in_memory=True)]

    # --- outer loops ---------------------------------------------------------------------------

    def _choose_outer(self) -> None:
        """Make one outer loop the innermost loop if no member has an inner loop."""
        nest, group = self.nest, self.group
        if group.aligned is not None:
            nest.outer = [*group.aligned.batch, group.aligned.rows]
            return
        if group.lane is not None and group.lane.extent != 1:
            nest.outer.remove(group.lane)
            if is_wide(group.lane):
                nest.tile = group.lane
            return
        if nest.outer and not any(nest.inner(op) for op in group.members):
            nest.outer.remove(self._best(nest.outer, group.members))

    def _best(self, loops: list[Loop], members: list[Compute]) -> Loop:
        """The loop, among ``loops``, along which most memory accesses are contiguous."""
        scores = dict.fromkeys(loops, 0.0)
        for op in members:
            for access in self.reads[op]:
                if access.index is not None and not self._is_own(access):
                    index = self.group.index_of(op, access.index)
                    add_scores(scores, access.tensor, index)
            for number, tensor in enumerate(op.outputs):
                if tensor in self.stored:
                    index = tuple(loop_index(self.group.loops[op][k]) for k in op.axes[number])
                    add_scores(scores, tensor, index, 1.5)
        return max(loops, key=lambda g: (scores[g], loops.index(g)))

    def _is_own(self, access: Access) -> bool:
        """True if a member of the group computes what is read."""
        return access.tensor.producer in self.group.loops

    # --- stages --------------------------------------------------------------------------------

    def _place(self, op: Compute) -> None:
        nest = self.nest
        inner = nest.inner(op)
        reduced = [g for g in inner if g in self.group.reduced(op)]
        if self.group.reduced(op) & set(nest.outer):
            nest.accumulated.append(op)
        least = max((self._earliest(op, a) for a in self.reads[op]), default=0)
        if not inner:
            nest.place[op] = least
            if op in nest.accumulated or any(t in self.stored for t in op.outputs):
                nest.tail.append(op)
            return
        folds = bool(reduced) or op in nest.accumulated
        for number, stage in enumerate(nest.stages):
            if number >= least and _fits(stage, inner, reduced if folds else None):
                break
        else:
            number, stage = len(nest.stages), NestStage(list(inner))
            nest.stages.append(stage)
        nest.place[op] = number
        if folds:
            stage.reductions.append(op)
            stage.reduced = reduced
            stage.parallel = [g for g in stage.parallel if g not in reduced]
        else:
            stage.maps.append(op)

    def _earliest(self, op: Compute, access: Access) -> int:
        """The first stage in which ``op`` can make this read."""
        if not self._is_own(access):
            return 0
        producer = access.tensor.producer
        assert isinstance(producer, Compute)
        place = self.nest.place[producer]
        inner = self.nest.inner(producer)
        if not inner:
            return place
        if any(g in self.group.reduced(producer) for g in inner):
            return place + 1
        forwarded = set(inner) == set(self.nest.inner(op)) and self._same_element(op, access)
        return place if forwarded else place + 1

    def _same_element(self, op: Compute, access: Access) -> bool:
        """True if each iteration of ``op`` reads the element that the same iteration computes."""
        producer = access.tensor.producer
        assert isinstance(producer, Compute) and access.index is not None
        index = self.group.index_of(op, access.index)
        theirs = self.group.loops[producer]
        axes = producer.axes[access.tensor.number]
        return all(i == loop_index(theirs[k]) for i, k in zip(index, axes, strict=True))

    def _order(self, stage: NestStage) -> None:
        """Choose the innermost loop, and whether accumulators are in memory or in registers."""
        loops = [*stage.parallel, *stage.reduced]
        lane = self.group.lane if self.group.lane in loops else self._best(loops, stage.members)
        assert lane is not None
        in_order = any(c is None or c.ordered for op in stage.reductions for c in op.combiners)
        if lane in stage.reduced and in_order:
            lane = stage.reduced[-1]
        stage.in_memory = bool(stage.reductions) and lane in stage.parallel
        for group in (stage.parallel, stage.reduced):
            if lane in group:
                group.remove(lane)
                group.append(lane)

    # --- storage -------------------------------------------------------------------------------

    def _keep(self, op: Compute) -> None:
        """Make temporary arrays for results that later stages read from memory."""
        nest = self.nest
        for number, tensor in enumerate(op.outputs):
            if tensor in self.stored:
                continue
            if self._needs_memory(op, tensor):
                loops = [self.group.loops[op][k] for k in op.axes[number]]
                axes = [k for k, g in enumerate(loops) if g in nest.inner(op)]
                kept = [loops[k] for k in axes]
                dims = tuple(TILE if g is nest.tile else g.extent for g in kept)
                nest.scratch[tensor] = Scratch(tensor, kept, axes, dims)

    def _needs_memory(self, op: Compute, tensor: Tensor) -> bool:
        nest = self.nest
        inner = nest.inner(op)
        if not inner:
            return False
        if op.is_reduction:
            stage = nest.stages[nest.place[op]]
            if stage.in_memory or any(g not in self.group.reduced(op) for g in inner):
                return True
            return op.is_scan and tensor.number == 0
        for other in self.group.members:
            for access in self.reads[other]:
                if access.tensor is tensor and (not nest.inner(other) or nest.place[other] > nest.place[op]):
                    return True
        return False


def is_wide(loop: Loop) -> bool:
    """True if a loop over columns may have more than `TILE` iterations."""
    return not isinstance(loop.extent, int) or loop.extent > TILE


def _fits(stage: NestStage, inner: list[Loop], reduced: list[Loop] | None) -> bool:
    """True if a member over these loops can join a stage; ``reduced`` is None for maps."""
    if set(stage.parallel) | set(stage.reduced) != set(inner):
        return False
    return reduced is None or not stage.reductions or set(stage.reduced) == set(reduced)
