"""The walk over the nodes of a backward run: what tells runs apart, and what is handed to them.

Each class of nodes says by a *lift* what is its part of the key, and appends what is no part of it:
arrays, shapes, hooks, packed data (R4.8). A run whose walk has been met before traces nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any

import numpy as np

from ...dialect.trees.leaves import NUMBERS
from ..plans.differentiable import DiffNode
from ..tape.custom_functions import CustomNode
from ..tape.eager_builder import Unsaved
from ..tape.engine import Captures, leading_to
from ..tape.node import Accumulate, Node
from ..tape.op_node import OpNode, PackedNode
from ..tape.plans import may_change
from ..tape.saved import Packed, check, freed, overwritten
from .foreign_calls import CustomCall, NodeCall, calls_of, unpack_hook
from .snapshot import Roots, RunSnapshot, check_hooks, reached

Shape = tuple[int, ...]
_seq = attrgetter("seq")
UNRECORDED: set[Hashable] = set()
"""Keys of nodes whose rules ask for what is known in a run alone."""


class Walk:
    """The inputs of a backward run, in the order in which its nodes are walked.

    The nodes come in the order in which they run, leaves in front.

    Args:
        roots, captures: of the run.
        places: its nodes, if these are known.
        taken: what its nodes have had, of a run that has ended; of hooks there are numbers only.

    Attributes:
        nodes: all that the roots depend on.
        needed: those that run; None = all.
        steps: the part of the key of each node, after that of the roots.
        arrays: lifted arrays, one entry for each use.
        shapes: of lifted arrays, of gradients and of what was not saved.
        scalars, hooks, packed, leaves: what else is lifted.
        numbers: operands of ops that are numbers, bounds among their attributes, and floats that
            subgraphs have captured.
        marks: how long these lists were in front of each node, and behind the last one.
        opaque: nodes that run as they are, so that they are released after the run.
    """

    __slots__ = (
        "arrays",
        "captures",
        "hooks",
        "leaves",
        "marks",
        "needed",
        "nodes",
        "numbers",
        "opaque",
        "packed",
        "places",
        "roots",
        "scalars",
        "shapes",
        "steps",
        "taken",
    )

    def __init__(
        self,
        roots: Roots,
        captures: Captures | None,
        places: dict[Node, int] | None = None,
        taken: RunSnapshot | None = None,
    ) -> None:
        self.roots, self.captures, self.taken = roots, captures, taken
        self.arrays: list[Any] = []
        self.shapes: list[Shape] = []
        self.scalars: list[Any] = []
        self.hooks: list[Any] = []
        self.packed: list[Any] = []
        self.leaves: list[Any] = []
        self.numbers: list[float] = []
        self.opaque: list[Node] = []
        self.marks: list[tuple[int, ...]] = []
        self.places = places = reached(roots) if places is None else places
        self.nodes = nodes = sorted(places, key=_seq, reverse=True)
        for k, node in enumerate(nodes):
            places[node] = k
        self.needed = None if captures is None else leading_to(nodes, captures)
        self.steps: list[Hashable] = []
        self._lift_all()

    def _lift_all(self) -> None:
        places, shapes, arrays = self.places, self.shapes, self.arrays
        first = []
        for node, index, g in self.roots:
            arrays.append(g)
            shapes.append(g.shape)
            first.append((places[node], index, g.dtype))
        targets = None
        if self.captures is not None:
            targets = tuple((places.get(node), *at) for node, at in self.captures.items())
        steps = self.steps
        steps.append((*first, targets))
        needed, mark = self.needed, self.marks.append
        scalars, callers, packed, leaves = self.scalars, self.hooks, self.packed, self.leaves
        numbers, snapshot = self.numbers, self.taken
        add, shape_of, is_plain = steps.append, shapes.append, not UNRECORDED
        for node in self.nodes:
            mark((len(arrays), len(shapes), len(scalars), len(callers), len(packed), len(leaves), len(numbers)))
            for meta in node.metas:
                shape_of(meta[0])
            if snapshot is None:
                hooks = None if node.hooked is None else hooks_of(node, callers)
            else:
                hooks = snapshot.hooks(node, callers)
            edges = node.edges
            if len(edges) == 1:  # the most frequent, and the shortest
                edge = edges[0]
                places_of: Hashable = None if edge is None else (places[edge[0]], edge[1])
            else:
                places_of = tuple([e and (places[e[0]], e[1]) for e in edges])
            if needed is not None and node not in needed:
                add((places_of, hooks, "not needed"))
                continue
            kind = node.__class__
            if kind is Accumulate:
                leaves.append(node.leaf())  # type: ignore[attr-defined]
                add((meta[1], hooks))
                continue
            lift = LIFTS.get(kind, lift_opaque)
            add((lift(node, self) if is_plain else self._recorded(lift, node), places_of, hooks))
        mark(self.lengths())

    def _recorded(self, lift: Callable[[Any, Walk], Hashable], node: Node) -> Hashable:
        """The key of a node; of one whose like could not be recorded, as it is called as it is."""
        before = self.lengths()
        key = lift(node, self)
        if key not in UNRECORDED:
            return key
        for entries, length in zip(self._lists(), before, strict=True):
            del entries[length:]
        return lift_opaque(node, self)

    def lengths(self) -> tuple[int, ...]:
        """The number of lifted values: the entry of `marks` for a node that is walked now."""
        return tuple(map(len, self._lists()))

    def _lists(self) -> tuple[list[Any], ...]:
        return (self.arrays, self.shapes, self.scalars, self.hooks, self.packed, self.leaves, self.numbers)

    def keep(self, x: Any) -> Hashable:
        """Lift one saved value; its part of the key.

        Nothing that a dtype would be equal to, as None is to that of float64.
        """
        kind = x.__class__
        if x is None:
            return 0
        if kind is np.ndarray or isinstance(x, np.generic):
            self.arrays.append(x)
            self.shapes.append(x.shape)
            return x.dtype
        if kind is Unsaved:
            self.shapes.append(() if x.is_unknown else x.shape)
            return "unsaved", x.dtype, x.is_unknown
        if kind is Packed:
            self.packed.append(x)
            self.hooks.append(unpack_hook)
            self.shapes.append(x.shape)
            return "packed", x.dtype
        return "number", kind.__name__, repr(x)


def pattern_of(arrays: list[Any]) -> list[int]:
    """For each array, which of the different ones it is."""
    numbers: dict[int, int] = {}
    number = numbers.setdefault
    return [number(id(x), len(numbers)) for x in arrays]


def hooks_of(node: Node, callers: list[Any]) -> Hashable:
    """The counts and positions of a node's hooks (R4.8); what calls them is added to ``callers``."""
    hooks = node.hooked
    if hooks is None:
        return None
    if hooks.retained:
        check_hooks(node)
    key, calls = calls_of(hooks)
    callers += calls
    return key


def lift_op(node: OpNode, walk: Walk) -> Hashable:
    """The lift of an op of the table; what its key is, its plan knows."""
    saved = node.saved if walk.taken is None else walk.taken.saved[node]
    plan = node.plan
    if saved is None:
        raise freed(plan.op.name, node.loc)
    operands, results, versions = saved
    for version, count in versions:
        if version.count != count and walk.taken is None:
            raise overwritten(version, plan.op.name, node.loc)
    arrays, shapes = walk.arrays, walk.shapes
    for x in operands:
        if x.__class__ is np.ndarray:
            arrays.append(x)
            shapes.append(x.shape)
        elif x is not None:
            walk.keep(x)
    for k in plan.kept_results:
        y = results[k]
        if y.__class__ is np.ndarray:
            arrays.append(y)
            shapes.append(y.shape)
        else:
            walk.keep(y)
    stamp = plan.stamp or plan.stamped()
    if plan.numbers:
        walk.numbers += [operands[k] for k in plan.numbers]
    elif plan.bounds:
        walk.numbers += plan.bounds
    elif plan.any_number:  # they are told by their values
        return stamp, tuple([repr(x) for x in operands if type(x) in NUMBERS])
    return stamp


def lift_packed(node: PackedNode, walk: Walk) -> Hashable:
    """The lift of an op of which functions of users have packed what is saved."""
    before = len(walk.packed)
    stamp = lift_op(node, walk)
    if len(walk.packed) == before:
        return stamp  # as if nothing had been packed
    operands, results, _ = node.saved  # type: ignore[misc]
    return "packed", stamp, tuple(type(x) is Packed for x in (*operands, *results))


def lift_diff(node: DiffNode, walk: Walk) -> Hashable:
    """The lift of a differentiable subgraph: what its reverse half takes besides gradients."""
    captures = node.captures if walk.taken is None else walk.taken.saved[node]
    if captures is None:
        raise freed(node.op.name, node.loc)
    if node.versions and walk.taken is None:
        check(node.versions, node.op.name, node.loc)
    dtypes = tuple([m[1] for m in node.metas])
    kinds: list[Hashable] = []
    for x, _ in captures:
        if type(x) is float and may_change(x):  # an int may be a size
            walk.numbers.append(x)
            kinds.append(float)
        else:
            kinds.append(walk.keep(x))
    return node.op, dtypes, tuple(kinds)


def lift_custom(node: CustomNode, walk: Walk) -> Hashable:
    """The lift of a function with a gradient of its own (R4.22): numbers among its data as well."""
    saved = node.saved
    if saved is None:
        raise freed(node.what, node.loc)
    if saved[2]:
        check(saved[2], node.what, node.loc)
    walk.hooks.append(CustomCall(node))
    kinds: list[Hashable] = []
    for group in saved[:2]:
        for x in group:
            if type(x) in (int, float):
                walk.scalars.append(x)
                kinds.append(1 if type(x) is int else 2)
            elif isinstance(x, (np.ndarray, np.generic, Packed)):
                kinds.append(walk.keep(x))
            else:
                kinds.append(3)  # the call holds it
    return node.custom, tuple(kinds), len(saved[0]), tuple([m[1] for m in node.metas])


def lift_opaque(node: Node, walk: Walk) -> Hashable:
    """The lift of a node that nobody knows more of: it is called as it is."""
    walk.hooks.append(NodeCall(node))
    walk.opaque.append(node)
    return node.__class__, tuple([m[1] for m in node.metas])


LIFTS: dict[type[Node], Callable[[Any, Walk], Hashable]] = {
    OpNode: lift_op,
    PackedNode: lift_packed,
    DiffNode: lift_diff,
    CustomNode: lift_custom,
}
