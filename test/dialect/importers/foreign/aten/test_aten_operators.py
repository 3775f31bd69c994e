"""Operators of ATen on arrays and in traces: torch's meaning where it is not NumPy's."""

from __future__ import annotations

import math

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.foreign.aten.all_aten import ATEN
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from profuse.dialect.importers.foreign.imported_function import ImportedFunction

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy tells of NaN
RNG = np.random.default_rng(3)
X = np.array([-2.5, -0.0, 0.5, 3.0], np.float32)
I = np.array([-7, -1, 0, 5])  # noqa: E741
M = RNG.standard_normal((3, 4)).astype(np.float32)


def function_of(count, *nodes, outputs=None):
    """A function of ``count`` arguments; a node is (operator, operands, attributes), where Ref(k) is value k."""
    body = [ForeignNode(op, operands, named, (count + k,)) for k, (op, operands, named) in enumerate(nodes)]
    results = tuple(ValueRef(count + k) for k in (range(len(nodes)) if outputs is None else outputs))
    names = tuple(f"x{k}" for k in range(count))
    graph = ForeignGraph("f", ForeignBlock(tuple(range(count)), body, results), names, {}, "a graph of ATen")
    return ImportedFunction(graph, ATEN)


def call(op, *operands, **named):
    """The result of one operator for arrays and numbers."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    numbers = iter(range(len(arrays)))
    refs = tuple(ValueRef(next(numbers)) if isinstance(x, np.ndarray) else x for x in operands)
    return function_of(len(arrays), (op, refs, named))(*arrays)


def same(found, wanted):
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def f32(*values):
    return np.array(values, np.float32)


CASES = {
    "true division of integers": (("div.Tensor", I, np.array([2, 2, 2, 2])), f32(-3.5, -0.5, 0, 2.5)),
    "floor division": (("floor_divide", I, 2), np.array([-4, -1, 0, 2])),
    "remainder has the sign of the divisor": (("remainder", I, 3), np.array([2, 2, 0, 2])),
    "fmod has the sign of the dividend": (("fmod", I, 3), np.array([-1, -1, 0, 2])),
    "negative powers of integers": (
        ("pow.Tensor_Tensor", np.array([2, 1, -1, -1]), np.array([-1, -2, -2, -3])),
        np.array([0, 1, 1, -1]),
    ),
    "alpha": (("add.Tensor", X, X), X + X),
    "a float number makes floats of integers": (("mul.Tensor", I, 0.5), f32(-3.5, -0.5, 0, 2.5)),
    "sums of bools": (("sum", X > 0), np.int64(2)),
    "mean over nothing": (("mean", np.zeros((0,), np.float32)), np.float32(np.nan)),
    "an axis of what has none": (("sum.dim_IntList", np.float32(3)[...], (0,)), np.float32(3)),
    "softmax of what has no axis": (("softmax.int", np.array(5.0, np.float32), -1), np.float32(1)),
    "argmax of all": (("argmax", M), np.argmax(M)),
    "running sums of small integers": (("cumsum", np.array([100, 100], np.int8), 0), np.array([100, 200])),
    "clamp from below": (("clamp", X, None, 0.5), f32(-2.5, 0, 0.5, 0.5)),
    "clamp from above wins": (("clamp", X, 2.0, 1.0), f32(1, 1, 1, 1)),
    "sign of NaN": (("sign", f32(np.nan, -2)), f32(0, -1)),
    "variance of one": (("var.correction", f32(3)), np.float32(np.nan)),
    "shifts by more than the width": (
        ("bitwise_left_shift.Tensor", I, np.array([64, 1, 1, 70])),
        np.array([0, -2, 0, 0]),
    ),
    "an empty tensor joins anything": (("cat", (M, np.zeros((0,), np.float32))), M),
    "a mask": (("masked_fill.Scalar", X, X > 0, -1), f32(-2.5, 0, -1, -1)),
    "gather of a part": (("gather", M, 1, np.array([[3], [0]])), np.array([[M[0, 3]], [M[1, 0]]])),
    "scatter adds up": (("scatter_add", X, 0, np.array([1, 1, 3]), f32(1, 2, 3)), f32(-2.5, 3, 0.5, 6)),
    "index_put accumulates": (("index_put", X, (np.array([0, 0]),), f32(1, 2), True), f32(0.5, 0, 0.5, 3)),
    "None takes an axis": (("index.Tensor", M, (None, np.array([2, 0]))), M[:, [2, 0]]),
    "a slice to the end": (("slice.Tensor", M, 1, -2, 2**63 - 1), M[:, -2:]),
    "a pad that takes away": (("constant_pad_nd", X, (1, -2), 9.0), f32(9, -2.5, 0)),
    "expand keeps": (("expand", M[:1], (2, -1, -1)), np.broadcast_to(M[:1], (2, 1, 4))),
    "the order of equal ones is kept": (("argsort", np.array([1, 2, 1, 2]), -1, True), np.array([1, 3, 0, 2])),
    "the largest of equal ones is the first": (("max.dim", np.array([3, 5, 5]), 0), None),
    "a transposed complex matrix is not conjugated": (("mT", M + 1j * M), (M + 1j * M).T),
    "a gate of half precision": (("glu", np.array([3, 0], np.float16)), np.array([1.5], np.float16)),
    "a sum of small integers by letters": (("einsum", "i->", (I.astype(np.int32),)), np.int64(-3)),
    "a trace of small integers by letters": (("einsum", "i->i", (I.astype(np.int32),)), I.astype(np.int32)),
    "bins between equal ends reach from the least to the largest": (("histc", f32(1, 2, 2.5), 3, 2, 2), f32(1, 0, 2)),
    "a norm of infinite order": (("linalg_vector_norm", X, math.inf), np.float32(3)),
}


@pytest.mark.parametrize("name", CASES)
def test_meaning(name):
    (op, *operands), wanted = CASES[name]
    if any(isinstance(x, tuple) and any(isinstance(y, np.ndarray) for y in x) for x in operands):
        arrays = [y for x in operands for y in (x if isinstance(x, tuple) else (x,)) if isinstance(y, np.ndarray)]
        numbers = iter(range(len(arrays)))

        def ref(x):
            if isinstance(x, tuple):
                return tuple(map(ref, x))
            return ValueRef(next(numbers)) if isinstance(x, np.ndarray) else x

        found = function_of(len(arrays), (op, tuple(map(ref, operands)), {}))(*arrays)
    else:
        found = call(op, *operands)
    if wanted is None:
        assert [int(x) for x in found] == [5, 1]
    else:
        same(found, wanted)


def test_names_find_handlers():
    assert ATEN.find("add.Tensor") is ATEN.find("add") is not None
    assert ATEN.find("add_") is ATEN.find("add_.Tensor") is not ATEN.find("add")
    assert ATEN.find("_native_batch_norm_legit.no_stats") is not ATEN.find("_native_batch_norm_legit")
    for name in ("add.out", "squeeze_", "warp", "__warp__", "warp_"):
        assert name not in ATEN
    assert ATEN.find("__and__") is ATEN.find("bitwise_and")


def test_in_place_forms_write_in_the_dtype_of_the_tensor():
    graph = function_of(
        2,
        ("clone", (ValueRef(0),), {}),
        ("add_.Tensor", (ValueRef(2), ValueRef(1)), {"alpha": 2}),
        ("mul", (ValueRef(2), 10), {}),
    )
    f = pf.jit(graph, unsupported="raise", background=False)
    for _ in range(3):
        first, second, third = f(I, np.array([1, 1, 1, 1], np.int32))
        same(first, I + 2)
        same(second, I + 2)
        same(third, (I + 2) * 10)
    assert f.state().tier == "optimized" and I[0] == -7


def test_a_graph_runs_compiled():
    w, b = (RNG.standard_normal(s).astype(np.float32) for s in ((4, 5), (5,)))
    graph = function_of(
        3,
        ("addmm", (ValueRef(2), ValueRef(0), ValueRef(1)), {"alpha": 2}),
        ("native_layer_norm", (ValueRef(3), (5,), None, None, 1e-5), {}),
        ("gelu", (ValueRef(3),), {"approximate": "tanh"}),
        ("sort", (ValueRef(3), -1, True), {}),
        ("topk", (ValueRef(3), 2), {}),
        ("argmax", (ValueRef(3), 1, True), {}),
        ("cummax", (ValueRef(3), 1), {}),
    )
    f = pf.jit(graph, unsupported="raise", background=False)
    y = 2 * (M @ w) + b
    for _ in range(3):
        product, (normal, mean, rstd), _, (values, order), (best, places), place, (peaks, at) = f(M, w, b)
        np.testing.assert_allclose(product, y, rtol=1e-5, atol=1e-6)
        assert mean.shape == rstd.shape == (3, 1)
        np.testing.assert_allclose(
            normal, (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5), atol=1e-4
        )
        assert np.array_equal(values, -np.sort(-product)) and np.array_equal(
            np.take_along_axis(product, order, 1), values
        )
        assert np.array_equal(best, values[:, :2]) and np.array_equal(places, order[:, :2])
        assert np.array_equal(place, product.argmax(1)[:, None])
        assert np.array_equal(peaks, np.maximum.accumulate(product, 1))
        assert np.array_equal(np.take_along_axis(product, at, 1), peaks)
    assert f.state().tier == "optimized" and f.state().counters.get("python_calls", 0) == 0


def test_batch_norm_writes_running_statistics():
    x = RNG.standard_normal((6, 3, 5)).astype(np.float32)
    mean, var = np.zeros(3, np.float32), np.ones(3, np.float32)
    y = call("batch_norm", x, None, None, mean, var, True, 0.1, 1e-5)
    np.testing.assert_allclose(mean, 0.1 * x.mean((0, 2)), rtol=1e-4)
    np.testing.assert_allclose(var, 0.9 + 0.1 * x.var((0, 2), ddof=1), rtol=1e-4)
    np.testing.assert_allclose(y.mean((0, 2)), 0, atol=1e-5)
    functional = call(
        "_native_batch_norm_legit_functional",
        x,
        None,
        None,
        np.zeros(3, np.float32),
        np.ones(3, np.float32),
        True,
        0.1,
        1e-5,
    )
    assert len(functional) == 5
    np.testing.assert_allclose(functional[3], mean, rtol=1e-5)
    np.testing.assert_allclose(functional[4], var, rtol=1e-5)


def test_random_tensors_are_drawn_from_our_generator():
    pf.manual_seed(5)
    first = call("rand", (1000,))
    normal = call("randn", (1000,))
    pf.manual_seed(5)
    assert np.array_equal(call("rand", (1000,)), first) and first.dtype == np.float32
    assert first.min() >= 0 and first.max() < 1 and abs(first.mean() - 0.5) < 0.05
    assert abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.1
    kept, mask = call("native_dropout", np.ones(1000, np.float32), 0.25, True)
    assert np.array_equal(kept != 0, mask) and abs(mask.mean() - 0.75) < 0.06


def test_dropout_of_channels_and_by_negative_saturation():
    pf.manual_seed(5)
    ones = np.ones((40, 50, 3), np.float32)
    whole = call("feature_dropout", ones, 0.25, True)
    assert np.array_equal(whole, np.broadcast_to(whole[..., :1], whole.shape))
    assert set(np.unique(whole)) == {np.float32(0), np.float32(1 / 0.75)} and abs(whole.mean() - 1) < 0.06
    x = RNG.standard_normal((200, 300)).astype(np.float32)
    for name, y in (
        ("alpha_dropout", call("alpha_dropout", x, 0.4, True)),
        ("feature_alpha_dropout", call("feature_alpha_dropout", x[..., None], 0.4, True)),
    ):
        assert abs(y.mean() - x.mean()) < 0.02 and abs(y.std() - x.std()) < 0.02, name
        assert abs(np.unique(y, return_counts=True)[1].max() / y.size - 0.4) < 0.02
    assert not call("feature_alpha_dropout", ones, 1.0, True).any()
    assert np.array_equal(call("alpha_dropout", x, 0.4, False), x)


def test_covariances_are_weighted():
    often, sure = np.array([1, 2, 0, 3]), f32(0.5, 1, 2, 0.25)
    for named in ({"fweights": often}, {"aweights": sure}, {"fweights": often, "aweights": sure}):
        for correction in (0, 1):
            arrays = (M, *named.values())
            refs = {key: ValueRef(k + 1) for k, key in enumerate(named)}
            graph = function_of(len(arrays), ("cov", (ValueRef(0),), {**refs, "correction": correction}))
            same(graph(*arrays), np.cov(M, ddof=correction, **named).astype(np.float32))
    f = pf.jit(function_of(2, ("cov", (ValueRef(0),), {"fweights": ValueRef(1)})), background=False)
    for _ in range(3):
        same(f(M, often), np.cov(M, fweights=often).astype(np.float32))
    with pytest.raises((pf.ProfuseError, IndexError, ValueError), match="fweights cannot be negative"):
        f(M, -often)


def test_statistics_of_half_precision_have_the_dtype_of_the_parameters():
    x = RNG.standard_normal((6, 3, 5)).astype(np.float16)
    for dtype in (np.float16, np.float32):
        parameters = [np.ones(3, dtype) for _ in range(4)]
        for name in ("native_batch_norm", "_native_batch_norm_legit_functional"):
            for is_training in (True, False):
                y, mean, rstd, *_ = call(name, x, *parameters, is_training, 0.1, 1e-5)
                assert y.dtype == np.float16 and mean.dtype == rstd.dtype == dtype


def test_what_random_numbers_are_drawn_by_has_no_gradient():
    graph = function_of(1, ("normal.Tensor_float", (ValueRef(0), 0.5), {}))
    assert pf.grad(lambda x: np.sum(graph(x)))(f32(1, 2)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("op", "operands", "match"),
    [
        ("mean", (I,), "mean is not supported on int64"),
        ("where", (X > 0,), "where is not supported with a condition alone"),
        ("feature_dropout", (X, 0.5, True), "feature_dropout is not supported of a tensor without channels"),
        ("complex", (X.astype(np.float16), X.astype(np.float16)), "complex is not supported on float16"),
        ("upsample_bicubic2d", (np.zeros((1, 1, 2, 2), np.uint8), (4, 4), False), "is not supported on uint8"),
        ("view.dtype", (X, np.dtype(np.int32)), "view is not supported with another dtype"),
    ],
)
def test_forms_that_are_refused(op, operands, match):
    with pytest.raises(pf.TraceError, match=match):
        call(op, *operands)


def test_gradients_at_edges_are_torchs():
    def gradient(node, x=None):
        graph = function_of(1, node)
        return pf.grad(lambda x: np.sum(graph(x)))(f32(-1, 0, 1, 0.5) if x is None else x)

    assert gradient(("clamp", (ValueRef(0), 0, 1), {})).tolist() == [0, 1, 1, 1]
    assert gradient(("clamp_min", (ValueRef(0), 0), {})).tolist() == [0, 1, 1, 1]
    assert gradient(("hardtanh", (ValueRef(0), 0.0, 1.0), {})).tolist() == [0, 0, 0, 1]
    assert gradient(("relu", (ValueRef(0),), {})).tolist() == [0, 0, 1, 1]
    assert gradient(("linalg_vector_norm", (ValueRef(0),), {}), x=f32(0, 0)).tolist() == [0, 0]
    assert gradient(("amax", (ValueRef(0),), {}), x=f32(2, 2, 1)).tolist() == [0.5, 0.5, 0]


REFUSED = {
    "a divisor": ("remainder", (ValueRef(0), ValueRef(1)), np.array([2, 3, 4, 5]), np.array([2, 0, 4, 5])),
    "an index": ("gather", (ValueRef(0), 0, ValueRef(1)), np.array([2, 1]), np.array([2, -1])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contents_that_are_errors_of_torch_are_errors(name):
    op, operands, good, bad = REFUSED[name]
    f = pf.jit(function_of(2, (op, operands, {})), background=False, unsupported="raise")
    for _ in range(3):
        f(I, good)
    assert f.state().tier == "optimized"
    with pytest.raises((pf.ProfuseError, IndexError)):
        f(I, bad)
