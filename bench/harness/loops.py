"""Kernels as one writes them for numba: loops over rows, which run in parallel where it may.

numba compiles elementwise kernels as they are; of reductions along an axis it lacks most.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

try:
    from numba import prange
except ImportError:  # nobody calls these then
    prange = range


def softmax(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = x.dtype.type(0)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


def layernorm(x: Any, g: Any, b: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        mean = x[i].sum() / x.dtype.type(x.shape[1])
        squares = x.dtype.type(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) ** 2
        scale = x.dtype.type(1) / np.sqrt(squares / x.dtype.type(x.shape[1]) + x.dtype.type(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale * g[j] + b[j]
    return out


def rmsnorm(x: Any, g: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        squares = x.dtype.type(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        scale = x.dtype.type(1) / np.sqrt(squares / x.dtype.type(x.shape[1]) + x.dtype.type(1e-6))
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * scale * g[j]
    return out


def cross_entropy(x: Any, labels: Any) -> Any:
    total = 0.0
    for i in prange(x.shape[0]):
        top = x[i].max()
        s = x.dtype.type(0)
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - top)
        total += math.log(s) + top - x[i, labels[i]]
    return total / x.shape[0]


def row_sum(x: Any) -> Any:
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        s = x.dtype.type(0)
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        out[i] = s
    return out


def column_sum(x: Any) -> Any:
    out = np.zeros(x.shape[1], x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j] * x[i, j]
    return out


def max_and_argmax(x: Any) -> Any:
    top, where = np.empty(x.shape[0], x.dtype), np.empty(x.shape[0], np.int64)
    for i in prange(x.shape[0]):
        best, at = x[i, 0], 0
        for j in range(1, x.shape[1]):
            if x[i, j] > best:
                best, at = x[i, j], j
        top[i], where[i] = best, at
    return top, where


def cumsum_rows(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        s = x.dtype.type(0)
        for j in range(x.shape[1]):
            s += x[i, j]
            out[i, j] = s
    return out


def transposed_add(x: Any, y: Any) -> Any:
    out = np.empty_like(x)
    tile = 16
    for block in prange((x.shape[0] + tile - 1) // tile):
        for left in range(0, x.shape[1], tile):
            for i in range(block * tile, min((block + 1) * tile, x.shape[0])):
                for j in range(left, min(left + tile, x.shape[1])):
                    out[i, j] = x[i, j] + y[j, i]
    return out


def histogram(x: Any) -> Any:
    out = np.zeros(8, np.int64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if 0 <= x[i, j] < 8:
                out[x[i, j]] += 1
    return out


def gather_rows(table: Any, index: Any) -> Any:
    out = np.empty((index.shape[0], table.shape[1]), table.dtype)
    for i in prange(index.shape[0]):
        out[i] = table[index[i]]
    return out


def scatter_add(x: Any, index: Any, y: Any) -> Any:
    out = x.copy()
    for i in range(index.shape[0]):
        for j in range(x.shape[1]):
            out[index[i], j] += y[i, j]
    return out


LOOPS = {
    fn.__name__: fn
    for fn in (
        softmax,
        layernorm,
        rmsnorm,
        cross_entropy,
        row_sum,
        column_sum,
        max_and_argmax,
        cumsum_rows,
        transposed_add,
        histogram,
        gather_rows,
        scatter_add,
    )
}
