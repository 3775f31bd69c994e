"""The backward halves of functions with gradients of their own, among the nodes of a graph of torch.fx."""

from __future__ import annotations

import torch

from ....dataclass import dataclass
from ....errors import TraceError
from .custom_gradients import JOINED, SLOT


@dataclass(frozen=True)
class BackwardHalf:
    """One of them.

    Attributes:
        joined: the node that joins a result, its slot, and the gradients of arguments.
        slot: stands for the gradient of the result.
        nodes: what depends on the slot, in order.
        read: the other nodes that these, and the gradients, read.
    """

    joined: torch.fx.Node
    slot: torch.fx.Node
    nodes: tuple[torch.fx.Node, ...]
    read: tuple[torch.fx.Node, ...]


def backward_halves(graph: torch.fx.Graph) -> list[BackwardHalf]:
    """All of a graph; raises TraceError where one is part of another."""
    return [_half(graph, node) for node in graph.nodes if node.target is JOINED]


def _half(graph: torch.fx.Graph, joined: torch.fx.Node) -> BackwardHalf:
    slot = joined.args[2]
    if not isinstance(slot, torch.fx.Node) or slot.target is not SLOT:
        raise TraceError("a gradient of the user's own is apart from its function")
    inside = {slot}
    stack = [slot]
    while stack:
        for user in stack.pop().users:
            if user is joined or user in inside or user.op == "output":
                continue
            if user.target in (SLOT, JOINED):
                raise TraceError("the backward pass of a function of the user's has a gradient of the user's own")
            inside.add(user)
            stack.append(user)
    nodes = tuple(node for node in graph.nodes if node in inside and node is not slot)
    gradients = [g for g in joined.args[3] if isinstance(g, torch.fx.Node)]
    readers = [x for node in nodes for x in node.all_input_nodes]
    return BackwardHalf(joined, slot, nodes, tuple(x for x in (*readers, *gradients) if x not in inside))
