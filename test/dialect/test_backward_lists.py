"""Captured runs whose lists cannot be taken apart (R4.13): graphs that no capture makes."""

from __future__ import annotations

import pytest
from profuse.dialect.analysis.backward_lists import lowered
from profuse.dialect.errors import IRError
from profuse.dialect.ir.program import Module
from profuse.dialect.ir.types import TENSOR
from small_programs import BackwardGraph, Graph


@pytest.mark.parametrize("name", ["hooks", "packed_data"])
def test_what_is_no_array_is_not_computed_with(name):
    graph = BackwardGraph()
    graph("tanh", graph.element(name, 0))
    with pytest.raises(IRError, match="read by an op of arrays"):
        lowered(Module(graph.program))


@pytest.mark.parametrize("name", ["inputs", "sizes", "packed_data"])
def test_what_is_called_is_a_hook(name):
    graph = BackwardGraph()
    g = graph.element("inputs", 0)
    graph.hook("tensor_pre_hook", graph.element(name, 1), g)
    with pytest.raises(IRError, match="no element of the list"):
        lowered(Module(graph.program))


def test_a_graph_on_arrays_is_no_captured_run():
    with pytest.raises(IRError, match="takes five lists"):
        lowered(Module(Graph(*[TENSOR] * 5).program))


def test_elements_become_inputs_and_slots():
    graph = BackwardGraph()
    x, hook, packed = (graph.element(*at) for at in (("inputs", 3), ("hooks", 2), ("packed_data", 1)))
    leaf, after = graph.element("inputs", 4), graph.element("hooks", 5)
    y = graph.hook("unpack_hook", hook, packed)
    graph("accumulate_grad", leaf, graph("mul", x, y), results=0)
    graph.hook("post_acc_grad_hook", after, leaf, results=0)
    found = lowered(Module(graph.program))
    assert (found.inputs, found.leaves, found.frame) == (((0, 3),), (), True)
    slots = [i.attrs["slots"] for i in found.program.body.instrs if "slots" in i.attrs]
    assert slots == [(2, 1), (4,), (5, 4)]
