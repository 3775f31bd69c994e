"""Operators of com.microsoft against onnxruntime, whose own they are; skipped where it is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
helper, numpy_helper = pytest.importorskip("onnx.helper"), pytest.importorskip("onnx.numpy_helper")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

_DRAW = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return _DRAW.normal(size=shape).astype(np.float32)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def integers(dtype: Any, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return _DRAW.integers(limits.min, limits.max + 1, shape).astype(dtype)


def of_seven_bits(*shape: int) -> np.ndarray:
    """Weights of seven bits: on CPUs without VNNI, onnxruntime adds pairs of products in 16 bits, which saturate."""
    return _DRAW.integers(-64, 64, shape).astype(np.int8)


U8, I8 = np.uint8, np.int8
_A, _B = (integers(U8, 3, 4), scale(0.02), np.uint8(7)), (integers(U8, 3, 4), scale(0.03), np.uint8(120))
_IMAGE = (integers(U8, 2, 3, 6, 5), scale(0.02), np.uint8(9))
_RESULT = (scale(0.05), np.uint8(100))
CASES: dict[str, tuple[str, tuple, dict[str, Any]]] = {
    "sum": ("QLinearAdd", (*_A, *_B, *_RESULT), {}),
    "product": ("QLinearMul", (*_A, *_B, *_RESULT), {}),
    "sigmoid": ("QLinearSigmoid", (*_A, scale(1 / 256), np.uint8(0)), {}),
    "leaky": ("QLinearLeakyRelu", (*_A, *_RESULT), {"alpha": 0.2}),
    "softmax": ("QLinearSoftmax", (*_A, scale(1 / 256), np.uint8(0)), {"axis": -1, "opset": 13}),
    "mean": ("QLinearGlobalAveragePool", (*_IMAGE, *_RESULT), {}),
    "pool": (
        "QLinearAveragePool",
        (*_IMAGE, *_RESULT),
        {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]},
    ),
    "joined": ("QLinearConcat", (*_RESULT, *_A, *_B), {"axis": 1}),
    "gemm": (
        "QGemm",
        (
            *_A,
            of_seven_bits(5, 4),
            scale(0.01),
            np.int8(3),
            integers(np.int16, 5).astype(np.int32),
            scale(0.5),
            np.uint8(128),
        ),
        {"transB": 1, "alpha": 1.0},
    ),
    "gemm of columns": (
        "QGemm",
        (
            *_A,
            of_seven_bits(4, 5),
            np.abs(floats(5)) * 0.01 + scale(0.001),
            np.zeros(5, I8),
            integers(np.int16, 5).astype(np.int32),
        ),
        {"alpha": 1.0},
    ),
    "to floats": (
        "MatMulIntegerToFloat",
        (_A[0], integers(U8, 4, 5), scale(0.1), np.abs(floats(5)), np.uint8(3), integers(U8, 5), floats(5)),
        {},
    ),
    "turned": ("FusedMatMul", (floats(2, 4, 3), floats(2, 5, 4)), {"transA": 1, "transB": 1, "alpha": 0.5}),
    "gelu": ("Gelu", (floats(3, 4),), {}),
    "gelu of a sum": ("BiasGelu", (floats(3, 4), floats(4)), {}),
    "fast gelu": ("FastGelu", (floats(3, 4), floats(4)), {}),
    "quick gelu": ("QuickGelu", (floats(3, 4),), {"alpha": 1.5}),
    "norm": (
        "SkipLayerNormalization",
        (floats(2, 3, 4), floats(2, 3, 4), floats(4), floats(4), floats(4)),
        {"epsilon": 1e-5},
    ),
    "squares": ("CDist", (floats(3, 4), floats(5, 4)), {"metric": "sqeuclidean"}),
    "distances": ("CDist", (floats(3, 4), floats(5, 4)), {"metric": "euclidean"}),
}


@pytest.mark.parametrize("case", CASES)
def test_operators_of_the_quantiser(case):
    from profuse.executor.functions.onnx_backend import PreparedModel

    op, operands, attributes = CASES[case]
    # Operands that are arrays are arguments; scales and zero points are weights, as the quantiser has them.
    names = [f"x{k}" for k in range(len(operands))]
    given = {name: x for name, x in zip(names, operands, strict=True) if np.ndim(x) > 1}
    types = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in zip(names, operands, strict=True)}
    inputs = [helper.make_tensor_value_info(name, types[name], [None] * x.ndim) for name, x in given.items()]
    weights = [
        numpy_helper.from_array(np.asarray(x), name)
        for name, x in zip(names, operands, strict=True)
        if name not in given
    ]
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")], weights)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9)
    (wanted,) = runtime.InferenceSession(model.SerializeToString()).run(None, given)
    kind = helper.np_dtype_to_tensor_dtype(wanted.dtype)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, [None] * wanted.ndim))
    prepared = PreparedModel(model)
    for _ in range(3):
        (found,) = prepared.run([*given.values()])
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        # Halves between two integers are rounded by what precedes them.
        np.testing.assert_allclose(
            found.astype(np.float64), wanted, rtol=1e-4, atol=1 if wanted.dtype.kind in "iu" else 1e-5
        )
    if wanted.dtype.kind in "iu":
        assert np.mean(found != wanted) < 0.2
    assert prepared.function.state().tier == "optimized"
