"""Foreign graphs: nodes, tables, interpretation on traced values and on arrays."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import Loc, ShapeError, TraceError
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from profuse.dialect.importers.foreign.imported_function import ImportedFunction
from profuse.dialect.importers.foreign.operator_table import OperatorTable

TABLE = OperatorTable("Toy")


@TABLE.register("mm", "product")
def _mm(call, a, b):
    return a @ b


@TABLE.register("tanh")
def _tanh(call, x):
    return np.tanh(x)


@TABLE.register("is_positive")
def _is_positive(call, x):
    return np.sum(x) > 0


@TABLE.register("halves")
def _halves(call, x, *, axis):
    return tuple(np.split(x, 2, axis))


@TABLE.register("if")
def _if(call, condition, x):
    return pf.cond(condition, lambda v: call.run_block(0, v)[0], lambda v: call.run_block(1, v)[0], x)


def node(op, operands, results, *blocks, line=0, **attributes):
    place = Loc("model.toy", line) if line else None
    return ForeignNode(op, operands, attributes, results, blocks=blocks, loc=place)


def model(weight):
    a, b, c, d, e, f = map(ValueRef, range(2, 8))
    on = ForeignBlock((8,), [node("tanh", (ValueRef(8),), (9,), line=5)], (ValueRef(9),))
    off = ForeignBlock((10,), [], (ValueRef(10),))
    nodes = [
        node("mm", (ValueRef(0), ValueRef(1)), (2,), line=3),
        node("is_positive", (a,), (3,), line=4),
        node("if", (b, a), (4,), on, off, line=4),
        node("halves", (c,), (5, 6), axis=0, line=6),
        node("product", (d, weight), (7,), line=7),
    ]
    return ForeignGraph("toy", ForeignBlock((0,), nodes, (f, (e, 2))), ("x",), {1: weight}, "the toy model")


def expected(x, weight):
    y = x @ weight
    y = np.tanh(y) if y.sum() > 0 else y
    first, second = np.split(y, 2, 0)
    return first @ weight, (second, 2)


def test_a_graph_is_a_function_in_all_tiers():
    rng = np.random.default_rng(0)
    weight = rng.random((4, 4))
    graph = pickle.loads(pickle.dumps(model(weight)))
    graph.constants[1] = weight
    function = ImportedFunction(graph, TABLE)
    f = pf.jit(function, unsupported="raise", background=False)
    assert str(inspect.signature(f)) == "(x)"
    for x in (rng.random((4, 4)), -rng.random((4, 4)), rng.random((4, 4))):
        for found in (f(x), f(x=x), function(x)):
            (first, (second, two)), (wanted, (other, _)) = found, expected(x, weight)
            np.testing.assert_allclose(first, wanted)
            np.testing.assert_allclose(second, other)
            assert two == 2
    state = f.state()
    assert state.tier == "optimized"
    assert (state.counters["traces"], state.counters.get("python_calls", 0)) == (2, 0)  # one by name
    assert "model.toy:3" in f.explain()
    weight[:] = 0  # a constant is captured, not copied
    assert not f(x)[0].any()


def test_gradients_and_inlining():
    weight = np.random.default_rng(1).random((4, 4))
    f = pf.jit(ImportedFunction(model(weight), TABLE), unsupported="raise", background=False)
    x = np.random.default_rng(2).random((4, 4))
    gradient = pf.grad(lambda x: np.sum(f(x)[1][0]))(x)
    y = np.tanh(x @ weight)
    wanted = (1 - y * y) * np.repeat([[0.0], [1.0]], 2, 0) @ weight.T
    np.testing.assert_allclose(gradient, wanted)


def test_errors_tell_the_place_in_the_model():
    f = pf.jit(ImportedFunction(model(np.ones((4, 4))), TABLE), unsupported="raise")
    with pytest.raises(ShapeError, match=r"^model.toy:3: .*mismatch") as caught:
        f(np.ones((3, 3)))
    assert caught.value.loc == Loc("model.toy", 3)


def test_all_operators_that_are_missing_are_named():
    nodes = [node("warp", (), (1,), line=9), node("fold", (), (2,)), node("warp", (), (3,))]
    graph = ForeignGraph("g", ForeignBlock((0,), nodes, ()), ("x",), {}, "the model g")
    with pytest.raises(TraceError, match=r"model.toy:9: the model g has .* not supported: warp \(2\), fold$"):
        ImportedFunction(graph, TABLE)
    assert [n.op for n in TABLE.missing(graph.body)] == ["warp", "fold", "warp"]


def test_a_name_has_one_handler():
    with pytest.raises(ValueError, match="mm has a handler"):
        TABLE.register("mm")(_tanh)
    assert "product" in TABLE and "warp" not in TABLE and len(TABLE) == len(list(TABLE)) == 6


def test_a_table_extends_another():
    base = OperatorTable("base")
    base.register("add", "mul.Scalar")(lambda call, a, b: a + b)
    table = OperatorTable("own", base=base)
    table.register("add.Scalar")(lambda call, a, b: a - b)
    assert table.find("add.Scalar") is not base.find("add.Scalar")  # its own comes first
    assert table.find("add.Tensor") is base.find("add") is base.find("add.Tensor")  # an overload without one
    assert table.find("mul.Tensor") is None and "mul.Scalar" in table
    assert sorted(table) == ["add", "add.Scalar", "mul.Scalar"] and len(table) == 3 and len(base) == 2


def test_constants_become_inputs_and_inputs_constants():
    x, w = np.ones((2, 3)), np.full((3, 2), 5.0)
    body = ForeignBlock((0,), [node("mm", (ValueRef(0), ValueRef(1)), (2,))], (ValueRef(2),))
    opened = ForeignGraph("toy", body, ("x",), {1: np.zeros((3, 2))}, "the toy model").with_inputs([1])
    assert not opened.constants and opened.parameters == ("x", "tensor_0")
    np.testing.assert_array_equal(ImportedFunction(opened, TABLE)(x, w), x @ w)
    closed = opened.with_constants([x])
    assert closed.parameters == ("tensor_0",) and closed.constants[0] is x
    np.testing.assert_array_equal(ImportedFunction(closed, TABLE)(w), x @ w)
