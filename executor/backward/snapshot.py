"""Snapshots of what a backward run is about to free: it is walked beside the program.

A run of so many nodes as none before has to be captured: it need not be walked to find that out.
So it is not, and what its nodes have saved outlives it until it is walked beside the program. That
is for runs that hold little memory; others are walked, and outlined, by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import GradientError
from ..plans.differentiable import DiffNode
from ..tape.engine import Captures
from ..tape.hooks import Hooks
from ..tape.node import Accumulate, Node
from ..tape.op_node import OpNode

Roots = Sequence[tuple[Node, int, Any]]
Key = tuple[int, ...]
_MOST = 1 << 20  # bytes that a snapshot keeps from being freed


class HookCounts:
    """The hooks of a node: the outputs of its tensor hooks, and how many there are of each kind."""

    __slots__ = ("accumulated", "outputs", "post", "pre")

    def __init__(self, hooks: Hooks) -> None:
        self.outputs = [index for index, _ in hooks.outputs.values()]
        self.pre, self.accumulated, self.post = map(len, (hooks.pre, hooks.accumulated, hooks.post))

    @property
    def key(self) -> Key:
        """The part of the key of a run that they are (R4.8)."""
        return (*self.outputs, -1, self.pre, self.accumulated, self.post)

    def __len__(self) -> int:
        return len(self.outputs) + self.pre + self.accumulated + self.post


class RunSnapshot:
    """The values that the nodes of a run have had.

    Attributes:
        roots, captures: of the run.
        nodes: all that the roots depend on, in no order.
        saved: of nodes that have operands, what they have saved.
        hooked: of each node with hooks, which.
    """

    __slots__ = ("captures", "hooked", "nodes", "roots", "saved")

    def __init__(self, roots: Roots, captures: Captures | None, nodes: Iterable[Node]) -> None:
        self.roots, self.captures, self.nodes = roots, captures, nodes
        self.saved: dict[Node, Any] = {}
        self.hooked: dict[Node, HookCounts] = {}

    def hooks(self, node: Node, callers: list[Any]) -> Key | None:
        """The part of the key of a node's hooks; ``callers`` gets None for each of them."""
        counts = self.hooked.get(node)
        if counts is None:
            return None
        callers += [None] * len(counts)
        return counts.key


def reached(roots: Roots) -> dict[Node, int]:
    """The nodes that roots depend on, each with 0."""
    places = dict[Node, int].fromkeys((root[0] for root in roots), 0)
    todo = list(places)
    pop, push = todo.pop, todo.append
    while todo:
        for edge in pop().edges:
            if edge is not None:
                node = edge[0]
                if node not in places:
                    places[node] = 0
                    push(node)
    return places


def taken(roots: Roots, captures: Captures | None, nodes: Iterable[Node]) -> RunSnapshot | None:
    """A snapshot of a run; None where it would keep much memory, or has nodes of other classes."""
    snapshot = RunSnapshot(roots, captures, nodes)
    saved, budget = snapshot.saved, _MOST
    ndarray = np.ndarray
    for node in nodes:
        kind = node.__class__
        if node.hooked is not None:
            check_hooks(node)
            snapshot.hooked[node] = HookCounts(node.hooked)
        if kind is OpNode:
            contents = saved[node] = node.saved  # type: ignore[attr-defined]
            if contents is None:
                return None
            for x in contents[0]:
                if x.__class__ is ndarray:
                    budget -= x.nbytes if x.base is None else _held(x)
            for x in contents[1]:
                if x.__class__ is ndarray:
                    budget -= x.nbytes if x.base is None else _held(x)
        elif kind is DiffNode:
            contents = saved[node] = node.captures  # type: ignore[attr-defined]
            if contents is None:
                return None
            for x, _ in contents:
                if x.__class__ is ndarray:
                    budget -= _held(x)
        elif kind is not Accumulate:
            return None
        if budget < 0:
            return None
    return snapshot


def _held(x: np.ndarray) -> int:
    """The bytes that a view keeps from being freed."""
    base = x.base
    return x.nbytes if base is None else max(x.nbytes, getattr(base, "nbytes", 0))


def check_hooks(node: Node) -> None:
    """Raise GradientError for a node whose output retains its gradient (R4.6)."""
    if node.hooked is not None and node.hooked.retained:
        raise GradientError(
            f"compiled_autograd meets an array that retains its gradient, of {node.name}",
            loc=node.loc,
            hint="write y.register_hook(f), and keep the gradient in f",
        )
