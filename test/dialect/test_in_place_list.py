"""R3.8: what the fuser of device groups expects of `functionalize`."""

import copy

import numpy as np
import pytest
from profuse.dialect.analysis.functional import functionalize
from profuse.dialect.ir.op import OPS
from profuse.dialect.ir.types import TensorType, type_of
from profuse.dialect.ops.indexing.inplace import InPlace
from small_programs import Graph

LISTED = ("add_", "sub_", "mul_", "div_", "relu_", "sigmoid_", "tanh_")
IN_PLACE = sorted(op.name for op in OPS.values() if issubclass(op, InPlace))


def evaluated(program, args):
    values = dict(zip(program.inputs, args, strict=True))
    for instr in program.body.instrs:
        out = instr.op.evaluate(instr.op.full_attrs(instr.attrs), *(values[v] for v in instr.operands))
        values.update(zip(instr.results, out if isinstance(out, tuple) else (out,), strict=True))
    return [values[v] for v in program.outputs]


def operands_of(op):
    """Arrays that the op takes: floats, or what it takes instead."""
    base = op.base
    for dtype in (np.float32, np.int32, bool):
        arrays = [(np.arange(6).reshape(2, 3) + k + 1).astype(dtype) for k in range(len(base.operands))]
        try:
            (result,) = op.infer([type_of(a) for a in arrays], {})
        except Exception:
            continue
        if isinstance(result, TensorType):
            return arrays
    raise AssertionError(f"{op.name} takes none of the dtypes")


def written_twice(op, arrays):
    """A program that writes a copy of its first argument, and reads the copy before and afterwards."""
    graph = Graph(*map(type_of, arrays))
    own = graph("copy", graph.inputs[0])
    before = graph("copy", own)
    graph(op.name, own, *graph.inputs[1:])
    row = graph("pick", own, axis=0, index=1)
    graph.program.body.outputs = (before, own, row)
    return graph.program


def test_r3_8_the_list_of_the_specification_is_there():
    assert set(LISTED) <= set(IN_PLACE)


@pytest.mark.parametrize("name", IN_PLACE)
def test_r3_8_an_in_place_op_on_own_memory_becomes_pure(name):
    op = OPS[f"profuse.{name}"]
    arrays = operands_of(op)
    program = written_twice(op, arrays)
    with np.errstate(all="ignore"):
        expected = evaluated(copy.deepcopy(program), arrays)
        count, kept = functionalize(program)
        assert (count, kept) == (1, [])
        assert not any(instr.op.writes for instr in program.body.walk())
        for one, two in zip(evaluated(program, arrays), expected, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", LISTED)
def test_r3_8_a_write_into_an_argument_stays(name):
    """The graph does not own that memory, whatever the op is."""
    op = OPS[f"profuse.{name}"]
    arrays = operands_of(op)
    graph = Graph(*map(type_of, arrays))
    graph.program.body.outputs = (graph(name, *graph.inputs),)
    count, kept = functionalize(graph.program)
    assert count == 0 and len(kept) == 1
    assert [instr.op for instr in graph.program.body.instrs] == [op]
