"""The engine: runs nodes backwards, the one that was made last first, without recursion.

A leaf's gradient is added up as soon as it is complete. Both together are torch's order, so that
hooks and sums of gradients come in the same order as there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from heapq import heapify, heappop, heappush, heappushpop
from typing import Any

import numpy as np

from ...dialect.errors import GradientError, InternalError
from ...dialect.ir.gradient_mode import set_gradient_mode
from . import hook_calls
from .array import Array
from .hooks import count
from .node import TAPE, Accumulate, Node
from .op_node import OpNode
from .saved import overwritten

Captures = Mapping[Node, Sequence[tuple[int, int]]]  # node -> (its output, position in the result)


def _ignoring() -> tuple[ContextVar[Any], Any]:
    """The variable of NumPy's error state, and its value where nothing is reported.

    To set it takes a tenth of the time of `numpy.errstate`, which is much of that of a short run.
    """
    before = copy_context()
    with np.errstate(all="ignore"):
        for variable, value in copy_context().items():
            if before.get(variable) is not value:
                return variable, value
    raise InternalError("NumPy has its error state in no context variable")


ERRORS, IGNORED = _ignoring()


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
    pending: dict[Node, list[Any] | None] = {}  # the gradients of nodes that wait
    for root, index, g in roots:
        _hold(pending, root, index, g)
    left_of, ends = _counts(pending)
    captured_gradients: list[Any] = []
    # Nodes that are not simply run. Where exactly the leaves are captured, all others lead to them.
    captures = captures or {}
    unusual: Container[Node] = captures
    needed = None
    careful = anomalies
    if captures:
        whole = len(captures) == ends
        for node, places in captures.items():
            captured_gradients += [None] * len(places)
            if node.edges or node not in left_of:
                whole = False
            elif node in pending:
                careful = True
        if not whole:
            needed = leading_to(left_of, captures)
            unusual = left_of.keys() - needed.difference(captures)
            careful = True
    following: Node | None = None
    ready: list[tuple[float, int, Node]] = []
    pushed = len(roots)
    if pushed == 1:
        ((following, gs),) = pending.items()
        pending.clear()
    else:
        ready = [(-node.seq, k, node) for k, node in enumerate(pending) if not left_of[node]]
        heapify(ready)
        following = heappop(ready)[2] if ready else None
        gs = None if following is None else pending.pop(following)
    roots = ()
    before = set_gradient_mode(create_graph)
    token = ERRORS.set(IGNORED)
    try:
        while following is not None:
            node = following
            edges = node.edges
            if gs is None or gs[0] is None or node.hooked is not None or (careful and (anomalies or node in unusual)):
                gs = gs or [None] * len(node.metas)
                runs = node not in unusual if needed is None else node in needed
                place = captures.get(node, ())
                pulled = _pulled(node, gs, runs, place, captured_gradients, limit, retain_graph)
                _check_count(node, pulled)
            elif (
                type(node) is OpNode
                and not create_graph
                and (saved := node.saved) is not None
                and (pull := node.plan.pull) is not None
            ):
                # What `OpNode.backward` does, without asking again.
                operands, results, versions = saved
                for version, then in versions:
                    if version.count != then:
                        raise overwritten(version, node.plan.op.name, node.loc)
                pulled = pull(gs[0], operands, results)
                if not retain_graph:
                    node.saved = None
            else:
                pulled = node.backward(gs)
                if not retain_graph:
                    node.release()
                _check_count(node, pulled)
            # Of a chain of nodes each makes the next one ready, which needs no heap.
            following = gs = None
            for edge, g in zip(edges, pulled):  # noqa: B905 - as many of both
                if edge is None:
                    continue
                target, index = edge
                remaining = left_of[target]
                if remaining != 1:
                    left_of[target] = remaining - 1
                    if g is not None:
                        _hold(pending, target, index, g)
                    continue
                waiting = pending.pop(target, None) if pending else None
                if type(target) is Accumulate and target.hooked is None and not anomalies:
                    # At once, as nobody sees the order. `pulled` and `zip` hold a gradient, too.
                    holders = 3
                    if waiting is not None:
                        (other,) = waiting
                        if g is not None:
                            other = other + g
                        g = other
                        waiting = other = None
                        holders = 1
                    if captures and target in captures:
                        for _, position in captures[target]:
                            captured_gradients[position] = g
                    elif g is not None and target not in unusual:
                        target.take(g, holders)
                    continue
                if waiting is None:
                    if g is not None:
                        waiting = [None] * len(target.metas)
                        waiting[index] = g
                elif g is not None:
                    other = waiting[index]
                    waiting[index] = g if other is None else other + g
                if following is None:
                    following, gs, rank = target, waiting, pushed
                else:
                    pending[target] = waiting
                    heappush(ready, (-target.seq, pushed, target))
                pushed += 1
            pulled, g, other, waiting = (), None, None, None
            if ready:
                if following is None:
                    following = heappop(ready)[2]
                    gs = pending.pop(following)
                else:
                    first = heappushpop(ready, (-following.seq, rank, following))[2]
                    if first is not following:
                        pending[following] = gs
                        following = first
                        gs = pending.pop(first)
    finally:
        ERRORS.reset(token)
        set_gradient_mode(before)
    return captured_gradients


def _pulled(
    node: Node,
    gs: list[Any],
    runs: bool,
    captured: Sequence[tuple[int, int]],
    captured_gradients: list[Any],
    limit: int,
    retain_graph: bool,
) -> Sequence[Any]:
    """The gradients of the edges of a node that has hooks, is captured, or lacks a gradient.

    Args:
        runs: it is on the way to what is asked for.
        captured: as in `Captures`, for ``captured_gradients``.
        limit: of hooks' numbers.
    """
    hooks = node.hooked if runs or captured else None
    if hooks is not None:
        gs = hook_calls.before(hooks, gs, limit)
    for index, position in captured:
        captured_gradients[position] = gs[index]
    pulled: Sequence[Any] = (None,) * len(node.edges)
    if not runs:
        return pulled
    if hooks is not None:
        gs = hook_calls.prepare(hooks, gs, limit)
    anomalies = TAPE.anomalies
    incoming = list(gs) if anomalies or (hooks is not None and hooks.post) else ()
    if any(g is not None for g in gs):
        pulled = node.backward(gs)
        if anomalies:
            _check_nan(node, pulled, incoming)
        leaf = node.leaf() if type(node) is Accumulate else None
        if leaf is not None and hooks is not None:
            hook_calls.after_adding(hooks, leaf, limit)
    if hooks is not None:
        pulled = hook_calls.finish(hooks, pulled, incoming, limit)
    if not retain_graph:
        node.release()
    return pulled


def _check_count(node: Node, pulled: Sequence[Any]) -> None:
    if len(node.edges) != len(pulled):
        raise InternalError(f"{node.name} gives {len(pulled)} of {len(node.edges)} gradients")


def _check_nan(node: Node, pulled: Sequence[Any], gs: Sequence[Any]) -> None:
    if any(map(_has_nan, pulled)) and not any(map(_has_nan, gs)):
        raise GradientError(
            f"the gradient of {node.name} has a NaN, which what flows into it has not",
            loc=node.loc,
            hint="choose operands with np.where before the operation, not after it",
        )


def _has_nan(g: Any) -> bool:
    return g is not None and bool(np.isnan(g.data if type(g) is Array else g).any())


def _hold(held: dict[Node, list[Any] | None], node: Node, index: int, g: Any) -> None:
    """Add a gradient to those that an output of a node has got."""
    gs = held.get(node)
    if gs is None:
        gs = held[node] = [None] * len(node.metas)
    before = gs[index]
    gs[index] = g if before is None else before + g


def _counts(roots: Iterable[Node]) -> tuple[dict[Node, int], int]:
    """For each node that the roots depend on the number of edges that lead to it.

    Also, how many of these nodes lead nowhere.
    """
    counts = dict.fromkeys(roots, 0)
    todo = list(counts)
    count_of = counts.get
    inner = 0
    while todo:
        following: Node | None = todo.pop()
        while following is not None:  # a chain of nodes needs no list
            node = None
            edges, following = following.edges, None
            for edge in edges:
                if edge is not None:
                    node = edge[0]
                    count = count_of(node)
                    if count is not None:
                        counts[node] = count + 1
                    else:
                        counts[node] = 1
                        if node.edges:
                            if following is not None:
                                todo.append(following)
                            following = node
            if node is not None:
                inner += 1
    return counts, len(counts) - inner


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
