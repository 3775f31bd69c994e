"""Calls of every op of neural networks: the op, a function of arrays, its operands, and a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from profuse.dialect.importers.numpy.tracing.composites import composite

RNG = np.random.default_rng(23)
Call = tuple[str, Callable[..., Any], tuple[Any, ...], str]


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


X, G, IMAGES, IMAGE_G = normal(3, 4), normal(3, 4), normal(2, 4, 3, 2), normal(2, 4, 3, 2)
ROW, CHANNELS = normal(4), normal(4)
SPREAD = np.abs(normal(4)) + 0.5
MEANS, SCALES = normal(3, 1), np.abs(normal(3, 1)) + 0.5
SHARES = np.exp(X) / np.exp(X).sum(1, keepdims=True)
MASK = X > 0


def called(name: str, index: int | None = None, **attrs: Any) -> Callable[..., Any]:
    """The op as a function of its operands; ``index``: which of several results it gives."""

    def call(*operands: Any) -> Any:
        results = composite(name, *operands, **attrs)
        return results if index is None else results[index]

    return call


def _with_statistics(x: Any, weight: Any) -> Any:
    y, mean, rstd = composite("native_layer_norm", x, weight, shape=(4,))
    return y * mean + rstd


def _running(x: Any, mean: Any, var: Any) -> Any:
    y, saved, rstd, new_mean, new_var = composite("native_batch_norm", x, None, None, mean, var, training=True)
    return (y.sum((0, 2, 3)) + saved * rstd) * new_mean + new_var


def _indexed(x: Any, grad: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    reserve = np.empty(0, np.uint8)
    operands = 0, x, grad, weight, None, None, mean, rstd, reserve
    gx, gw, gb = composite("batch_norm_index_backward", *operands, training=True)
    return gx.sum((0, 2, 3)) * gw + gb


def _pieces(x: Any, row: Any) -> Any:
    a, b, c, d = composite("broadcasting_chunk", x, row, axis=-1, chunks=2)
    return a * b + c * d


CALLS: list[Call] = [
    ("gelu", called("gelu"), (X,), ""),
    ("gelu", called("gelu", approximate="tanh"), (X,), "tanh"),
    ("silu", called("silu"), (X,), ""),
    ("softmax", called("softmax", axis=0), (X,), "op"),
    ("softmax_backward", called("softmax_backward"), (G, SHARES), ""),
    ("log_softmax", called("log_softmax"), (X,), ""),
    ("log_softmax_backward", called("log_softmax_backward"), (G, np.log(SHARES)), ""),
    ("native_layer_norm", called("native_layer_norm", 0, shape=(4,)), (X, ROW, ROW + 1), ""),
    ("native_layer_norm", called("native_layer_norm", 0, shape=(3, 4)), (X,), "bare"),
    ("native_layer_norm", _with_statistics, (X, ROW), "statistics"),
    *(
        (
            "native_layer_norm_backward",
            called("native_layer_norm_backward", k, shape=(4,)),
            (G, X, MEANS, SCALES, ROW, ROW),
            str(k),
        )
        for k in range(3)
    ),
    ("native_group_norm", called("native_group_norm", 0, groups=2), (IMAGES, CHANNELS, CHANNELS + 1), ""),
    ("batch_norm", called("batch_norm", training=True), (IMAGES, CHANNELS, CHANNELS + 1), ""),
    ("native_batch_norm", called("native_batch_norm", 0, training=True), (IMAGES, CHANNELS, CHANNELS + 1), ""),
    (
        "native_batch_norm",
        called("native_batch_norm", 0, training=False),
        (IMAGES, CHANNELS, CHANNELS + 1, CHANNELS, SPREAD),
        "evaluation",
    ),
    ("native_batch_norm", _running, (IMAGES, CHANNELS, SPREAD), "running"),
    ("batch_norm_index", called("batch_norm_index", 0, training=True), (IMAGES, CHANNELS, CHANNELS + 1), ""),
    *(
        (
            "native_batch_norm_backward",
            lambda g, x, w, m, s, k=k: composite(
                "native_batch_norm_backward", g, x, w, None, None, m, s, training=True
            )[k],
            (IMAGE_G, IMAGES, CHANNELS, CHANNELS + 0.3, SPREAD),
            str(k),
        )
        for k in range(3)
    ),
    ("batch_norm_index_backward", _indexed, (IMAGES, IMAGE_G, CHANNELS, CHANNELS + 0.3, SPREAD), ""),
    ("linear", called("linear"), (X, normal(5, 4), normal(5)), ""),
    ("linear", called("linear"), (X, ROW), "vector"),
    (
        "conv2d",
        called("conv2d", stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
        (normal(2, 4, 5, 6), normal(6, 2, 3, 2), normal(6)),
        "",
    ),
    ("native_dropout", lambda x: composite("native_dropout", x, 5, 3, p=0.4)[0], (X,), ""),
    ("native_dropout", lambda x: composite("native_dropout", x, 5, 3, p=0.4, train=False)[0], (X,), "evaluation"),
    ("native_dropout_backward", lambda g: composite("native_dropout_backward", g, MASK, scale=1.5), (G,), ""),
    ("sum_to_size", called("sum_to_size", sizes=(3, 1)), (normal(2, 3, 4),), ""),
    ("broadcasting_chunk", _pieces, (X, ROW), ""),
    ("reshape_copy", called("reshape_copy", shape=(-1,)), (X,), ""),
    ("squeeze_copy", called("squeeze_copy", axes=(1,)), (MEANS,), ""),
    ("unsqueeze_copy", called("unsqueeze_copy", axes=(1,)), (X,), ""),
    ("add_optional", called("add_optional"), (X, ROW), ""),
]
