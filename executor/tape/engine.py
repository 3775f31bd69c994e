"""The engine: runs nodes backwards, the one that was made last first, without recursion.

A leaf's gradient is added up as soon as it is complete. Both together are torch's order, so that
hooks and sums of gradients come in the same order as there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heappushpop
from typing import Any

import numpy as np

from ...dialect.errors import GradientError, InternalError
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
    captured = TAPE.captured
    if captured is not None and not create_graph and not TAPE.anomalies:
        return captured(roots, captures, retain_graph)
    limit = count()
    anomalies = TAPE.anomalies
    states, ends = _states([root[0] for root in roots])
    for root, index, g in roots:
        _hold(states[root], root, index, g)
    captures = captures or {}
    found: list[Any] = []
    # Nodes that are not simply run. Where exactly the leaves are captured, all others lead to them.
    unusual: Container[Node] = captures
    needed = None
    whole = len(captures) == ends
    for node, places in captures.items():
        found += [None] * len(places)
        whole = whole and not node.edges and node in states
    if captures and not whole:
        needed = leading_to(states, captures)
        unusual = states.keys() - needed.difference(captures)
    following: Node | None = None
    ready: list[tuple[float, int, Node]] = []
    pushed = len(roots)
    if pushed == 1:
        following = roots[0][0]
    else:
        starts = dict.fromkeys(root[0] for root in roots)
        ready = [(-node.seq, k, node) for k, node in enumerate(starts) if not states[node][0]]
        heapify(ready)
        following = heappop(ready)[2] if ready else None
    roots = ()
    before, MODE.on = MODE.on, create_graph
    try:
        with np.errstate(all="ignore"):
            while following is not None:
                node = following
                state = states[node]
                gs = state[1]
                state[1] = None
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
                edges = node.edges
                if len(edges) != len(pulled):
                    raise InternalError(
                        f"{node.name} gives {len(pulled)} of {len(edges)} gradients"
                    )
                # Of a chain of nodes each makes the next one ready, which needs no heap.
                following = gs = None
                for edge, g in zip(edges, pulled):  # noqa: B905 - as many of both
                    if edge is None:
                        continue
                    target, index = edge
                    state = states[target]
                    left = state[0] = state[0] - 1
                    if g is not None:
                        gs = state[1]
                        if gs is not None:
                            other = gs[index]
                            gs[index] = g if other is None else other + g
                        elif left or target.__class__ is not Accumulate or target.hooked is not (
                            None
                        ) or anomalies:  # fmt: skip
                            if index or len(target.metas) > 1:
                                _hold(state, target, index, g)
                            else:
                                state[1] = [g]
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
                    following = (
                        heappop(ready)
                        if following is None
                        else heappushpop(ready, (-following.seq, rank, following))
                    )[2]
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


def _hold(state: list[Any], node: Node, index: int, g: Any) -> None:
    """Add a gradient to those that an output of a node has got."""
    gs = state[1]
    if gs is None:
        gs = state[1] = [None] * len(node.metas)
    before = gs[index]
    gs[index] = g if before is None else before + g


def _states(roots: Iterable[Node]) -> tuple[dict[Node, list[Any]], int]:
    """For each node that the roots depend on a state; and how many of them lead nowhere.

    A state is a list of the number of edges that lead to the node and have not given it a gradient
    yet, and of the list of its gradients, None before the first one.
    """
    states: dict[Node, list[Any]] = {node: [0, None] for node in roots}
    todo = list(states)
    pop, push, known = todo.pop, todo.append, states.get
    inner = 0
    while todo:
        node = None
        for edge in pop().edges:
            if edge is not None:
                node = edge[0]
                state = known(node)
                if state is not None:
                    state[0] += 1
                else:
                    states[node] = [1, None]
                    if node.edges:
                        push(node)
        if node is not None:
            inner += 1
    return states, len(states) - inner


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
