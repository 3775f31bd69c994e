"""The engine: runs nodes backwards, the one that was made last first, without recursion.

A leaf's gradient is added up as soon as it is complete. Both together are torch's order, so that
hooks and sums of gradients come in the same order as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from ...dialect.errors import GradientError
from ...dialect.ir import gradient_mode
from .hooks import count
from .node import TAPE, Accumulate, Node

Captures = Mapping[Node, Sequence[tuple[int, int]]]  # node -> (its output, position in the result)


def run(
    roots: Sequence[tuple[Node, int, Any]],
    captures: Captures | None = None,
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> list[Any]:
    """Run the nodes that ``roots`` depend on; returns the captured gradients, None for 0.

    Args:
        roots: nodes, which of their outputs, and its gradient.
        captures: outputs whose gradients are returned. If given, nodes on the way to them run
            alone, and no leaf gets a gradient. None = leaves get theirs.
        retain_graph: nodes keep what they need, so that they can run again.
        create_graph: gradients are themselves differentiable.

    Hooks that are registered meanwhile count from the next run.
    """
    captured = TAPE.captured
    if captured is not None and not create_graph and not TAPE.anomalies:
        return captured(roots, captures, retain_graph)
    made = _Run(captures, retain_graph)
    waiting = _dependencies([root[0] for root in roots])
    needed = None if captures is None else leading_to(waiting, captures)
    usual = None if TAPE.anomalies else waiting if needed is None else needed.difference(captures)  # type: ignore[arg-type]
    held: dict[Node, list[Any]] = {}
    for node, index, g in roots:
        _hold(held, node, index, g)
    roots = ()
    pushed = len(held)
    ready = [(-node.seq, k, node) for k, node in enumerate(held) if not waiting[node]]
    heapify(ready)
    before = gradient_mode.set_gradient_mode(create_graph)
    try:
        with np.errstate(all="ignore"):
            while ready:
                node = heappop(ready)[2]
                gs = held.pop(node, None)
                if usual is not None and node.hooked is None and node in usual and (
                    gs is not None and gs[0] is not None
                ):  # fmt: skip
                    pulled = node.backward(gs)
                    if not retain_graph:
                        node.release()
                else:
                    gs = gs or [None] * len(node.metas)
                    pulled = made.pulled(node, gs, needed is None or node in needed)
                del gs
                for edge, g in zip(node.edges, pulled, strict=True):
                    if edge is None:
                        continue
                    target, index = edge
                    left = waiting[target] = waiting[target] - 1
                    if g is not None:
                        gs = held.get(target)
                        if gs is not None:
                            other = gs[index]
                            gs[index] = g if other is None else other + g
                        elif left or target.__class__ is not Accumulate or target.hooked is not (
                            None
                        ) or usual is not waiting:  # fmt: skip
                            gs = held[target] = [None] * len(target.metas)
                            gs[index] = g
                        else:
                            # At once, as nobody sees the order. `pulled` and `zip` hold it, too.
                            target.take(g, 3)
                            continue
                    if not left:
                        heappush(ready, (-target.seq, pushed, target))
                        pushed += 1
                pulled, g, gs, other = (), None, None, None
    finally:
        gradient_mode.set_gradient_mode(before)
    return made.found


class _Run:
    """What one run does with nodes that are not usual: hooks, captures, undefined gradients."""

    def __init__(self, captures: Captures | None, retain_graph: bool) -> None:
        self.captures, self.retain_graph = captures or {}, retain_graph
        self.found: list[Any] = [None] * sum(map(len, self.captures.values()))
        self.limit = count()
        self.anomalies = TAPE.anomalies

    def pulled(self, node: Node, gs: list[Any], runs: bool) -> Sequence[Any]:
        """What the edges of a node are given; ``runs``: it is on the way to what is asked for."""
        captured = self.captures.get(node)
        hooks = node.hooked if runs or captured else None
        if hooks is not None:
            gs = hooks.before(gs, self.limit)
        for index, position in captured or ():
            self.found[position] = gs[index]
        found: Sequence[Any] = (None,) * len(node.edges)
        if not runs:
            return found
        if hooks is not None:
            gs = hooks.prepare(gs, self.limit)
        given = list(gs) if self.anomalies or (hooks is not None and hooks.post) else ()
        if any(g is not None for g in gs):
            found = node.backward(gs)
            if self.anomalies:
                _check_nan(node, found, given)
            leaf = node.leaf() if type(node) is Accumulate else None
            if leaf is not None and hooks is not None:
                hooks.after_adding(leaf, self.limit)
        if hooks is not None:
            found = hooks.finish(found, given, self.limit)
        if not self.retain_graph:
            node.release()
        return found


def _check_nan(node: Node, pulled: Sequence[Any], gs: Sequence[Any]) -> None:
    if any(map(_has_nan, pulled)) and not any(map(_has_nan, gs)):
        raise GradientError(
            f"the gradient of {node.name} has a NaN, which what flows into it has not",
            loc=node.loc, hint="choose operands with np.where before the operation, not after it",
        )  # fmt: skip


def _has_nan(g: Any) -> bool:
    return g is not None and bool(np.isnan(np.asarray(g)).any())


def _hold(held: dict[Node, list[Any]], node: Node, index: int, g: Any) -> None:
    """Add a gradient to those that an output of a node has got."""
    gs = held.get(node)
    if gs is None:
        gs = held[node] = [None] * len(node.metas)
    before = gs[index]
    gs[index] = g if before is None else before + g


def _dependencies(roots: Iterable[Node]) -> dict[Node, int]:
    """For each node that the roots depend on, how many edges lead to it."""
    count = dict.fromkeys(roots, 0)
    todo = list(count)
    pop, push = todo.pop, todo.append
    while todo:
        for edge in pop().edges:
            if edge is not None:
                node = edge[0]
                if node in count:
                    count[node] += 1
                else:
                    count[node] = 1
                    if node.edges:
                        push(node)
    return count


def leading_to(nodes: Iterable[Node], captures: Captures) -> set[Node]:
    """The nodes that a captured gradient depends on."""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for edge in node.edges:
            if edge is not None:
                users.setdefault(edge[0], []).append(node)
    needed: set[Node] = set()
    todo = [user for node in captures for user in users.get(node, ())]
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            todo += users.get(node, ())
    return needed


__all__ = ["Captures", "leading_to", "run"]
