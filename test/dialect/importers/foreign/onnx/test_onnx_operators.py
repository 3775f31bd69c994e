"""ONNX's operators on graphs that are written by hand: sizes that stay numbers, ONNX's meanings, control flow."""

from __future__ import annotations

import math
import pickle
import sys
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError, DTypeError, Loc, ShapeError, TraceError
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from profuse.dialect.importers.foreign.imported_function import ImportedFunction
from profuse.dialect.importers.foreign.onnx.all_onnx import ONNX

F32 = np.dtype(np.float32)


class Writer:
    """Writes a graph: nodes by the names of their values."""

    def __init__(self, *inputs: str) -> None:
        self.numbers: dict[str, int] = {}
        self.inputs = inputs
        self.constants: dict[int, Any] = {}
        self.nodes: list[ForeignNode] = []
        for name in inputs:
            self.number(name)

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def constant(self, name: str, value: Any) -> None:
        self.constants[self.number(name)] = value

    def node(self, op: str, operands: str, results: str, *blocks: ForeignBlock, **attributes: Any) -> None:
        refs = tuple(None if name == "_" else ValueRef(self.number(name)) for name in operands.split())
        numbers = tuple(self.number(name) for name in results.split())
        place = Loc(f"model.onnx:{op}", len(self.nodes) + 1)
        self.nodes.append(ForeignNode(op, refs, attributes, numbers, blocks=blocks, loc=place))

    def function(self, *outputs: str) -> ImportedFunction:
        for name in outputs:
            self.node("profuse.Result", name, f"{name}.result")
        refs = tuple(ValueRef(self.number(f"{name}.result")) for name in outputs)
        body = ForeignBlock(tuple(self.number(n) for n in self.inputs), self.nodes, refs)
        return ImportedFunction(ForeignGraph("g", body, self.inputs, self.constants, "the ONNX model g"), ONNX)


def jitted(function: Any, **options: Any) -> Any:
    return pf.jit(function, unsupported="raise", background=False, **options)


def of_one(op: str, *operands: Any, **attributes: Any) -> Any:
    """An operator of these operands, by three calls."""
    names = [f"x{k}" for k in range(len(operands))]
    w = Writer(*names)
    w.node(op, " ".join(names), "y", **attributes)
    f = jitted(w.function("y"))
    for _ in range(3):
        result = f(*operands)
    assert f.state().tier == "optimized"
    return result


def test_sizes_stay_numbers():
    w = Writer("x")
    w.constant("first", np.array([0]))
    w.constant("rest", np.array([-1]))
    w.node("Shape", "x", "shape")
    w.node("Gather", "shape first", "rows", axis=0)
    w.node("Concat", "rows rest", "target", axis=0)
    w.node("Reshape", "x target", "flat")
    w.node("Shape", "flat", "sizes")
    f = jitted(w.function("flat", "sizes"), strategy=[("dynamic", 2)])
    for n in (4, 5, 6, 7):
        x = np.arange(n * 6.0).reshape(n, 2, 3)
        for _ in range(2):
            flat, sizes = f(x)
        np.testing.assert_array_equal(flat, x.reshape(n, 6))
        assert sizes.tolist() == [n, 6] and sizes.dtype == np.int64
    assert (f.state().counters["traces"], f.state().counters["compiles"]) == (1, 1)


def test_truths_of_sizes_become_numbers():
    w = Writer("x")
    w.constant("three", np.array([3]))
    w.node("Shape", "x", "shape")
    w.node("Greater", "shape three", "large")
    w.node("Cast", "large", "count", to=7)
    w.node("Cast", "large", "truth", to=9)
    count, truth = jitted(w.function("count", "truth"))(np.ones((2, 5)))
    assert (count.tolist(), count.dtype) == ([0, 1], np.int64)
    assert (truth.tolist(), truth.dtype) == ([False, True], np.bool_)


def test_sizes_of_arrays_are_known_at_run_time():
    w = Writer("x", "target")
    w.node("Reshape", "x target", "y")
    f = jitted(w.function("y"))
    x = np.arange(12.0)
    for target in ([3, 4], [3, 4], [2, 6], [4, 3]):
        np.testing.assert_array_equal(f(x, np.array(target)), x.reshape(target))
    assert f.state().counters["traces"] == 1


def test_integers_divide_to_zero():
    a, b = np.array([7, -7, 7, -7, 6]), np.array([2, 2, -2, -2, 3])
    assert of_one("Div", a, b).tolist() == [3, -3, -3, 3, 2]
    assert of_one("Mod", a, b).tolist() == [1, 1, -1, -1, 0]
    assert of_one("Mod", a, b, fmod=1).tolist() == [1, -1, 1, -1, 0]


def test_powers_have_the_dtype_of_the_base():
    for x, y in (([1.5, 2.0], [2, 3]), ([2, 3], [2.0, 0.5])):
        x, y = np.array(x), np.array(y)
        x = x.astype(np.float32 if x.dtype.kind == "f" else np.int32)
        y = y.astype(np.float32 if y.dtype.kind == "f" else np.int64)
        found = of_one("Pow", x, y)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, np.power(x.astype(float), y).astype(x.dtype))


def test_the_upper_bound_counts_where_bounds_cross():
    assert of_one("Clip", np.array([0.0, 5.0], np.float32), np.float32(3), np.float32(1)).tolist() == [1, 1]


def test_reductions_of_nothing_are_neutral():
    empty = np.zeros((2, 0), np.float32)
    assert of_one("ReduceMax", empty, axes=(1,), keepdims=0).tolist() == [-np.inf] * 2
    assert of_one("ReduceSum", empty, axes=(1,), keepdims=0).tolist() == [0, 0]


def test_convolutions_with_uneven_padding():
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    w = np.array([[[1, 10]]], np.float32)
    assert of_one("Conv", x, w, pads=(1, 0)).ravel().tolist() == [0, 10, 21, 32, 43]
    assert of_one("ConvTranspose", x, w, strides=(2,)).ravel().tolist() == [0, 0, 1, 10, 2, 20, 3, 30, 4, 40]
    assert of_one("ConvTranspose", x, w, pads=(1, 0)).ravel().tolist() == [1, 12, 23, 34, 40]


def branch(w: Writer, op: str) -> ForeignBlock:
    result = w.number(f"of {op}")
    return ForeignBlock((), [ForeignNode(op, (ValueRef(w.number("x")),), {}, (result,))], (ValueRef(result),))


def test_branches_are_chosen_by_sizes_or_at_run_time():
    w = Writer("x", "flag")
    w.node("If", "flag", "y", branch(w, "Exp"), branch(w, "Neg"))
    f = jitted(w.function("y"))
    x = np.ones(3)
    for flag in (True, False, True):
        np.testing.assert_allclose(f(x, np.array(flag)), np.exp(x) if flag else -x)
    assert f.state().counters["traces"] == 1
    w = Writer("x")
    w.constant("two", np.array(2))
    w.node("Size", "x", "n")
    w.node("Greater", "n two", "large")
    w.node("If", "large", "y", branch(w, "Exp"), branch(w, "Neg"))
    f = jitted(w.function("y"))
    for n in (3, 2, 4):
        np.testing.assert_allclose(f(np.ones(n)), np.exp(np.ones(n)) if n > 2 else -np.ones(n))
    assert f.state().counters["traces"] == 2  # one for each branch
    assert "scf.if" not in f.ir("graph")


@pytest.mark.parametrize("steps", [3, 20])
def test_scans_carry_states_and_gather_outputs(steps):
    w = Writer("start", "xs")
    state, x, new, out = map(w.number, ("state", "x", "new", "out"))
    body = ForeignBlock(
        (state, x),
        [
            ForeignNode("Add", (ValueRef(state), ValueRef(x)), {}, (new,)),
            ForeignNode("Neg", (ValueRef(new),), {}, (out,)),
        ],
        (ValueRef(new), ValueRef(out)),
    )
    w.node("Scan", "start xs", "last ys", body, num_scan_inputs=1)
    f = jitted(w.function("last", "ys"))
    xs = np.arange(steps * 2.0).reshape(steps, 2)
    for _ in range(3):
        last, ys = f(np.zeros(2), xs)
    np.testing.assert_allclose(last, xs.sum(0))
    np.testing.assert_allclose(ys, -np.cumsum(xs, 0))
    assert f.state().tier == "optimized"


def test_a_scan_over_weights_serves_any_number_of_rows():
    """What each step gives is as long as the state, whose size is an argument's."""
    body = Writer("state", "row")
    body.node("Sub", "state row", "apart")
    body.node("ReduceSumSquare", "apart axes", "square", keepdims=0)
    body.constant("axes", np.array([1]))
    w = Writer("x")
    w.numbers = body.numbers
    w.constant("rows", np.arange(40.0).reshape(20, 2))
    refs = tuple(ValueRef(w.number(name)) for name in ("state", "square"))
    block = ForeignBlock((w.number("state"), w.number("row")), body.nodes, refs)
    w.constants |= body.constants
    w.node("profuse.Argument", "x", "pairs", name="x", dtype=np.dtype(np.float64), shape=(None, 2))
    w.node("Scan", "pairs rows", "last squares", block, num_scan_inputs=1)
    f = jitted(w.function("squares"), strategy=[("dynamic", 2)])
    for rows in (3, 12, 9):
        x = np.random.default_rng(rows).normal(size=(rows, 2))
        for _ in range(2):
            found = f(x)
        np.testing.assert_allclose(found, ((np.arange(40.0).reshape(20, 1, 2) - x) ** 2).sum(-1), rtol=1e-6)
    assert f.state().tier == "optimized" and f.state().counters["traces"] == 1


def test_a_recurrent_layer_serves_any_number_of_long_rows():
    """What its loop gives has sizes that are known: a reshape of it asks for none."""
    draws = np.random.default_rng(0)
    w = Writer("x")
    weights = {"W": (1, 4, 3), "R": (1, 4, 4), "B": (1, 8)}
    for name, shape in weights.items():
        w.constant(name, draws.normal(size=shape).astype(F32))
    w.constant("flat", np.array([0, 0, -1]))
    w.node("profuse.Argument", "x", "rows", name="x", dtype=F32, shape=(None, None, 3))
    w.node("RNN", "rows W R B", "y last", hidden_size=4)
    w.node("Reshape", "y flat", "steps")
    w.constant("one", np.array([1]))
    w.node("Squeeze", "y one", "states")
    w.node("Shape", "states", "sizes")
    w.node("Reshape", "states sizes", "same")
    f = jitted(w.function("steps", "last", "same"), strategy=[("dynamic", 2)])
    matrix, inner, bias = (w.constants[w.number(name)][0] for name in weights)
    for length, batch in ((9, 2), (20, 3), (12, 1)):
        x = draws.normal(size=(length, batch, 3)).astype(F32)
        for _ in range(2):
            found, last, same = f(x)
        state, wanted = np.zeros((batch, 4), F32), []
        for step in x:
            state = np.tanh(step @ matrix.T + state @ inner.T + bias[:4] + bias[4:])
            wanted.append(state)
        np.testing.assert_allclose(found, np.stack(wanted)[:, None].reshape(length, 1, -1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(last, state[None], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(same, found.reshape(same.shape))
    assert f.state().tier == "optimized" and f.state().counters["traces"] == 1


@pytest.mark.parametrize("op", ["Sigmoid", "Erf"])
def test_functions_of_halves_are_halves(op):
    x = np.array([-1.5, 0.25, 2.0], np.float16)
    y = of_one(op, x)
    wide = x.astype(np.float64)
    wanted = 1 / (1 + np.exp(-wide)) if op == "Sigmoid" else [math.erf(v) for v in wide]
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, wanted, rtol=1e-3)


def test_scales_of_one_element_are_those_of_a_tensor():
    x, scale, zero = np.array([3, 5, 250], np.uint8), np.array([0.5], F32), np.array([3], np.uint8)
    assert of_one("DequantizeLinear", x, scale, zero).tolist() == [0.0, 1.0, 123.5]
    assert of_one("QuantizeLinear", np.array([0, 1, 123.5], F32), scale, zero).tolist() == [3, 5, 250]


def test_arguments_are_checked():
    w = Writer("x")
    w.node("profuse.Argument", "x", "checked", name="x", dtype=F32, shape=(None, 3))
    w.node("Relu", "checked", "y")
    f = jitted(w.function("y"))
    assert f(-np.ones((2, 3), np.float32)).tolist() == [[0] * 3] * 2
    with pytest.raises(DTypeError, match="x has dtype float64, and the model takes float32"):
        f(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"x has shape \(2, 4\), and the model takes \(\?, 3\)"):
        f(np.ones((2, 4), np.float32))


def test_attributes_that_are_not_known_are_refused():
    w = Writer("x")
    w.node("Relu", "x", "y", slope=2)
    with pytest.raises(TraceError, match=r"^model\.onnx:Relu:1: Relu: .*'slope'"):
        jitted(w.function("y"))(np.ones(2))


def test_gradients_of_models():
    w = Writer("x")
    w.constant("w", np.arange(6.0).reshape(3, 2))
    w.node("Gemm", "x w", "z", transB=0)
    w.node("Tanh", "z", "y")
    f = jitted(w.function("y"))
    x = np.ones((2, 3)) * 0.1
    wanted = (1 - np.tanh(x @ w.constants[w.number("w")]) ** 2) @ w.constants[w.number("w")].T
    np.testing.assert_allclose(pf.grad(lambda v: np.sum(f(v)))(x), wanted)


def test_arguments_that_are_no_arrays_are_refused_with_what_to_pass():
    w = Writer("x")
    w.node("profuse.Argument", "x", "a", name="x", dtype=F32, shape=())
    w.node("Neg", "a", "y")
    f = jitted(w.function("y"))
    assert f(np.float32(2)) == f(2.0) == -2
    for argument, said in (([1.0], "a list"), (None, "None"), (np.float64(2), "float64")):
        with pytest.raises((ArgumentError, DTypeError), match=said) as info:
            f(argument)
        assert info.value.hint and "float32" in info.value.hint


def scattered(x: np.ndarray, w: np.ndarray, stride: int, before: tuple, shape: tuple) -> np.ndarray:
    """The transpose of a convolution by its meaning: each element adds a kernel, times itself."""
    whole = np.zeros((x.shape[0], w.shape[1], *(n * stride + 8 for n in x.shape[2:])), x.dtype)
    for i, j in np.ndindex(*x.shape[2:]):
        rows, columns = (slice(n * stride, n * stride + k) for n, k in zip((i, j), w.shape[2:], strict=True))
        whole[:, :, rows, columns] += np.einsum("nc,cohw->nohw", x[:, :, i, j], w)
    return whole[:, :, before[0] : before[0] + shape[0], before[1] : before[1] + shape[1]]


@pytest.mark.parametrize(
    ("attributes", "before", "shape", "multiplies_zeros"),
    [
        ({}, (0, 0), (8, 10), False),
        ({"output_padding": (1, 0)}, (0, 0), (9, 10), False),
        ({"pads": (1, 0, 0, 0)}, (1, 0), (7, 10), False),
        ({"pads": (0, 0, 1, 0)}, (0, 0), (7, 10), True),
    ],
)
def test_transposed_convolutions_with_strides(attributes, before, shape, multiplies_zeros):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 4, 5)).astype("f4"), rng.standard_normal((3, 16, 2, 2)).astype("f4")
    names = Writer("x")
    names.constant("w", w)
    names.node("ConvTranspose", "x w", "y", strides=(2, 2), **attributes)
    f = jitted(names.function("y"))
    for _ in range(2):
        y = f(x)
    np.testing.assert_allclose(y, scattered(x, w, 2, before, shape), rtol=1e-5, atol=1e-5)
    # A kernel as large as the stride is one product for each of its elements, not a convolution of zeros.
    assert (f.ir().count('"profuse.conv2d"') == 1) == multiplies_zeros


def test_what_to_do_about_dictionaries():
    w = Writer("x")
    w.node("ai.onnx.ml.ZipMap", "x", "y", classlabels_int64s=(0, 1))
    with pytest.raises(TraceError, match=r"not supported: ai\.onnx\.ml\.ZipMap") as info:
        w.function("y")
    assert info.value.hint and "'zipmap': False" in info.value.hint


def test_functions_are_pickled_with_their_graph():
    w = Writer("x")
    w.constant("c", np.arange(3, dtype=np.float32))
    w.node("Add", "x c", "y")
    f = pickle.loads(pickle.dumps(jitted(w.function("y"))))
    x = np.ones(3, np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(f(x), x + np.arange(3))
    assert f.state().counters["kernel_launches"] == 1


def test_slices_to_the_largest_number_leave_no_minimum_in_sizes():
    """Exporters write the end of an axis so; a size with a number of 64 bits would keep calls in Python."""
    w = Writer("x")
    for name, value in (("first", 1), ("last", sys.maxsize), ("axis", 0), ("shape", -1)):
        w.constant(name, np.array([value], np.int64))
    w.node("Slice", "x first last axis", "part")
    w.node("Shape", "part", "sizes")
    w.node("Expand", "x0 sizes", "y")
    w.constant("x0", np.zeros(1, np.float32))
    w.node("Add", "y part", "z")
    f = jitted(w.function("z"))
    x = np.arange(5, dtype=np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(f(x), x[1:])
    assert str(2**62) not in f.ir() and "4611686" not in str(f.explain())
