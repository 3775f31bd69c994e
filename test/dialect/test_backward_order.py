"""Finishing steps on many ops: where they move them, whatever room there is between two ops."""

from __future__ import annotations

import pytest
from profuse.dialect.analysis.backward_order import move_tensor_pre_hooks, move_unpack_hooks
from small_programs import BackwardGraph

COUNT = 700  # more than there are halves of the room between two neighbours


def order(graph):
    return [i.results[0] for i in graph.instrs if i.op.name != "list_get"]


@pytest.mark.parametrize("keep", [False, True])
def test_hooks_of_one_gradient_move_behind_it(keep):
    graph = BackwardGraph()
    x = graph.element("inputs", 0)
    hooks = [graph.element("hooks", k) for k in range(COUNT)]
    g, others = graph("neg", x), [graph("exp", x) for _ in range(3)]
    calls = [graph.hook("tensor_pre_hook", h, g) for h in hooks]
    graph.program.body.outputs = (*others, *calls)
    moved = move_tensor_pre_hooks(graph.program, keep)
    # Each immediately behind the gradient; where the order is kept, ops are not passed.
    assert order(graph) == ([g, *others, *calls] if keep else [g, *calls[::-1], *others])
    assert moved == COUNT
    assert move_tensor_pre_hooks(graph.program, True) == 0
    for call in calls:
        at = next(k for k, i in enumerate(graph.instrs) if i.results == (call,))
        assert graph.instrs[at - 1].results == (graph.instrs[at].operands[0],)  # its own hook


def test_unpack_hooks_of_one_user_move_in_front_of_it():
    graph = BackwardGraph()
    x = graph.element("inputs", 0)
    hooks = [(graph.element("hooks", k), graph.element("packed_data", k)) for k in range(COUNT)]
    calls = [graph.hook("unpack_hook", h, p) for h, p in hooks]
    others = [graph("exp", x) for _ in range(3)]
    user = graph("stack", *calls)
    graph.program.body.outputs = (*others, user)
    assert move_unpack_hooks(graph.program) == COUNT
    assert order(graph) == [*others, *calls, user]
