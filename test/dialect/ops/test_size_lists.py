"""Values that are no tensors, and ops on sizes: the same formulas at run time and on symbols (R3.28 to R3.43)."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.errors import AxisError, IRError, ShapeError
from profuse.dialect.ir.attrs import VALUE
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.serialize import module_from_json, module_to_json
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import BOOLS, INTS, STR, ListedType, TensorType, type_from_mlir, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.executor.interpret.evaluate import evaluate

A, B = symbol("a"), symbol("b")
VALUES = [(), (4, -1), (2**63 - 1, 0), (True, False), "", 'tanh "\n', None]


def ints(value):
    return ListedType("ints", value)


def run(name, *sizes, **attrs):
    """What an op gives for these sizes, at run time and by its types: both the same."""
    op = op_named(name)
    out = op.evaluate(op.full_attrs(attrs), *sizes)
    listed = (out,) if len(op.results) == 1 else out
    assert [t.value for t in op.infer([ints(s) for s in sizes], attrs)] == list(listed)
    return out


def inferred(name, *sizes, **attrs):
    op = op_named(name)
    types = [INTS if s is None else ints(s) for s in sizes]
    found = [t.value for t in op.infer(types, attrs)]
    return found[0] if len(found) == 1 else found


@pytest.mark.parametrize("value", VALUES)
def test_values_survive_text_and_json(value):
    assert VALUE.from_json(VALUE.to_json(value)) == value
    program = Program("main")
    result = program.new_value(type_of(value))
    program.body = Block((), [Instr(op_named("constant"), (), (result,), {"value": value})], (result,))
    module = Module(program)
    for copy in (decode_module(parse_module(module.to_mlir(), "t")), module_from_json(module_to_json(module))):
        (constant,) = copy.main.body.instrs
        assert constant.attrs["value"] == value and type(constant.attrs["value"]) is type(value)
        assert list(map(type, constant.attrs["value"] or ())) == list(map(type, value or ()))
        assert copy.main.type_of(0) == type_of(value)
        assert evaluate(copy, ()) == [value]


@pytest.mark.parametrize(
    "data", [["ints", [True]], ["bools", [1]], ["str", 1], ["none", 1], ["ints", 5], ["floats", [1.0]]]
)
def test_wrong_json_is_no_value(data):
    with pytest.raises((TypeError, ValueError, IRError)):
        VALUE.from_json(data)


def test_types():
    assert [type_of(v) for v in VALUES] == [INTS, INTS, INTS, BOOLS, STR, STR, INTS]
    assert [type_from_mlir(str(t)) for t in (INTS, BOOLS, STR)] == [INTS, BOOLS, STR]
    assert str(ints((A, 8))) == "!profuse.ints"
    assert ints((A, 8)).is_complete and not ints((None, 8)).is_complete and not INTS.is_complete


def test_r3_32_chunk_sizes():
    assert run("chunk_sizes", (2, 7), axis=1, chunks=3) == ((2, 3), (2, 1))
    assert run("chunk_sizes", (8, 7), axis=-2, chunks=4) == ((2, 7), (2, 7))
    assert run("chunk_sizes", (5,), axis=0, chunks=1) == ((5,), (5,))
    pieces = op_named("chunk").evaluate({"axis": 1, "chunks": 3}, np.zeros((2, 7)))
    assert [p.shape for p in pieces] == [(2, 3), (2, 3), (2, 1)]
    with pytest.raises(ShapeError, match="fewer than 4 chunks"):
        run("chunk_sizes", (5,), axis=0, chunks=4)
    assert inferred("chunk_sizes", (A, None), axis=1, chunks=3) == [(A, None), (A, None)]
    assert inferred("chunk_sizes", (A * 4, 2), axis=0, chunks=2) == [(A * 2, 2), (A * 2, 2)]


def test_r3_32_unsqueeze_sizes_counts_from_the_rank_and_one_more():
    assert run("unsqueeze_sizes", (4, 8), axes=(-1,)) == (4, 8, 1)
    assert run("unsqueeze_sizes", (4, 8), axes=(0, 2)) == (1, 4, 1, 8)
    assert run("unsqueeze_sizes", (4, 8), axes=(-3,)) == (1, 4, 8)
    assert run("unsqueeze_sizes", (), axes=(0,)) == (1,)
    with pytest.raises(AxisError):
        run("unsqueeze_sizes", (4, 8), axes=(3,))
    assert inferred("unsqueeze_sizes", (A, None), axes=(1,)) == (A, 1, None)


def test_r3_32_squeeze_sizes_drops_ones_alone():
    assert run("squeeze_sizes", (1, 4, 1, 8)) == (4, 8)
    assert run("squeeze_sizes", (1, 4, 1, 8), axes=(2,)) == (1, 4, 8)
    assert run("squeeze_sizes", (1, 4, 1, 8), axes=(-1, 0)) == (4, 1, 8)
    with pytest.raises(AxisError):
        run("squeeze_sizes", (1, 4), axes=(2,))
    with pytest.raises(ShapeError, match="duplicate"):
        run("squeeze_sizes", (1, 4), axes=(0, -2))
    assert inferred("squeeze_sizes", (A, 1), axes=(1,)) == (A,)
    assert inferred("squeeze_sizes", (A, 1)) is None  # a might be 1


@pytest.mark.parametrize("axes", [None, (), (0,), (1, -1), (-3,)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_r3_29_reduction_sizes_are_those_of_sums(axes, keepdims):
    x = np.zeros((2, 3, 4))
    expected = np.sum(x, axes, keepdims=keepdims).shape
    assert run("reduction_sizes", x.shape, axes=axes, keepdims=keepdims) == expected
    shape = inferred("reduction_sizes", (A, None, 4), axes=axes, keepdims=keepdims)
    assert len(shape) == len(expected)
    with pytest.raises(ShapeError, match="duplicate"):
        run("reduction_sizes", x.shape, axes=(0, 0))


def test_r3_29_broadcast_sizes():
    assert run("broadcast_sizes", (3, 1), (4, 1, 3)) == (4, 3, 3)
    assert run("broadcast_sizes") == () and run("broadcast_sizes", (2, 0), (1,)) == (2, 0)
    with pytest.raises(ShapeError, match="could not be broadcast together"):
        run("broadcast_sizes", (3,), (4,))
    assert inferred("broadcast_sizes", (A, 1), (A, 8)) == (A, 8)
    assert inferred("broadcast_sizes", (A,), (B,)) is None  # they may be equal, the run tells
    assert inferred("broadcast_sizes", (A,), None) is None


def test_sizes():
    sizes = op_named("sizes")
    assert sizes.evaluate({}, np.zeros((4, 1))) == (4, 1) and sizes.evaluate({}, 2.0) == ()
    assert set(map(type, sizes.evaluate({}, np.zeros((4, 1))))) == {int}
    assert sizes.infer([TensorType(None, (A, None))], {}) == (ints((A, None)),)
    assert sizes.infer([TensorType()], {}) == (INTS,)


def test_none_is_no_size():
    with pytest.raises(ShapeError, match="reduction_sizes takes sizes, not None"):
        op_named("reduction_sizes").evaluate({}, None)


@pytest.mark.parametrize(
    ("value", "reference", "equal"),
    [
        ((0, 1), (0, 1), True),
        ((0, 1), (1, 0), False),
        ((), (0,), False),
        (None, (), False),
        (None, None, True),
        (1, 1, True),
        (1, True, False),
        (True, 1, False),
        ((True,), (True,), True),
        ("tanh", "tanh", True),
        ("none", "tanh", False),
    ],
)
def test_r3_38_values_are_compared_with_the_profiled_one(value, reference, equal):
    assert op_named("value_eq").evaluate({"value": reference}, value) is equal


def test_r3_38_bools():
    xor, every = op_named("bool_xor").evaluate, op_named("all_true").evaluate
    assert [xor({}, a, b) for a in (False, True) for b in (False, True)] == [False, True, True, False]
    assert every({}) is True and every({}, True, True) is True and every({}, True, False) is False


def test_r3_41_views_are_split_as_profiled():
    fits = op_named("view_guard").evaluate
    attrs = {"constraint": "s0, s1 -> s0, (s1 // 3), 3"}
    assert fits(attrs, (4, 6), (4, 2, 3)) is True
    assert fits(attrs, (4, 6), (-1, 2, 3)) is True
    assert fits(attrs, (4, 6), (4, 3, 2)) is False
    assert fits(attrs, (4, 6), (4, -1, 5)) is False
    assert fits(attrs, (4, 6), None) is False


IN_GRAPH = """
func.func @main(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.ints, !profuse.ints, i1) {
  %0 = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
  %1 = "profuse.sizes"(%y) : (!profuse.tensor) -> !profuse.ints
  %2 = "profuse.broadcast_sizes"(%0, %1) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %3 = "profuse.reduction_sizes"(%2) {axes = array<i64: 0>} : (!profuse.ints) -> !profuse.ints
  %4 = "profuse.size_eq"(%3) {reference = array<i64: 8>} : (!profuse.ints) -> i1
  return %2, %3, %4 : !profuse.ints, !profuse.ints, i1
}
"""


@pytest.mark.parametrize("shape", [(4, 8), (1, 8), (1, 1)])
def test_a_graph_passes_sizes_on(shape):
    """One size alone is a tuple, too."""
    module = decode_module(parse_module(IN_GRAPH, "t"))
    wide = (4, max(shape[1], 2))
    assert evaluate(module, [np.zeros(shape), np.zeros(wide)]) == [wide, wide[1:], True]
