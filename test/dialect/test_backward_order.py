"""Finishing steps on many ops: where they move them, whatever room there is between two ops."""

from __future__ import annotations

import profuse.dialect.ops  # noqa: F401  (fills OPS)
import pytest
from profuse.dialect.analysis.backward_order import move_tensor_pre_hooks, move_unpack_hooks
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Instr, Program
from profuse.dialect.ir.types import TENSOR, ListType

COUNT = 700  # more than there are halves of the room between two neighbours


class Graph:
    def __init__(self):
        self.program = Program("CompiledAutograd0")
        self.lists = tuple(self.program.new_value(ListType()) for _ in range(5))
        self.program.body.args = self.lists
        self.instrs = self.program.body.instrs

    def __call__(self, name, *operands, **attrs):
        value = self.program.new_value(TENSOR)
        self.instrs.append(Instr(op_named(name), operands, (value,), attrs))
        return value

    def element(self, which, index):
        return self("list_get", self.lists[which], index=index)

    def hook(self, kind, value, *more):
        return self("call_hook", value, *more, hook_type=kind, replaced=1, present=(True,))

    def order(self):
        return [i.results[0] for i in self.instrs if i.op.name != "list_get"]


@pytest.mark.parametrize("keep", [False, True])
def test_hooks_of_one_gradient_move_behind_it(keep):
    graph = Graph()
    x = graph.element(0, 0)
    hooks = [graph.element(3, k) for k in range(COUNT)]
    g, others = graph("neg", x), [graph("exp", x) for _ in range(3)]
    calls = [graph.hook("tensor_pre_hook", h, g) for h in hooks]
    graph.program.body.outputs = (*others, *calls)
    moved = move_tensor_pre_hooks(graph.program, keep)
    # Each immediately behind the gradient, or behind those that are there already.
    assert graph.order() == [g, *(calls if keep else calls[::-1]), *others]
    assert moved == COUNT
    assert move_tensor_pre_hooks(graph.program, True) == 0
    for call in calls:
        at = next(k for k, i in enumerate(graph.instrs) if i.results == (call,))
        assert graph.instrs[at - 1].results == (graph.instrs[at].operands[0],)  # its own hook


def test_unpack_hooks_of_one_user_move_in_front_of_it():
    graph = Graph()
    x = graph.element(0, 0)
    hooks = [(graph.element(3, k), graph.element(4, k)) for k in range(COUNT)]
    calls = [graph.hook("unpack_hook", h, p) for h, p in hooks]
    others = [graph("exp", x) for _ in range(3)]
    user = graph("stack", *calls)
    graph.program.body.outputs = (*others, user)
    assert move_unpack_hooks(graph.program) == COUNT
    assert graph.order() == [*others, *calls, user]
