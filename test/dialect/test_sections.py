"""Long graphs cut into sections: what is computed, which sections are equal, what stays whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profuse.dialect.analysis.backward_lists import HOOKS
from profuse.dialect.analysis.sections import sections
from profuse.dialect.ir.dtypes import F64
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module
from profuse.dialect.ir.types import BOOL_SCALAR, TENSOR, ScalarType
from profuse.executor.interpret.evaluate import Evaluator
from small_programs import Graph

INPUTS = 3


def run_whole(program, inputs):
    return Evaluator(program)(list(inputs))


def run_in_sections(program, cut, inputs):
    values = dict(zip(program.inputs, inputs, strict=True))
    for section in cut:
        given = [values[v] for v in section.inputs]
        for v in section.dying:
            del values[v]
        assert not values.keys() & set(section.outputs)
        found = Evaluator(section.program)(given)
        values |= dict(zip(section.outputs, found, strict=True))
    assert set(values) >= set(program.outputs)
    return [values[v] for v in program.outputs]


@st.composite
def graphs(draw):
    graph = Graph(*[TENSOR] * INPUTS)
    values = list(graph.program.inputs)
    for _ in range(draw(st.integers(20, 80))):
        kind = draw(st.integers(0, 9))
        some = st.sampled_from(values[-12:] + values[:INPUTS])
        if kind < 6:
            values.append(graph("add" if kind % 2 else "sub", draw(some), draw(some)))
        elif kind == 6:
            number = graph("constant", value=draw(st.sampled_from([0.5, 2.0])), type_=ScalarType(F64))
            values.append(graph("mul", draw(some), number))
        elif kind == 7:
            values.append(graph("exp", draw(some)))
        else:
            test = graph("constant", value=draw(st.booleans()), type_=BOOL_SCALAR)
            x, y, inner = draw(some), draw(some), graph.program.new_value(TENSOR)
            one = Block((), [Instr(op_named("add"), (x, y), (inner,))], (inner,))
            values.append(graph("scf.if", test, blocks=(one, Block((), [], (x,)))))
    graph.program.body.outputs = tuple(draw(st.lists(st.sampled_from(values[INPUTS:]), max_size=5)))
    return graph.program


@given(graphs(), st.integers(3, 12))
def test_sections_compute_what_the_graph_computes(program, least):
    inputs = [np.random.default_rng(k).standard_normal(4) for k in range(INPUTS)]
    cut = sections(program, least)
    for a, b in zip(
        run_in_sections(program, cut, inputs) if len(cut) > 1 else run_whole(program, inputs),
        run_whole(program, inputs),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    sizes = [sum(i.op.name != "constant" for i in s.program.body.instrs) for s in cut]
    assert sum(sizes) == sum(i.op.name != "constant" for i in program.body.instrs)
    assert len(cut) == 1 or all(least <= n < 2 * least for n in sizes[:-1])
    assert sizes[-1] <= 2 * least


def chain(rounds, first=0):
    """Rounds of five ops on a value that is carried, an input that all read, and a sum."""
    graph = Graph(*[TENSOR] * (2 + rounds))
    x, y, *saved = graph.program.inputs
    for _ in range(first):
        y = graph("exp", y)
    total = x
    half = graph("constant", value=0.5, type_=ScalarType(F64))
    for s in saved:
        y = graph("mul", y, s)
        z = graph("mul", graph("tanh", y), x)
        y = graph("mul", z, half)
        total = graph("add", total, z)
    graph.program.body.outputs = (total, y)
    return graph.program


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", [0, 1, 7, 23])
def test_rounds_that_repeat_are_equal_sections(first):
    counts = []
    for rounds in (200, 1000):
        cut = sections(chain(rounds, first), 30)
        counts.append(len({Module(s.program).to_mlir() for s in cut}))
        assert len(cut) > rounds // 12
        # What passes a cut is carried, and belongs to no other round.
        assert all(len(s.outputs) == 2 for s in cut)
    assert counts[0] == counts[1] <= 3


def test_no_cut_is_passed_by_what_users_gradients_return():
    """It may be None, until it is validated."""
    graph = Graph(TENSOR, TENSOR)
    y, b = graph.program.inputs
    for k in range(100):
        # Between the two as few values pass as elsewhere, and the op in front is an earlier kind.
        x = graph("call_backward", y, b, slots=(k,), present=(True, True))
        y = graph("validate_grads", x, types=(), origin=str(k))
        a, b = graph("tanh", y), graph("exp", y)
        y = graph("mul", graph("add", a, b), y)
    graph.program.body.outputs = (y,)
    cut = sections(graph.program, 30)
    made = {i.results[0] for i in graph.instrs if i.op.name == "call_backward"}
    assert len(cut) > 9 and not any(made.intersection(s.inputs) for s in cut)
    assert sorted(k for s in cut for k in s.slots[HOOKS]) == list(range(100))


def test_a_short_graph_stays_as_it_is():
    program = chain(12)
    (section,) = sections(program, 30)
    assert section.program is program and section.inputs == program.inputs


def test_no_cut_is_passed_by_what_may_be_undefined():
    graph = Graph(TENSOR, TENSOR)
    x, y = graph.program.inputs
    for _ in range(100):
        zero = graph("autograd_zero")
        g = graph("add", graph("tanh", y), graph("exp", zero))  # undefined, if anything was
        there = graph("any_nonzero", g, type_=BOOL_SCALAR)
        full = graph.program.new_value(TENSOR)
        other = Block((), [Instr(op_named("exp"), (x,), (full,))], (full,))
        y = graph("scf.if", there, blocks=(Block((), [], (g,)), other))
        y = graph("mul", graph("neg", y), x)
    graph.program.body.outputs = (y,)
    cut = sections(graph.program, 30)
    assert len({Module(s.program).to_mlir() for s in cut}) <= 3 < len(cut)
    undefined = {i.results[0] for i in graph.instrs if i.op.name in ("autograd_zero", "add")}
    undefined |= {i.results[0] for i in graph.instrs if i.op.name == "exp"}
    assert not any(undefined.intersection(s.inputs) for s in cut)


def test_a_long_way_without_a_place_to_cut_is_one_section():
    graph = Graph(TENSOR)
    (x,) = graph.program.inputs
    g = graph("call_backward", x, slots=(0,), present=(True,))
    for _ in range(200):
        x = graph("tanh", x)
    y = graph("add", graph("validate_grads", g, types=()), x)
    for _ in range(200):
        y = graph("exp", y)
    graph.program.body.outputs = (y,)
    first, *others = sections(graph.program, 30)
    assert len(first.program.body.instrs) > 200 and len(others) > 2


@pytest.mark.parametrize("kind", ["writes", "constant"])
def test_graphs_that_stay_whole(kind):
    program = chain(200)
    graph = Graph.__new__(Graph)
    graph.program, graph.instrs = program, program.body.instrs
    assert len(sections(program, 30)) > 1
    if kind == "writes":
        graph("copy_", program.outputs[0], program.outputs[1])
    else:
        program.body.outputs = (program.body.instrs[0].results[0],)
        assert program.body.instrs[0].op.name == "constant"
    assert len(sections(program, 30)) == 1


def call_hook(graph, x, slot):
    return graph("call_hook", x, hook_type="tensor_pre_hook", replaced=1, present=(True,), slots=(slot,))


def hooked(*, read):
    """Two gradients with hooks each, in turn; ``read``: an op in the end reads what the first hook gives."""
    graph = Graph(TENSOR, TENSOR)
    a, b = graph.program.inputs
    first = call_hook(graph, graph("exp", a), 0)
    second = call_hook(graph, graph("neg", graph("exp", b)), 1)
    last = graph("sub", graph("exp", first if read else b), b)
    graph.program.body.outputs = (first, second, last)
    return graph.program


@pytest.mark.parametrize("read", [False, True])
def test_calls_that_nothing_waits_for_are_a_section_at_the_end(read):
    cut = sections(hooked(read=read))
    names = [[i.op.name for i in section.program.body.instrs] for section in cut]
    rest = [["exp", "call_hook", "exp", "neg", "exp", "sub"], ["call_hook"]]
    apart = [["exp", "exp", "neg", "exp", "sub"], ["call_hook", "call_hook"]]
    assert names == (rest if read else apart)
    assert [section.calls for section in cut] == [False, True]
    # Calls at the end find their hooks in the lists of the whole run, others among those of their section.
    assert [i.attrs["slots"] for i in cut[1].program.body.instrs] == [(0,), (1,)][read:]


def test_calls_that_read_what_may_be_undefined_stay_where_they_are():
    graph = Graph(TENSOR)
    (a,) = graph.program.inputs
    nothing = graph("autograd_zero")
    graph.program.body.outputs = (call_hook(graph, nothing, 0), graph("exp", a))
    assert len(sections(graph.program)) == 1
