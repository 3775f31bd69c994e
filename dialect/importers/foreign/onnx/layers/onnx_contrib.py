"""Operators of onnxruntime's own domain, which its quantiser and its optimiser write: com.microsoft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.neural import activation_functions
from ..onnx_table import NodeResults, onnx_op
from ..tensors.onnx_casts import cast
from ..tensors.onnx_elementwise import sigmoid
from .onnx_norms import layer_normalised
from .onnx_quantised import centred, quantised
from .onnx_windows import Ints, average_pooled

_F32, _U8 = np.dtype(np.float32), np.dtype(np.uint8)


def _real(x: Any, scale: Any, zero: Any) -> Any:
    """The numbers that quantised ones stand for, in f32; one scale for all."""
    wide = cast(x, _F32)
    return (wide if zero is None else wide - cast(_one(zero), _F32)) * _one(scale)


def _one(x: Any) -> Any:
    """A scale or zero point of a whole tensor as a number."""
    if x.ndim and any(n != 1 for n in x.shape):
        raise TraceError("scales by row or channel are not supported here")
    return np.reshape(x, ()) if x.ndim else x


def _stored(y: Any, scale: Any, zero: Any) -> Any:
    return quantised(y, _one(scale), None if zero is None else _one(zero), _U8 if zero is None else zero.dtype)


def _register_binary(name: str, function: Callable[[Any, Any], Any]) -> None:
    @onnx_op(f"com.microsoft.{name}")
    def handler(
        call: Any, a: Any, scale_a: Any, zero_a: Any, b: Any, scale_b: Any, zero_b: Any, scale: Any, zero: Any = None, /
    ) -> Any:
        return _stored(function(_real(a, scale_a, zero_a), _real(b, scale_b, zero_b)), scale, zero)


_register_binary("QLinearAdd", np.add)
_register_binary("QLinearMul", np.multiply)


@onnx_op("com.microsoft.QLinearSigmoid")
def _quantised_sigmoid(call: Any, x: Any, scale_x: Any, zero_x: Any, scale: Any, zero: Any = None, /) -> Any:
    return _stored(sigmoid(_real(x, scale_x, zero_x)), scale, zero)


@onnx_op("com.microsoft.QLinearLeakyRelu")
def _leaky_relu(
    call: Any, x: Any, scale_x: Any, zero_x: Any, scale: Any, zero: Any = None, /, *, alpha: float = 0.01
) -> Any:
    real = _real(x, scale_x, zero_x)
    return _stored(np.where(real < 0, real * np.float32(alpha), real), scale, zero)


@onnx_op("com.microsoft.QLinearSoftmax")
def _softmax(
    call: Any, x: Any, scale_x: Any, zero_x: Any, scale: Any, zero: Any = None, /, *, axis: int = -1, opset: int = 13
) -> Any:
    real = _real(x, scale_x, zero_x)
    if opset < 13 and axis not in (-1, x.ndim - 1):
        raise TraceError("QLinearSoftmax over several axes is not supported")
    return _stored(activation_functions.softmax(real, axis), scale, zero)


@onnx_op("com.microsoft.QLinearGlobalAveragePool")
def _global_average_pool(
    call: Any, x: Any, scale_x: Any, zero_x: Any, scale: Any, zero: Any = None, /, *, channels_last: int = 0
) -> Any:
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    return _stored(np.mean(_real(x, scale_x, zero_x), axis=axes, keepdims=True), scale, zero)


@onnx_op("com.microsoft.QLinearAveragePool")
def _average_pool(
    call: Any,
    x: Any,
    scale_x: Any,
    zero_x: Any,
    scale: Any,
    zero: Any = None,
    /,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
) -> Any:
    if channels_last:
        raise TraceError("pools whose channels are the last axis are not supported")
    y = average_pooled(
        _real(x, scale_x, zero_x), auto_pad, ceil_mode, count_include_pad, None, kernel_shape, pads, strides
    )
    return _stored(y, scale, zero)


@onnx_op("com.microsoft.QLinearConcat")
def _concat(call: Any, scale: Any, zero: Any, /, *parts: Any, axis: int) -> Any:
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return _stored(np.concatenate([_real(*triple) for triple in triples], axis), scale, zero)


@onnx_op("com.microsoft.QGemm")
def _gemm(
    call: Any,
    a: Any,
    scale_a: Any,
    zero_a: Any,
    b: Any,
    scale_b: Any,
    zero_b: Any,
    c: Any = None,
    scale: Any = None,
    zero: Any = None,
    /,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """Integers are multiplied exactly; what is added has the scale of the product."""
    left, right = centred(a, zero_a, -2), centred(b, zero_b, 0 if transB else -1)
    total = np.matmul(left.T if transA else left, right.T if transB else right)
    if c is not None:
        total = total + cast(c, total.dtype)
    factor = cast(_one(scale_a), total.dtype) * cast(scale_b, total.dtype) * alpha
    y = total * factor
    return cast(y, _F32) if scale is None else quantised(y / _one(scale), 1.0, _one(zero), zero.dtype)


@onnx_op("com.microsoft.MatMulIntegerToFloat")
def _integers_to_float(
    call: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, zero_a: Any = None, zero_b: Any = None, bias: Any = None, /
) -> Any:
    total = cast(np.matmul(centred(a, zero_a, -2), centred(b, zero_b, -1)), _F32)
    y = total * (_one(scale_a) * scale_b)
    return y if bias is None else y + bias


@onnx_op("com.microsoft.FusedMatMul")
def _fused_mat_mul(
    call: Any,
    a: Any,
    b: Any,
    /,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    if transBatchA or transBatchB:
        raise TraceError("FusedMatMul that moves the axes of batches is not supported")
    left = np.swapaxes(a, -1, -2) if transA and a.ndim > 1 else a
    right = np.swapaxes(b, -1, -2) if transB and b.ndim > 1 else b
    y = np.matmul(left, right)
    return y if alpha == 1 else y * y.dtype.type(alpha)


@onnx_op("com.microsoft.Gelu")
def _gelu(call: Any, x: Any, /) -> Any:
    return activation_functions.gelu(x, "none")


@onnx_op("com.microsoft.BiasGelu")
def _bias_gelu(call: Any, x: Any, bias: Any, /) -> Any:
    return activation_functions.gelu(x + bias, "none")


@onnx_op("com.microsoft.FastGelu")
def _fast_gelu(call: Any, x: Any, bias: Any = None, /) -> Any:
    return activation_functions.gelu(x if bias is None else x + bias, "tanh")


@onnx_op("com.microsoft.QuickGelu")
def _quick_gelu(call: Any, x: Any, /, *, alpha: float = 1.702) -> Any:
    return x * sigmoid(x * x.dtype.type(alpha))


@onnx_op("com.microsoft.SkipLayerNormalization")
def _skip_layer_normalization(
    call: Any, x: Any, skip: Any, scale: Any, shift: Any = None, bias: Any = None, /, *, epsilon: float = 1e-12
) -> Any:
    total = x + skip if bias is None else x + skip + bias
    y, mean, inverse = layer_normalised(total, scale, shift, total.ndim - 1, epsilon, 1)
    return NodeResults((y, mean, inverse, total))


@onnx_op("com.microsoft.CDist")
def _distances(call: Any, a: Any, b: Any, /, *, metric: str = "sqeuclidean") -> Any:
    """Distances of all pairs of rows."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise TraceError(f"distances by {metric!r} are not supported")
    differences = np.expand_dims(a, 1) - np.expand_dims(b, 0)
    squares = np.sum(differences * differences, axis=-1)
    return np.sqrt(squares) if metric == "euclidean" else squares
