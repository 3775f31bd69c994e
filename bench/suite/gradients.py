"""Losses with their gradients: by each system's own derivatives, and written out by hand.

A kernel calls ``np.value_and_grad(loss, wrt)``, which libraries with derivatives have; ``by_hand``
computes the same in NumPy, as somebody would write it who shares what forward and backward have in
common. It is the definition of the results, and the mark for generated gradients.
"""

from __future__ import annotations

from functools import partial

import numpy

from .elementwise import gelu
from .kernel import kernel
from .reductions import cross_entropy, layernorm_of, rmsnorm, softmax_of
from .training import adam

# Values are sums of many products of both signs.
gradient = partial(kernel, group="gradients", tolerance=1e-4)


def _matrix_row(d, n, m):
    """(n, m), (m,) and the incoming gradient."""
    return d.normal(n, m), d.normal(m), d.normal(n, m)


def _loss(forward):
    """The sum of results, weighted with an incoming gradient: the last argument."""

    def loss(np, *args):
        return np.sum(forward(np, *args[:-1]) * args[-1])

    return loss


def _tanh(np, x, y):
    return np.tanh(x + y) * x


def _tanh_by_hand(np, x, y, c):
    t = np.tanh(x + y)
    dy = c * x * (1.0 - t * t)
    return np.sum(t * x * c), (c * t + dy, dy)


@gradient(lambda d, n, m: (d.normal(n, m), d.normal(n, m), d.normal(n, m)), by_hand=_tanh_by_hand)
def tanh_gradient(np, x, y, c):
    """Next to no arithmetic: on 4x4, what a call costs."""
    return np.value_and_grad(partial(_loss(_tanh), np), (0, 1))(x, y, c)


def _gelu_bias(np, x, b):
    return gelu(np, x + b)


def _gelu_by_hand(np, x, b, c):
    y = x + b
    t = np.tanh(0.7978845608 * (y + 0.044715 * y * y * y))
    inner = 0.7978845608 * (1.0 + 0.134145 * y * y)
    dx = c * (0.5 * (1.0 + t) + 0.5 * y * (1.0 - t * t) * inner)
    return np.sum(0.5 * y * (1.0 + t) * c), (dx, np.sum(dx, axis=0))


@gradient(_matrix_row, by_hand=_gelu_by_hand)
def gelu_gradient(np, x, b, c):
    return np.value_and_grad(partial(_loss(_gelu_bias), np), (0, 1))(x, b, c)


def _softmax(np, x, b):
    return softmax_of(np, x * 0.125 + b)


def _softmax_by_hand(np, x, b, c):
    y = _softmax(np, x, b)
    rows = np.sum(y * c, axis=-1, keepdims=True)
    dz = y * (c - rows)
    return np.sum(rows), (dz * 0.125, np.sum(dz, axis=0))


@gradient(_matrix_row, by_hand=_softmax_by_hand)
def softmax_gradient(np, x, b, c):
    return np.value_and_grad(partial(_loss(_softmax), np), (0, 1))(x, b, c)


def _layernorm_by_hand(np, x, g, b, c):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    s = 1.0 / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)
    h = centred * s
    dh = c * g
    mean = np.mean(dh, axis=-1, keepdims=True)
    dx = s * (dh - mean - h * np.mean(dh * h, axis=-1, keepdims=True))
    return np.sum((h * g + b) * c), (dx, np.sum(c * h, axis=0), np.sum(c, axis=0))


@gradient(lambda d, n, m: (d.normal(n, m), d.normal(m), d.normal(m), d.normal(n, m)), by_hand=_layernorm_by_hand)
def layernorm_gradient(np, x, g, b, c):
    return np.value_and_grad(partial(_loss(layernorm_of), np), (0, 1, 2))(x, g, b, c)


def _rmsnorm_by_hand(np, x, g, c):
    s = 1.0 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    h = x * s
    dh = c * g
    dx = s * (dh - h * np.mean(dh * h, axis=-1, keepdims=True))
    return np.sum(h * g * c), (dx, np.sum(c * h, axis=0))


@gradient(_matrix_row, by_hand=_rmsnorm_by_hand)
def rmsnorm_gradient(np, x, g, c):
    return np.value_and_grad(partial(_loss(rmsnorm), np), (0, 1))(x, g, c)


def _cross_entropy_by_hand(np, x, labels):
    top = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - top)
    total = np.sum(e, axis=-1, keepdims=True)
    picked = np.take_along_axis(x, labels[:, None], axis=-1)
    hot = np.where(labels[:, None] == np.arange(x.shape[1]), 1.0, 0.0 * x)
    return np.mean(np.log(total) + top - picked), (e / total - hot) * (1.0 / x.shape[0])


@gradient(lambda d, n, m: (d.normal(n, m), d.integers(m, n, dtype=numpy.int64)), by_hand=_cross_entropy_by_hand)
def cross_entropy_gradient(np, x, labels):
    return np.value_and_grad(partial(cross_entropy, np), 0)(x, labels)


def _fit(np, p, x, y):
    r = np.tanh(p * x) - y
    return np.mean(r * r)


def _adam_by_hand(np, p, x, y, m, v):
    t = np.tanh(p * x)
    r = t - y
    g = r * (1.0 - t * t) * x * (2.0 / (x.shape[0] * x.shape[1]))
    return np.mean(r * r), adam(np, p, g, m, v)


@gradient(lambda d, n, m: (*(d.normal(n, m) for _ in range(4)), d.normal(n, m) ** 2), by_hand=_adam_by_hand)
def adam_gradient(np, p, x, y, m, v):
    """A step of Adam, with the gradient that it takes."""
    value, g = np.value_and_grad(partial(_fit, np), 0)(p, x, y)
    return value, adam(np, p, g, m, v)


def _block(d, n, m):
    """Parameters of two layers, the second of which undoes the first one's widening; rows."""
    width = min(m, 256)
    return (
        d.weights(width, 4 * width),
        d.normal(4 * width),
        d.weights(4 * width, width),
        d.normal(width),
        d.normal(n, width),
        d.normal(n, width),
    )


def _mlp(np, w0, b0, w1, b1, x):
    return gelu(np, x @ w0 + b0) @ w1 + b1


def _mlp_by_hand(np, w0, b0, w1, b1, x, c):
    u = x @ w0 + b0
    t = np.tanh(0.7978845608 * (u + 0.044715 * u * u * u))
    inner = 0.7978845608 * (1.0 + 0.134145 * u * u)
    a = 0.5 * u * (1.0 + t)
    du = (c @ w1.T) * (0.5 * (1.0 + t) + 0.5 * u * (1.0 - t * t) * inner)
    return np.sum((a @ w1 + b1) * c), (x.T @ du, np.sum(du, axis=0), a.T @ c, np.sum(c, axis=0), du @ w0.T)


@gradient(_block, by_hand=_mlp_by_hand)
def mlp_block_gradient(np, w0, b0, w1, b1, x, c):
    """Of all parameters, and of what comes in."""
    wrt = (0, 1, 2, 3, 4)
    return np.value_and_grad(partial(_loss(_mlp), np), wrt)(w0, b0, w1, b1, x, c)


def _layers(d, n, m):
    """Parameters of three layers of one width, a batch, and what shall come out."""
    width = min(m, 256)
    layers = [x for _ in range(3) for x in (d.weights(width, width), d.normal(width))]
    return *layers, d.normal(n, width), d.normal(n, width)


def _fit_layers(np, w0, b0, w1, b1, w2, b2, x, y):
    h = np.tanh(x @ w0 + b0)
    h = np.tanh(h @ w1 + b1)
    r = h @ w2 + b2 - y
    return np.mean(r * r)


def _layers_by_hand(np, w0, b0, w1, b1, w2, b2, x, y):
    h0 = np.tanh(x @ w0 + b0)
    h1 = np.tanh(h0 @ w1 + b1)
    r = h1 @ w2 + b2 - y
    d2 = r * (2.0 / (x.shape[0] * x.shape[1]))
    d1 = (d2 @ w2.T) * (1.0 - h1 * h1)
    d0 = (d1 @ w1.T) * (1.0 - h0 * h0)
    return np.mean(r * r), (x.T @ d0, np.sum(d0, axis=0), h0.T @ d1, np.sum(d1, axis=0), h1.T @ d2, np.sum(d2, axis=0))


@gradient(_layers, by_hand=_layers_by_hand)
def mlp_gradient(np, w0, b0, w1, b1, w2, b2, x, y):
    """Of all parameters; on 64x256, what a step of a small model costs."""
    return np.value_and_grad(partial(_fit_layers, np), (0, 1, 2, 3, 4, 5))(w0, b0, w1, b1, w2, b2, x, y)
