"""Finishing steps on many ops: where they move them, whatever room there is between two ops."""

from __future__ import annotations

import pytest
from profuse.dialect.analysis.backward_order import (
    move_post_accumulate_hooks,
    move_post_hooks,
    move_tensor_pre_hooks,
    move_unpack_hooks,
)
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


def test_an_unpack_hook_stands_in_front_of_the_first_of_its_users():
    """R4.33"""
    graph = BackwardGraph()
    x = graph.element("inputs", 0)
    y = graph.hook("unpack_hook", graph.element("hooks", 0), graph.element("packed_data", 0))
    before = graph("exp", x)
    users = [graph("mul", before, y), graph("add", y, before), graph("neg", y)]
    graph.program.body.outputs = tuple(users)
    assert move_unpack_hooks(graph.program) == 1
    assert order(graph) == [before, y, *users]


def kinds(graph):
    """The ops in order: their names, and which hook a call is of."""
    numbers = {i.results[0]: i.attrs["index"] for i in graph.instrs if i.op.name == "list_get"}
    return [
        numbers[i.operands[0]] if i.op.name == "call_hook" else i.op.name
        for i in graph.instrs
        if i.op.name != "list_get"
    ]


@pytest.mark.parametrize("keep", [False, True])
def test_hooks_of_a_leaf_keep_their_order_behind_its_accumulation(keep):
    """R4.38, R4.39"""
    graph = BackwardGraph()
    x, leaf = graph.element("inputs", 0), graph.element("inputs", 1)
    hooks = [graph.element("hooks", k) for k in range(4)]
    g = graph("neg", x)
    graph("accumulate_grad", leaf, g, results=0)
    for hook in hooks[:2] if keep else ():
        graph.hook("post_acc_grad_hook", hook, leaf, results=0)
    for hook in hooks[2:] if keep else ():
        graph.hook("post_hook", hook, g, results=0)
    graph("exp", x)
    if not keep:  # as a tracer has pushed them to the end
        for hook in hooks[2:]:
            graph.hook("post_hook", hook, g, results=0)
        for hook in hooks[:2]:
            graph.hook("post_acc_grad_hook", hook, leaf, results=0)
    move_post_accumulate_hooks(graph.program, keep)
    move_post_hooks(graph.program, keep)
    assert kinds(graph) == ["neg", "accumulate_grad", 0, 1, 2, 3, "exp"]
