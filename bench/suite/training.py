"""Losses, optimiser steps and backward passes, written out by hand."""

from __future__ import annotations

import numpy

from .kernel import kernel
from .reductions import softmax_of


def _one(d, n, m):
    return (d.normal(n, m),)


def _two(d, n, m):
    return d.normal(n, m), d.normal(n, m)


def _images(d, n, m):
    """(8, 16, height, width) and a number each channel."""
    height = max(n // 8, 2)
    return d.normal(8, 16, height, max(m // 16, 2)), *(d.normal(16) for _ in range(3))


@kernel(lambda d, n, m: (d.normal(n, m), d.normal(n, m), d.normal(n, m)))
def sgd_momentum(np, p, g, v):
    v2 = 0.9 * v + g + 1e-4 * p
    return p - 0.01 * v2, v2


@kernel(lambda d, n, m: (d.normal(n, m), d.normal(n, m), d.normal(n, m), d.normal(n, m) ** 2), "f32 f64")
def adam(np, p, g, m, v):
    m2 = 0.9 * m + 0.1 * g
    v2 = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m2 / 0.271) / (np.sqrt(v2 / 0.003) + 1e-8), m2, v2


@kernel(lambda d, n, m: (d.normal(n, m), d.positive(n, m, low=0, high=1)))
def binary_cross_entropy(np, x, y):
    return np.mean(np.maximum(x, 0.0) - x * y + np.log1p(np.exp(-np.abs(x))))


@kernel(lambda d, n, m: (*_images(d, n, m), d.positive(16)))
def batchnorm_relu(np, x, g, b, mean, variance):
    """With statistics that are given, as in inference."""
    c = x - mean[:, None, None]
    y = c / np.sqrt(variance[:, None, None] + 1e-5)
    return np.maximum(y * g[:, None, None] + b[:, None, None], 0.0)


@kernel(lambda d, n, m: _images(d, n, m)[:3])
def batchnorm_training(np, x, g, b):
    """With statistics of the batch."""
    mean = np.mean(x, axis=(0, 2, 3), keepdims=True)
    c = x - mean
    variance = np.mean(c * c, axis=(0, 2, 3), keepdims=True)
    return c / np.sqrt(variance + 1e-5) * g[:, None, None] + b[:, None, None]


@kernel(_two)
def gelu_backward(np, x, dy):
    t = np.tanh(0.7978845608 * (x + 0.044715 * x * x * x))
    inner = 0.7978845608 * (1.0 + 0.134145 * x * x)
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner)


@kernel(_two)
def silu_backward(np, x, dy):
    s = 1.0 / (1.0 + np.exp(-x))
    return dy * s * (1.0 + x * (1.0 - s))


@kernel(_two)
def softmax_backward(np, x, dy):
    """Of the logits x, as where the softmax is computed anew."""
    y = softmax_of(np, x)
    return y * (dy - np.sum(y * dy, axis=-1, keepdims=True))


@kernel(lambda d, n, m: (*_two(d, n, m), d.normal(m)), "f32 f64")
def layernorm_backward(np, x, dy, g):
    """Gradients of the argument, the gain and the bias."""
    c = x - np.mean(x, axis=-1, keepdims=True)
    s = 1.0 / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + 1e-5)
    h = c * s
    dh = dy * g
    mean = np.mean(dh, axis=-1, keepdims=True)
    dx = s * (dh - mean - h * np.mean(dh * h, axis=-1, keepdims=True))
    return dx, np.sum(dy * h, axis=0), np.sum(dy, axis=0)


@kernel(lambda d, n, m: (*_two(d, n, m), d.normal(m)))
def rmsnorm_backward(np, x, dy, g):
    s = 1.0 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    dh = dy * g
    dx = s * (dh - x * s * s * np.mean(dh * x, axis=-1, keepdims=True))
    return dx, np.sum(dy * x * s, axis=0)


@kernel(lambda d, n, m: (d.normal(n, m), d.integers(m, n, 1, dtype=numpy.int64), numpy.arange(m)))
def cross_entropy_backward(np, x, labels, classes):
    """Of the mean loss, at the logits."""
    hot = np.where(labels == classes, 1.0, 0.0 * x)
    return (softmax_of(np, x) - hot) / x.shape[0]


@kernel(_two)
def relu_bias_backward(np, x, dy):
    """Gradients of an activation and of the bias before it."""
    dx = np.where(x > 0.0, dy, 0.0 * dy)
    return dx, np.sum(dx, axis=0)


@kernel(_one)
def clip_by_norm(np, g):
    """A gradient, scaled to a norm of at most 1."""
    return g * np.minimum(1.0 / np.sqrt(np.sum(g * g) + 1e-12), 1.0)
