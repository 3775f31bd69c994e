"""The engine: runs nodes backwards, the one that was made last first, without recursion.

A leaf's gradient is added up as soon as it is complete. Both together are torch's order, so that
hooks and sums of gradients come in the same order as there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heappushpop
from typing import Any

import numpy as np

from ...dialect.errors import GradientError
from ...dialect.ir.gradient_mode import MODE
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
    limit = count()
    anomalies = TAPE.anomalies
    waiting, ends = _dependencies([root[0] for root in roots])
    captures = captures or {}
    # Nodes that are not simply run. Where exactly the leaves are captured, all others lead to them.
    unusual: Container[Node] = captures
    needed = None
    if captures and (len(captures) != ends or any(n.edges or n not in waiting for n in captures)):
        needed = _leading_to(waiting, captures)
        unusual = waiting.keys() - needed.difference(captures)
    found: list[Any] = [None] * sum(map(len, captures.values()))
    held: dict[Node, list[Any]] = {}
    for root, index, g in roots:
        _hold(held, root, index, g)
    roots = ()
    pushed = len(held)
    ready = [(-root.seq, k, root) for k, root in enumerate(held) if not waiting[root]]
    heapify(ready)
    before, MODE.on = MODE.on, create_graph
    try:
        with np.errstate(all="ignore"):
            node: Node | None = heappop(ready)[2] if ready else None
            while node is not None:
                gs = held.pop(node, None)
                if gs is not None and gs[0] is not None and node.hooked is None and not (
                    anomalies or node in unusual
                ):  # fmt: skip
                    pulled = node.backward(gs)
                    if not retain_graph:
                        node.release()
                else:
                    gs = gs or [None] * len(node.metas)
                    runs = node not in unusual if needed is None else node in needed
                    place = captures.get(node, ())
                    pulled = _pulled(node, gs, runs, place, found, limit, retain_graph)
                del gs
                # Of a chain of nodes each makes the next one ready, which needs no heap.
                following = None
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
                        ) or anomalies:  # fmt: skip
                            gs = held[target] = [None] * len(target.metas)
                            gs[index] = g
                        elif target in captures:
                            for _, position in captures[target]:
                                found[position] = g
                            continue
                        elif target not in unusual:
                            # At once, as nobody sees the order. `pulled` and `zip` hold it, too.
                            target.take(g, 3)
                            continue
                    if not left:
                        if following is None:
                            following = target
                            rank = pushed
                        else:
                            heappush(ready, (-target.seq, pushed, target))
                        pushed += 1
                pulled, g, gs, other = (), None, None, None
                if ready:
                    node = (
                        heappop(ready)
                        if following is None
                        else heappushpop(ready, (-following.seq, rank, following))
                    )[2]
                else:
                    node = following
    finally:
        MODE.on = before
    return found


def _pulled(
    node: Node, gs: list[Any], runs: bool, captured: Sequence[tuple[int, int]], found: list[Any],
    limit: int, retain_graph: bool,
) -> Sequence[Any]:  # fmt: skip
    """What the edges of a node are given that has hooks, is captured, or lacks a gradient.

    Args:
        runs: it is on the way to what is asked for.
        captured: as in `Captures`, for ``found``.
        limit: of hooks' numbers.
    """
    hooks = node.hooked if runs or captured else None
    if hooks is not None:
        gs = hooks.before(gs, limit)
    for index, position in captured:
        found[position] = gs[index]
    pulled: Sequence[Any] = (None,) * len(node.edges)
    if not runs:
        return pulled
    if hooks is not None:
        gs = hooks.prepare(gs, limit)
    anomalies = TAPE.anomalies
    given = list(gs) if anomalies or (hooks is not None and hooks.post) else ()
    if any(g is not None for g in gs):
        pulled = node.backward(gs)
        if anomalies:
            _check_nan(node, pulled, given)
        leaf = node.leaf() if type(node) is Accumulate else None
        if leaf is not None and hooks is not None:
            hooks.after_adding(leaf, limit)
    if hooks is not None:
        pulled = hooks.finish(pulled, given, limit)
    if not retain_graph:
        node.release()
    return pulled


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


def _dependencies(roots: Iterable[Node]) -> tuple[dict[Node, int], int]:
    """For each node that the roots depend on, how many edges lead to it; and how many have none."""
    count = dict.fromkeys(roots, 0)
    todo = list(count)
    pop, push = todo.pop, todo.append
    inner = 0
    while todo:
        edges = pop().edges
        if edges:
            inner += 1
        for edge in edges:
            if edge is not None:
                node = edge[0]
                if node in count:
                    count[node] += 1
                else:
                    count[node] = 1
                    if node.edges:
                        push(node)
    return count, len(count) - inner


def _leading_to(nodes: Mapping[Node, int], captures: Captures) -> set[Node]:
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


__all__ = ["Captures", "run"]
