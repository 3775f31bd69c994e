"""ONNX's normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.neural import normalisations
from ....numpy.neural.layer_inputs import narrowed, widened
from ..onnx_table import NodeResults, onnx_op
from ..tensors.onnx_casts import cast, dtype_numbered
from ..tensors.onnx_shapes import padded


def _each_channel(v: Any, ndim: int) -> Any:
    return np.reshape(v, (-1, *(1,) * (ndim - 2)))


@onnx_op("BatchNormalization")
def _batch_normalization(
    call: Any,
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    var: Any,
    /,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    training_mode: int = 0,
) -> Any:
    if not spatial:
        raise TraceError("BatchNormalization with statistics of each element is not supported")
    if not training_mode:
        if len(call.node.results) > 1:
            raise TraceError("BatchNormalization in training, before version 14, is not supported")
        if x.dtype == mean.dtype == var.dtype == scale.dtype == bias.dtype:
            return normalisations.batch_norm(x, mean, var, scale, bias, False, 0.1, epsilon)
        wide, scale, bias, m, v = (cast(a, np.dtype(np.float32)) for a in (x, scale, bias, mean, var))
        y = normalisations.batch_norm(wide, m, v, scale, bias, False, 0.1, epsilon)
        return narrowed(y, x.dtype)
    wide, m, v, s, b = widened(x, mean, var, scale, bias)
    axes = (0, *range(2, x.ndim))
    own_mean = np.mean(wide, axis=axes)
    centred = wide - _each_channel(own_mean, x.ndim)
    own_var = np.mean(centred * centred, axis=axes)
    factor = s / np.sqrt(own_var + epsilon)
    y = centred * _each_channel(factor, x.ndim) + _each_channel(b, x.ndim)
    running_mean = m * momentum + own_mean * (1.0 - momentum)
    running_var = v * momentum + own_var * (1.0 - momentum)
    return NodeResults((narrowed(y, x.dtype), narrowed(running_mean, mean.dtype), narrowed(running_var, var.dtype)))


@onnx_op("BatchNormalization-1")
def _batch_normalization_old(
    call: Any,
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    var: Any,
    /,
    *,
    consumed_inputs: Any = None,
    epsilon: float = 1e-5,
    is_test: int = 0,
    momentum: float = 0.9,
    spatial: int = 1,
) -> Any:
    if not is_test:
        raise TraceError("BatchNormalization in training, before version 14, is not supported")
    return _batch_normalization(call, x, scale, bias, mean, var, epsilon=epsilon, spatial=spatial)


@onnx_op("InstanceNormalization")
def _instance_normalization(call: Any, x: Any, scale: Any, bias: Any, /, *, epsilon: float = 1e-5) -> Any:
    return normalisations.group_norm(x, int(x.shape[1]), scale, bias, epsilon)


@onnx_op("GroupNormalization")
def _group_normalization(
    call: Any, x: Any, scale: Any, bias: Any, /, *, epsilon: float = 1e-5, num_groups: int, stash_type: int = 1
) -> Any:
    return normalisations.group_norm(x, num_groups, scale, bias, epsilon)


@onnx_op("GroupNormalization-1")
def _group_normalization_old(
    call: Any, x: Any, scale: Any, bias: Any, /, *, epsilon: float = 1e-5, num_groups: int
) -> Any:
    # Scales were those of groups once.
    each = int(x.shape[1]) // num_groups
    return normalisations.group_norm(x, num_groups, np.repeat(scale, each), np.repeat(bias, each), epsilon)


@onnx_op("LayerNormalization")
def _layer_normalization(
    call: Any, x: Any, scale: Any, bias: Any = None, /, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    at = axis % x.ndim
    shape = tuple(x.shape[at:])
    plain = len(call.node.results) == 1 and tuple(scale.shape) == shape and (bias is None or bias.shape == scale.shape)
    if plain and x.dtype == scale.dtype and x.dtype.kind in "fV":
        return normalisations.layer_norm(x, tuple(map(int, shape)), scale, bias, epsilon)
    return NodeResults(layer_normalised(x, scale, bias, at, epsilon, stash_type))


def layer_normalised(x: Any, scale: Any, bias: Any, at: int, epsilon: float, stash_type: int) -> tuple[Any, Any, Any]:
    """`LayerNormalization` from axis ``at`` on, with the mean and the inverse deviation."""
    wide = cast(x, dtype_numbered(stash_type))
    axes = tuple(range(at, x.ndim))
    mean = np.mean(wide, axis=axes, keepdims=True)
    centred = wide - mean
    inverse = 1.0 / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + epsilon)
    y = cast(centred * inverse, x.dtype) * scale
    return y if bias is None else y + bias, mean, inverse


@onnx_op("RMSNormalization")
def _rms_normalization(
    call: Any, x: Any, scale: Any, /, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    wide = cast(x, dtype_numbered(stash_type))
    axes = tuple(range(axis % x.ndim, x.ndim))
    y = wide * (1.0 / np.sqrt(np.mean(wide * wide, axis=axes, keepdims=True) + epsilon))
    return narrowed(y, x.dtype) * scale


@onnx_op("LpNormalization")
def _lp_normalization(call: Any, x: Any, /, *, axis: int = -1, p: int = 2) -> Any:
    if p == 1:
        norm = np.sum(np.abs(x), axis=axis, keepdims=True)
    else:
        norm = np.sqrt(np.sum(x * x, axis=axis, keepdims=True))
    return x / np.where(norm == 0, np.ones((), x.dtype)[()], norm)


@onnx_op("MeanVarianceNormalization")
def _mean_variance_normalization(call: Any, x: Any, /, *, axes: Sequence[int] = (0, 2, 3)) -> Any:
    chosen = tuple(axes)
    centred = x - np.mean(x, axis=chosen, keepdims=True)
    deviation = np.sqrt(np.mean(centred * centred, axis=chosen, keepdims=True))
    return centred / (deviation + 1e-9)


@onnx_op("LRN")
def _lrn(call: Any, x: Any, /, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int) -> Any:
    before = (size - 1) // 2
    squares = padded(x * x, {1: (before, size - 1 - before)})
    total: Any = None
    channels = x.shape[1]
    for k in range(size):
        part = squares[:, k : k + channels]
        total = part if total is None else total + part
    return x / (bias + (alpha / size) * total) ** beta
