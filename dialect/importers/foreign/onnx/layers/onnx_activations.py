"""ONNX's activations, softmax and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural import activation_functions
from ....numpy.neural.layer_inputs import narrowed, widened
from ...array_values import constant_or_created
from ...size_values import product
from ..onnx_table import onnx_op
from ..tensors.onnx_elementwise import sigmoid


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, np.zeros((), x.dtype)[()])


@onnx_op("Relu")
def _relu(call: Any, x: Any, /) -> Any:
    return np.maximum(x, np.zeros((), x.dtype)[()])


@onnx_op("LeakyRelu")
def _leaky_relu(call: Any, x: Any, /, *, alpha: float = 0.01) -> Any:
    return activation_functions.leaky_relu(x, alpha)


@onnx_op("Elu")
def _elu(call: Any, x: Any, /, *, alpha: float = 1.0) -> Any:
    return activation_functions.elu(x, alpha)


@onnx_op("Selu")
def _selu(call: Any, x: Any, /, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875):
    return narrowed(activation_functions.elu(widened(x)[0], alpha) * gamma, x.dtype)


@onnx_op("Celu")
def _celu(call: Any, x: Any, /, *, alpha: float = 1.0) -> Any:
    (wide,) = widened(x)
    return narrowed(np.where(wide > 0, wide, alpha * np.expm1(np.minimum(wide, 0.0) / alpha)), x.dtype)


@onnx_op("ThresholdedRelu")
def _thresholded_relu(call: Any, x: Any, /, *, alpha: float = 1.0) -> Any:
    return np.where(x > alpha, x, np.zeros((), x.dtype)[()])


@onnx_op("HardSigmoid")
def _hard_sigmoid(call: Any, x: Any, /, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return narrowed(np.maximum(0.0, np.minimum(1.0, widened(x)[0] * alpha + beta)), x.dtype)


@onnx_op("HardSwish")
def _hard_swish(call: Any, x: Any, /) -> Any:
    (wide,) = widened(x)
    return narrowed(wide * np.maximum(0.0, np.minimum(1.0, wide * (1.0 / 6.0) + 0.5)), x.dtype)


@onnx_op("Softplus")
def _softplus_of(call: Any, x: Any, /) -> Any:
    return narrowed(_softplus(widened(x)[0]), x.dtype)


@onnx_op("Softsign")
def _softsign(call: Any, x: Any, /) -> Any:
    (wide,) = widened(x)
    return narrowed(wide / (1.0 + np.abs(wide)), x.dtype)


@onnx_op("Mish")
def _mish(call: Any, x: Any, /) -> Any:
    (wide,) = widened(x)
    return narrowed(wide * np.tanh(_softplus(wide)), x.dtype)


@onnx_op("Swish")
def _swish(call: Any, x: Any, /, *, alpha: float = 1.0) -> Any:
    (wide,) = widened(x)
    return narrowed(wide * sigmoid(wide if alpha == 1 else wide * alpha), x.dtype)


@onnx_op("Shrink")
def _shrink(call: Any, x: Any, /, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    if x.dtype.kind in "iu":
        wide = x.astype(np.float64)
        return _shrink(call, wide, bias=bias, lambd=lambd).astype(x.dtype)
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, np.zeros((), x.dtype)[()]))


@onnx_op("Gelu")
def _gelu(call: Any, x: Any, /, *, approximate: str = "none") -> Any:
    return activation_functions.gelu(x, approximate)


@onnx_op("Softmax")
def _softmax(call: Any, x: Any, /, *, axis: int = -1) -> Any:
    return activation_functions.softmax(x, axis)


@onnx_op("LogSoftmax")
def _log_softmax(call: Any, x: Any, /, *, axis: int = -1) -> Any:
    return activation_functions.log_softmax(x, axis)


@onnx_op("Hardmax")
def _hardmax(call: Any, x: Any, /, *, axis: int = -1) -> Any:
    at = axis % x.ndim
    largest = np.expand_dims(np.argmax(x, axis=at), at)
    places = constant_or_created("arange", x.shape[at]).reshape((-1, *(1,) * (x.ndim - 1 - at)))
    return np.equal(largest, places).astype(x.dtype)


def _of_rows(function: Any) -> Any:
    """Before version 13, axes from ``axis`` on are one."""

    def handler(call: Any, x: Any, /, *, axis: int = 1) -> Any:
        at = axis % x.ndim if axis < 0 else axis
        rows = np.reshape(x, (product(tuple(x.shape[:at])), product(tuple(x.shape[at:]))))
        return np.reshape(function(call, rows, axis=1), x.shape)

    return handler


onnx_op("Softmax-1")(_of_rows(_softmax))
onnx_op("LogSoftmax-1")(_of_rows(_log_softmax))
onnx_op("Hardmax-1")(_of_rows(_hardmax))
