"""The outline of a walk: what a capture needs of it, without any array.

A run frees what its nodes have saved. What is captured beside it, or behind it, is captured from
the outline, which keeps dtypes and shapes in the place of arrays, and counts in the place of hooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..plans.differentiable import DiffNode
from ..tape.custom_functions import CustomNode
from ..tape.engine import Captures
from ..tape.node import Node
from ..tape.op_node import OpNode, PackedNode
from ..tape.saved import Packed
from .snapshot import HookCounts, RunSnapshot
from .walk import Shape, Walk, pattern_of

_ARRAYS = (np.ndarray, np.generic)


class Stand:
    """Stands for an array, or for one that functions of users have packed."""

    __slots__ = ("dtype", "packed", "shape")

    def __init__(self, x: Any) -> None:
        self.shape, self.dtype = x.shape, x.dtype
        self.packed = x.__class__ is Packed


_LIFTED = (Stand, int, float)


class Outline:
    """The part of a walk that is kept.

    Attributes:
        nodes, places, needed, captures, steps, shapes, marks: those of the walk.
        roots: nodes, which of their outputs, and a `Stand` for its gradient.
        pattern: for each lifted array, which of the different ones it is.
        arrays: dtype and number of axes of each different array.
        scalars: the types of lifted numbers.
        numbers: those of the walk, which are lifted once they have changed.
        hooks, packed, leaves: how much of these there is.
        opaque: nodes that run as they are.
        saved: of each node that can be recorded what it has saved, in lists: numbers and `Unsaved`
            as they are, a `Stand` for each array.
        hooked: of each node with hooks, which.
    """

    __slots__ = (
        "arrays",
        "captures",
        "hooked",
        "hooks",
        "leaves",
        "marks",
        "needed",
        "nodes",
        "numbers",
        "opaque",
        "packed",
        "pattern",
        "places",
        "roots",
        "saved",
        "scalars",
        "shapes",
        "steps",
    )

    def __init__(self, walk: Walk, pattern: Sequence[int]) -> None:
        self.nodes: list[Node] = walk.nodes
        self.places: Mapping[Node, int] = walk.places
        self.needed: set[Node] | None = walk.needed
        self.captures: Captures | None = walk.captures
        self.steps, self.marks, self.pattern = walk.steps, walk.marks, pattern
        self.shapes: list[Shape] = walk.shapes
        self.roots = [(node, index, Stand(g)) for node, index, g in walk.roots]
        self.arrays: list[tuple[np.dtype, int]] = []
        for x, number in zip(walk.arrays, pattern, strict=True):
            if number == len(self.arrays):
                self.arrays.append((x.dtype, x.ndim))
        self.scalars = [type(x) for x in walk.scalars]
        self.numbers: list[float] = walk.numbers
        self.hooks, self.packed, self.leaves = map(len, (walk.hooks, walk.packed, walk.leaves))
        self.opaque = set(walk.opaque)
        self.saved: dict[Node, list[list[Any]]] = {}
        self.hooked: dict[Node, HookCounts] = {}
        self._outline(walk)

    def _outline(self, walk: Walk) -> None:
        snapshot = walk.taken
        stands: dict[int, Stand] = {}  # of arrays that live as long as this method runs

        def stand(x: Any) -> Any:
            if x.__class__ is Packed or isinstance(x, _ARRAYS):
                placeholder = stands.get(id(x))
                if placeholder is None:
                    placeholder = stands[id(x)] = Stand(x)
                return placeholder
            return x

        if snapshot is not None:
            self.hooked = snapshot.hooked
        for node in self.nodes:
            if snapshot is None and node.hooked is not None:
                self.hooked[node] = HookCounts(node.hooked)
            kind = node.__class__
            if kind is DiffNode:
                captures = node.captures if snapshot is None else snapshot.saved[node]  # type: ignore[attr-defined]
                if captures is not None:
                    self.saved[node] = [[stand(x) for x, _ in captures]]
                continue
            if kind is OpNode or kind is PackedNode or kind is CustomNode:
                saved = node.saved if snapshot is None else snapshot.saved[node]  # type: ignore[attr-defined]
                if saved is not None:
                    first, second, _ = saved
                    groups = [[x if x is None else stand(x) for x in group] for group in (first, second)]
                    if kind is CustomNode:  # the call holds what else there is
                        groups = [[x if x.__class__ in _LIFTED else None for x in g] for g in groups]
                    self.saved[node] = groups


def outlined(taken: RunSnapshot) -> Outline:
    """The outline of a run that has ended."""
    walk = Walk(taken.roots, taken.captures, dict.fromkeys(taken.nodes, 0), taken)
    return Outline(walk, pattern_of(walk.arrays))
