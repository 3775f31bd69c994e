"""TorchScript's control flow, lists and exceptions, on graphs that are written by hand: torch is not needed."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import Loc, ModelError, TraceError
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from profuse.dialect.importers.foreign.torch_values import code_of, numpy_dtype
from profuse.dialect.importers.foreign.torchscript.all_torchscript import TORCHSCRIPT
from profuse.dialect.importers.foreign.torchscript.named_tuples import shaped
from profuse.dialect.importers.foreign.torchscript.script_function import ImportedScript
from profuse.dialect.importers.foreign.torchscript.script_graph import ScriptGraph

V = ValueRef
ENDLESS = 2**63 - 1


def node(op, operands, results, *blocks, **attributes):
    return ForeignNode(op, operands, attributes, results, blocks=blocks, loc=Loc("model.py", 7))


def block(inputs, nodes, *outputs):
    return ForeignBlock(inputs, nodes, outputs)


def function(nodes, output, parameters=("x", "n")):
    body = block(tuple(range(len(parameters))), nodes, output)
    graph = ForeignGraph("f", body, parameters, {}, "the script f")
    return pf.jit(ImportedScript(graph), unsupported="raise", background=False)


def check(f, expected, *calls):
    for args in calls:
        for _ in range(3):
            np.testing.assert_allclose(f(*args), expected(*args), rtol=1e-6)
    state = f.state()
    assert (state.tier, state.counters.get("python_calls", 0)) == ("optimized", 0)


def appending(*, n, first):
    """``out.append(x * i)`` in ``n`` rounds, of which the list is stacked; it may begin with ``x``."""
    body = block((10,), [node("mul", (V(0), V(10)), (12,)), node("aten::append.t", (V(2), V(12)), (13,))], True)
    start = (V(0),) if first else ()
    return [
        node("prim::ListConstruct", start, (2,)),
        node("prim::Loop", (n, True), (), body),
        node("stack", (V(2), 0), (4,)),
    ]


def test_lists_grow_in_recorded_loops():
    f = function(appending(n=V(1), first=False), V(4))
    x = np.arange(6.0).reshape(2, 3)
    check(f, lambda x, n: np.stack([x * i for i in range(n)]), (x, 3), (x, 5), (x, 2))
    assert f.state().counters["traces"] == 1
    assert "scf.for" in f.ir("graph")
    g = function(appending(n=V(1), first=True), V(4))
    check(g, lambda x, n: np.stack([x, *(x * i for i in range(n))]), (x, 3), (x, 4))


def test_lists_grow_in_loops_within_loops():
    append = node("aten::append.t", (V(2), V(12)), (13,))
    inner = block((11,), [node("mul", (V(0), V(11)), (12,)), append], True)
    outer = block((10,), [node("prim::Loop", (V(1), True), (), inner)], True)
    start = node("prim::ListConstruct", (V(0),), (2,))
    f = function([start, node("prim::Loop", (V(1), True), (), outer), node("stack", (V(2), 0), (4,))], V(4))
    x = np.arange(6.0).reshape(2, 3)
    check(f, lambda x, n: np.stack([x, *(x * i for _ in range(n) for i in range(n))]), (x, 3))


def test_short_loops_of_literal_bounds_are_recorded_one_by_one():
    f = function(appending(n=3, first=False), V(4), ("x",))
    x = np.arange(6.0).reshape(2, 3)
    check(f, lambda x: np.stack([x * i for i in range(3)]), (x,))
    assert "scf.for" not in f.ir("graph")


def returning_early(n):
    """``for i in range(n): x = x * 0.5; if x.sum() < 1: return (x, i)``, and ``(x, -1)`` behind it."""
    body = block(
        (10, 11, 12, 13),
        [
            node("mul", (V(13), 0.5), (14,)),
            node("sum", (V(14),), (15,)),
            node("lt", (V(15), 1.0), (16,)),
            node("Bool.Tensor", (V(16),), (17,)),
            node(
                "prim::If",
                (V(17),),
                (18, 19, 20),
                block((), [node("prim::TupleConstruct", (V(14), V(10)), (21,))], False, True, V(21)),
                block((), [], True, False, V(2)),
            ),
        ],
        V(18),
        V(19),
        V(20),
        V(14),
    )
    return [
        node("prim::Uninitialized", (), (2,)),
        node("prim::Loop", (n, True, False, V(2), V(0)), (3, 4, 5), body),
        node(
            "prim::If",
            (V(3),),
            (6,),
            block((), [], V(4)),
            block((), [node("prim::TupleConstruct", (V(5), -1), (7,))], V(7)),
        ),
    ]


@pytest.mark.parametrize("n", [V(1), 20])
def test_functions_are_left_in_loops(n):
    f = function(returning_early(n), V(6))

    def expected(x, n):
        for i in range(n):
            x = x * 0.5
            if x.sum() < 1:
                return x, i
        return x, -1

    x = np.arange(4.0)
    for args in ((x, 20), (x * 1e9, 20), (x + 1, 20)):
        for _ in range(3):
            (values, place), (wanted, number) = f(*args), expected(*args)
            np.testing.assert_allclose(values, wanted)
            assert place == number
    assert f.state().counters["traces"] == 1
    assert "scf.while" in f.ir("graph")


def test_exceptions_of_models_make_runs_void():
    raising = block((), [node("prim::RaiseException", (V(5), "builtins.ValueError"), ())])
    nodes = [
        node("sum", (V(0),), (2,)),
        node("gt", (V(2), 10.0), (3,)),
        node("Bool.Tensor", (V(3),), (4,)),
        node("aten::format", ("more than {} of {}", 10, V(1)), (5,)),
        node("prim::If", (V(4),), (), raising, block((), [])),
        node("add.Tensor", (V(0), 1.0), (6,)),
    ]
    f = function(nodes, V(6))
    check(f, lambda x, n: x + 1, (np.ones(3), 2))
    with pytest.raises(ModelError, match=r"^model.py:7: the model raises ValueError: more than 10 of 2"):
        f(np.full(3, 9.0), 2)
    check(f, lambda x, n: x + 1, (np.ones(3), 2))


def test_conditions_of_sizes_choose_a_branch_with_a_guard():
    nodes = [
        node("size.int", (V(0), 0), (2,)),
        node("aten::gt.int", (V(2), V(1)), (3,)),
        node(
            "prim::If",
            (V(3),),
            (4,),
            block((), [node("mul", (V(0), 2.0), (5,))], V(5)),
            block((), [node("warp", (V(0),), (6,))], V(6)),
        ),
    ]
    f = function(nodes, V(4))
    check(f, lambda x, n: x * 2, (np.ones(4), 3), (np.ones(5), 3))
    assert f.state().counters["traces"] == 1
    with pytest.raises(TraceError, match=r"^model.py:7: TorchScript's operator warp is not supported"):
        f(np.ones(3), 3)


def test_what_no_graph_holds_is_refused():
    append = node("aten::append.t", (V(2), V(0)), (7,))
    condition = [node("sum", (V(0),), (4,)), node("gt", (V(4), 0.0), (5,)), node("Bool", (V(5),), (6,))]
    branch = node("prim::If", (V(6),), (), block((), [append]), block((), []))
    nodes = [node("prim::ListConstruct", (), (2,)), *condition, branch, node("aten::len.t", (V(2),), (8,))]
    with pytest.raises(TraceError, match="a list from outside of a branch or loop"):
        function(nodes, V(8))(np.ones(3), 1)
    ways = node("prim::If", (V(6),), (9,), block((), [], None), block((), [], V(0)))
    with pytest.raises(TraceError, match="a value is None and a tensor or number, which only a run decides"):
        function([*condition, ways], V(9))(np.ones(3), 1)
    with pytest.raises(TraceError, match=r"the script f has operators that are not supported: warp"):
        function([node("warp", (V(0),), (2,))], V(2))
    assert "aten::add.int" in TORCHSCRIPT and "add_.Tensor" in TORCHSCRIPT and "aten::warp" not in TORCHSCRIPT


def test_elements_of_vectors_are_views_that_are_written():
    nodes = [
        node("mul.Tensor", (V(0), 2.0), (2,)),
        node("select.int", (V(2), 0, V(1)), (3,)),
        node("prim::InMemory", (V(3),), (4,)),
        node("neg_", (V(4),), (5,)),
        node("unbind.int", (V(2), 0), (6,)),
        node("aten::__getitem__.t", (V(6), 2), (7,)),
        node("zero_", (V(7),), (8,)),
    ]
    f = function(nodes, V(2))
    x = np.arange(1.0, 4.0)
    check(f, lambda x, n: 2 * x * np.where(np.arange(3) == n, -1, 1) * np.array([1, 1, 0]), (x, 0), (x, 1))


def test_operators_that_make_new_tensors_give_no_views():
    nodes = [
        node("flip", (V(0), (0,)), (2,)),
        node("add_.Tensor", (V(2), V(1)), (3,)),
        node("view", (V(0), (-1,)), (4,)),
    ]
    f = function(nodes, (V(3), V(4)))
    for _ in range(3):
        x = np.arange(3.0)
        flipped, seen = f(x, 5)
        np.testing.assert_array_equal(flipped, [7, 6, 5])
        np.testing.assert_array_equal(x, [0, 1, 2])
        assert np.shares_memory(seen, x) and not np.shares_memory(flipped, x)


def test_results_share_memory_as_those_of_torch():
    nodes = [
        node("mul.Tensor", (V(0), 2.0), (2,)),
        node("t", (V(2),), (3,)),
        node("slice.Tensor", (V(0), 0, 1, 3), (4,)),
    ]
    f = function(nodes, (V(0), V(2), V(3), V(4)))
    x = np.arange(9.0).reshape(3, 3)
    for _ in range(3):
        same, doubled, turned, rows = f(x, 1)
        assert same is x and np.shares_memory(rows, x)
        assert np.shares_memory(doubled, turned) and not np.shares_memory(doubled, x)
    assert f.state().tier == "optimized"


def test_identity_is_kept_of_arguments_and_of_new_tensors():
    def choice(a, b, *before):
        nodes = [*before, node("aten::__is__", (a, b), (9,))]
        return function([*nodes, node("prim::If", (V(9),), (10,), block((), [], 1.0), block((), [], 2.0))], V(10))

    x, y = np.ones(3), np.ones(3)
    turned = node("transpose.int", (V(0), 0, 0), (3,))
    assert (choice(V(0), V(0))(x, y), choice(V(0), V(1))(x, y), choice(V(0), V(3), turned)(x, y)) == (1.0, 2.0, 2.0)
    assert choice(V(3), V(3), turned)(x, y) == 1.0
    for name in ("contiguous", "squeeze"):  # which may give what they take, or another tensor of the same memory
        with pytest.raises(TraceError, match="tensors are compared by their identity"):
            choice(V(0), V(3), node(name, (V(0),), (3,)))(x, y)


def test_arguments_that_are_one_object_are_one_input():
    body = block((0, 1), [node("aten::__is__", (V(0), V(1)), (2,))], V(2))
    script = ScriptGraph(ForeignGraph("f", body, ("x", "y"), {}, "the script f"), (), {}, (), (), {}, compares=True)
    graph = script.with_arguments((), (0, 0))
    assert (graph.parameters, ImportedScript(graph)(np.ones(2))) == (("x",), True)
    assert ImportedScript(script.with_arguments((), (0, 1)))(np.ones(2), np.ones(2)) is False


def test_numbers_are_those_of_torchscript():
    ints = [(op, a, b) for op in ("floordiv", "remainder", "pow", "div") for a in (7, -7) for b in (2, 3)]
    nodes = [node(f"aten::{op}.int", (a, b), (2 + k,)) for k, (op, a, b) in enumerate(ints)]
    results = function(nodes, tuple(V(2 + k) for k in range(len(ints))), ())()
    python = {"floordiv": int.__floordiv__, "remainder": int.__mod__, "pow": float.__pow__, "div": int.__truediv__}
    for (op, a, b), result in zip(ints, results, strict=True):
        wanted = python[op](float(a) if op == "pow" else a, float(b) if op == "pow" else b)
        assert (type(result), result) == (type(wanted), wanted), (op, a, b)
    ranges = [(lower, upper, step) for lower in (0, 2) for upper in (1, 7) for step in (1, 3, -2)]
    nodes = [node("aten::__range_length", r, (2 + k,)) for k, r in enumerate(ranges)]
    lengths = function(nodes, tuple(V(2 + k) for k in range(len(ranges))), ())()
    assert lengths == tuple(len(range(*r)) for r in ranges)


def test_tuples_of_results_have_names():
    shape = ("tuple", (("named", "Pair", ("a", "b"), (None, ("list", None))), ("dict", None)))
    pair, table = shaped(((1, (2, 3)), {"k": 4}), shape)
    assert (pair.a, pair.b, pair._fields, table) == (1, [2, 3], ("a", "b"), {"k": 4})
    assert type(pair).__name__ == "Pair"


def test_parameters_become_arguments():
    body = block((0,), [node("mul", (V(0), V(1)), (2,))], V(2))
    graph = ForeignGraph("f", body, ("x",), {1: np.full(3, 2.0)}, "the script f")
    script = ScriptGraph(graph, (), {}, (), (), {"weight": 1})
    f = pf.jit(ImportedScript(script.with_arguments(("weight",))), unsupported="raise", background=False)
    gradient = pf.grad(lambda w, x: np.sum(f(x, w)))(np.full(3, 5.0), np.arange(3.0))
    np.testing.assert_allclose(gradient, np.arange(3.0))


def test_numbers_of_dtypes():
    for code, name in ((6, "float32"), (7, "float64"), (4, "int64"), (11, "bool"), (15, "bfloat16")):
        assert numpy_dtype(code).name == name and code_of(numpy_dtype(code)) == code
    with pytest.raises(TraceError, match="tensors of 12 are not supported"):
        numpy_dtype(12)


def test_sizes_that_tensors_hold_are_compared_in_emitted_code():
    """Traced modules divide sizes as tensors, to zero: of sizes that is Python's division."""
    nodes = [
        node("size.int", (V(0), 0), (2,)),
        node("prim::NumToTensor.Scalar", (V(2),), (3,)),
        node("div.Tensor_mode", (V(3), 2), (4,), rounding_mode="trunc"),
        node("aten::Int.Tensor", (V(4),), (5,)),
        node("aten::gt.int", (V(5), 2), (6,)),
        node("prim::If", (V(6),), (7,), block((), [node("mul.Tensor", (V(0), 2), (8,))], V(8)), block((), [], V(0))),
        node("add.Tensor", (V(7), 1), (9,)),
    ]
    f = function(nodes, V(9), ("x",))
    check(f, lambda x: x * (2 if len(x) > 5 else 1) + 1, *((np.ones((n, 2)),) for n in (4, 6)))
    assert "dispatched in Python" not in f.explain()
