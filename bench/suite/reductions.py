"""Kernels with reductions and scans, over every axis."""

from __future__ import annotations

import numpy

from .kernel import kernel


def _one(d, n, m):
    return (d.normal(n, m),)


def _norm(d, n, m):
    return d.normal(n, m), d.normal(m), d.normal(m)


def causal_mask(rows: int, columns: int, dtype=numpy.float32) -> numpy.ndarray:
    """The mask that attention adds to its scores: -1e9 above the diagonal."""
    return numpy.triu(numpy.full((rows, columns), -1e9, dtype), 1)


def softmax_of(np, x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def layernorm_of(np, x, g, b):
    c = x - np.mean(x, axis=-1, keepdims=True)
    return c / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + 1e-5) * g + b


@kernel(_one, "f32 f64 i32")
def sum_all(np, x):
    return np.sum(x * x)


@kernel(_one, "f32 f64")
def column_sum(np, x):
    return np.sum(x * x, axis=0)


@kernel(_one, "f32 f64 f16")
def row_sum(np, x):
    return np.sum(x * x, axis=1)


@kernel(lambda d, n, m: (d.normal(max(n // 16, 2), 16, m),))
def middle_sum(np, x):
    return np.sum(x * x, axis=1)


@kernel(_one, "f32 i32")
def row_max(np, x):
    return np.max(x, axis=1)


@kernel(_one)
def column_max(np, x):
    return np.max(x, axis=0)


@kernel(_one, "f32 f64 i32")
def max_and_argmax(np, x):
    return np.max(x, axis=-1), np.argmax(x, axis=-1)


@kernel(_one)
def argmin_axis0(np, x):
    return np.argmin(x, axis=0)


@kernel(_one, "f32 f64")
def variance_axis0(np, x):
    return np.var(x, axis=0)


@kernel(_one, "f32 f64")
def variance_axis1(np, x):
    return np.var(x, axis=1)


@kernel(_one)
def mean_and_deviation(np, x):
    m = np.mean(x)
    return m, np.sqrt(np.mean((x - m) * (x - m)))


@kernel(_one)
def minmax_scaled(np, x):
    low, high = np.min(x), np.max(x)
    return (x - low) / (high - low)


@kernel(_one, "f32 f64")
def logsumexp(np, x):
    top = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True)) + top


@kernel(_one, "f32 f64 f16 bf16")
def softmax(np, x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@kernel(_one)
def softmax_axis0(np, x):
    e = np.exp(x - np.max(x, axis=0, keepdims=True))
    return e / np.sum(e, axis=0, keepdims=True)


@kernel(lambda d, n, m: (d.normal(n, m), causal_mask(n, m)))
def masked_softmax(np, x, mask):
    return softmax_of(np, x * 0.125 + mask)


@kernel(lambda d, n, m: (d.normal(n, m), numpy.zeros((n, m), numpy.float32)))
def unmasked_softmax(np, x, mask):
    """The softmax that `masked_softmax` computes, with a mask of zeros: they should take as long."""
    return softmax_of(np, x * 0.125 + mask)


@kernel(lambda d, n, m: (d.normal(4, max(n // 2, 3), max(m // 2, 3)), causal_mask(max(n // 2, 3), max(m // 2, 3))))
def attention_scores(np, s, mask):
    """Scores of four heads, scaled, masked with -1e9, through softmax."""
    return softmax_of(np, s * 0.125 + mask)


@kernel(_norm, "f32 f64 f16 bf16")
def layernorm(np, x, g, b):
    c = x - np.mean(x, axis=-1, keepdims=True)
    return c / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + 1e-5) * g + b


@kernel(lambda d, n, m: (d.normal(n, m), *_norm(d, n, m)))
def residual_layernorm(np, r, x, g, b):
    y = x + r
    return layernorm_of(np, y, g, b), y


@kernel(lambda d, n, m: (d.normal(n, m), d.normal(m)), "f32 bf16")
def rmsnorm(np, x, g):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g


@kernel(lambda d, n, m: (d.normal(n, m), d.integers(m, n, dtype=numpy.int64)))
def cross_entropy(np, x, labels):
    top = np.max(x, axis=-1, keepdims=True)
    lse = np.log(np.sum(np.exp(x - top), axis=-1)) + top[:, 0]
    return np.mean(lse - np.take_along_axis(x, labels[:, None], axis=-1)[:, 0])


@kernel(_one, "f32 f64 i64", tolerance=1e-4)
def cumsum_rows(np, x):
    return np.cumsum(x, axis=1)


@kernel(_one, tolerance=1e-4)
def cumsum_columns(np, x):
    return np.cumsum(x, axis=0)


@kernel(lambda d, n, m: (d.normal(n, m), d.integers(2, n, m, dtype="bool")))
def masked_mean(np, x, keep):
    """Of each row, over the elements to keep."""
    count = np.sum(np.where(keep, 1.0, 0.0 * x), axis=-1)
    return np.sum(np.where(keep, x, 0.0 * x), axis=-1) / np.maximum(count, 1.0)


@kernel(lambda d, n, m: (d.integers(8, n, m),), "i32")
def histogram(np, x):
    """The number of times that each of eight numbers occurs."""
    return np.stack([np.sum(np.astype(x == k, np.int64)) for k in range(8)])


@kernel(_one)
def all_finite(np, x):
    return np.all(np.isfinite(x)), np.any(x > 3.0, axis=0)


@kernel(lambda d, n, m: (d.normal(n, m), d.normal(n, m)))
def cosine_similarity(np, x, y):
    dot = np.sum(x * y, axis=-1)
    return dot / np.sqrt(np.sum(x * x, axis=-1) * np.sum(y * y, axis=-1) + 1e-8)
