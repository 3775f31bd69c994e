"""ONNX's dropout, which is the identity in inference, and its steps of optimisers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....errors import TraceError
from ....numpy.tracing.current import contents_error
from ...array_values import is_size, is_traced
from ..onnx_table import NodeResults, onnx_op


@onnx_op("Dropout", kept=(2,))
def _dropout(
    call: Any, x: Any, ratio_of: Any = None, training: Any = None, /, *, ratio: float = 0.5, seed: int = 0
) -> Any:
    if is_traced(training) and not is_size(training):
        raise contents_error("the mode of Dropout is known only at run time", "pass it as True or False")
    share = ratio if ratio_of is None else ratio_of
    if training is not None and bool(training) and (is_traced(share) or float(share) != 0):
        raise TraceError("Dropout in training draws numbers, which no other system would draw again")
    ones = np.ones(tuple(map(int, x.shape)), np.bool_) if len(call.node.results) > 1 else None
    return NodeResults((x, ones))


@onnx_op("Dropout-1")
def _dropout_old(call: Any, x: Any, /, *, consumed_inputs: Any = None, is_test: int = 0, ratio: float = 0.5) -> Any:
    if not is_test:
        raise TraceError("Dropout in training draws numbers, which no other system would draw again")
    return _dropout(call, x)


@onnx_op("ai.onnx.preview.training.Adagrad")
def _adagrad(
    call: Any,
    rate: Any,
    step: Any,
    /,
    *arrays: Any,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Any:
    count = len(arrays) // 3
    r = rate / (1.0 + step * decay_factor)
    news, totals = [], []
    for x, g, h in zip(*_thirds(arrays, count), strict=True):
        g = g + norm_coefficient * x
        h = h + g * g
        news.append(x - (r * g / (np.sqrt(h) + epsilon)).astype(x.dtype))
        totals.append(h)
    return NodeResults((*news, *totals))


def _thirds(arrays: tuple, count: int) -> tuple[tuple, tuple, tuple]:
    return arrays[:count], arrays[count : 2 * count], arrays[2 * count : 3 * count]


@onnx_op("ai.onnx.preview.training.Adam")
def _adam(
    call: Any,
    rate: Any,
    step: Any,
    /,
    *arrays: Any,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> Any:
    count = len(arrays) // 4
    t = step.astype(np.float32)
    fading = np.where(step > 0, 1.0 - np.power(np.float32(alpha), t), np.float32(1))
    corrected = rate * np.sqrt(1.0 - np.power(np.float32(beta), t)) / fading
    r = np.where(step > 0, corrected, rate)
    news, firsts, seconds = [], [], []
    for k in range(count):
        x, g, v, h = (arrays[k + m * count] for m in range(4))
        g = g + norm_coefficient * x
        v = alpha * v + (1.0 - alpha) * g
        h = beta * h + (1.0 - beta) * g * g
        new = x - (r * v / (np.sqrt(h) + epsilon)).astype(x.dtype)
        news.append((1.0 - norm_coefficient_post) * new)
        firsts.append(v)
        seconds.append(h)
    return NodeResults((*news, *firsts, *seconds))


@onnx_op("ai.onnx.preview.training.Momentum")
def _momentum(
    call: Any, rate: Any, step: Any, /, *arrays: Any, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> Any:
    count = len(arrays) // 3
    factor = np.where(step > 0, np.float32(beta), np.float32(1))
    news, velocities = [], []
    for x, g, v in zip(*_thirds(arrays, count), strict=True):
        g = g + norm_coefficient * x
        v = (alpha * v + factor * g).astype(x.dtype)
        news.append(x - (rate * (g + alpha * v if mode == "nesterov" else v)).astype(x.dtype))
        velocities.append(v)
    return NodeResults((*news, *velocities))
