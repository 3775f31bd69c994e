"""Whole models, forward and with a training step whose backward pass is written out by hand."""

from __future__ import annotations

from functools import partial

import numpy

from .elementwise import gelu
from .kernel import kernel
from .reductions import causal_mask, layernorm_of, softmax_of
from .training import gelu_backward, layernorm_backward

RATE = 0.01
HEADS = 4

# Sums of many products in a row: errors of float32 add up.
model = partial(kernel, group="models", tolerance=1e-4)


def _mlp(d, n, m):
    """Rows, three layers, and the class of each row."""
    width, classes = min(m, 1024), 16
    return (
        d.normal(n, width),
        d.weights(width, width),
        d.normal(width),
        d.weights(width, width),
        d.normal(width),
        d.weights(width, classes),
        d.normal(classes),
    )


def _mlp_logits(np, x, w0, b0, w1, b1, w2, b2):
    h0 = np.maximum(x @ w0 + b0, 0.0)
    h1 = np.maximum(h0 @ w1 + b1, 0.0)
    return h1 @ w2 + b2, h0, h1


@model(_mlp)
def mlp_forward(np, *args):
    return softmax_of(np, _mlp_logits(np, *args)[0])


@model(lambda d, n, m: (*_mlp(d, n, m), numpy.eye(16, dtype=d.dtype)[d.integers(16, n, dtype=int)]))
def mlp_training(np, x, w0, b0, w1, b1, w2, b2, wanted):
    """One step of gradient descent on the cross-entropy of one-hot rows; new parameters."""
    logits, h0, h1 = _mlp_logits(np, x, w0, b0, w1, b1, w2, b2)
    d2 = (softmax_of(np, logits) - wanted) * (1.0 / x.shape[0])
    d1 = np.where(h1 > 0.0, d2 @ w2.T, 0.0 * h1)
    d0 = np.where(h0 > 0.0, d1 @ w1.T, 0.0 * h0)
    return (
        w0 - RATE * (x.T @ d0),
        b0 - RATE * np.sum(d0, axis=0),
        w1 - RATE * (h0.T @ d1),
        b1 - RATE * np.sum(d1, axis=0),
        w2 - RATE * (h1.T @ d2),
        b2 - RATE * np.sum(d2, axis=0),
    )


def _block(d, n, m):
    """(length, width), and the parameters of a pre-norm block; at most (1024, 512)."""
    length, width = min(n, 1024), max(min(m, 512), 8)
    ones = numpy.ones(width, d.dtype)
    return (
        d.normal(length, width),
        causal_mask(length, length, d.dtype),
        ones,
        0.1 * d.normal(width),
        d.weights(width, width),
        d.weights(width, width),
        d.weights(width, width),
        d.weights(width, width),
        ones.copy(),
        0.1 * d.normal(width),
        d.weights(width, 4 * width),
        0.1 * d.normal(4 * width),
        d.weights(4 * width, width),
        0.1 * d.normal(width),
    )


def _heads(np, y):
    """(length, width) to (heads, length, width of a head)."""
    return np.transpose(np.reshape(y, (y.shape[0], HEADS, y.shape[1] // HEADS)), (1, 0, 2))


def _joined(np, y):
    """`_heads` undone."""
    heads, length, width = y.shape
    return np.reshape(np.transpose(y, (1, 0, 2)), (length, heads * width))


def _forward(np, x, mask, g0, c0, wq, wk, wv, wo, g1, c1, w0, b0, w1, b1):
    """The result, and what the backward pass needs."""
    n0 = layernorm_of(np, x, g0, c0)
    q, k, v = _heads(np, n0 @ wq), _heads(np, n0 @ wk), _heads(np, n0 @ wv)
    p = softmax_of(np, q @ np.transpose(k, (0, 2, 1)) * 0.125 + mask)
    mixed = _joined(np, p @ v)
    h = x + mixed @ wo
    n1 = layernorm_of(np, h, g1, c1)
    u = n1 @ w0 + b0
    a = gelu(np, u)
    return h + a @ w1 + b1, (n0, q, k, v, p, mixed, h, n1, u, a)


@model(_block)
def transformer_forward(np, *args):
    return _forward(np, *args)[0]


@model(lambda d, n, m: (*_block(d, n, m), d.normal(min(n, 1024), max(min(m, 512), 8))))
def transformer_training(np, x, mask, g0, c0, wq, wk, wv, wo, g1, c1, w0, b0, w1, b1, wanted):
    """One step of gradient descent on the mean squared error of a block; new parameters."""
    parameters = (g0, c0, wq, wk, wv, wo, g1, c1, w0, b0, w1, b1)
    y, (n0, q, k, v, p, mixed, h, n1, u, a) = _forward(np, x, mask, *parameters)
    dy = (y - wanted) * (2.0 / (x.shape[0] * x.shape[1]))
    du = gelu_backward(np, u, dy @ w1.T)
    dh, dg1, dc1 = layernorm_backward(np, h, du @ w0.T, g1)
    dh = dh + dy
    dmixed = _heads(np, dh @ wo.T)
    dp = dmixed @ np.transpose(v, (0, 2, 1))
    ds = p * (dp - np.sum(p * dp, axis=-1, keepdims=True)) * 0.125
    dq, dk = _joined(np, ds @ k), _joined(np, np.transpose(ds, (0, 2, 1)) @ q)
    dv = _joined(np, np.transpose(p, (0, 2, 1)) @ dmixed)
    _, dg0, dc0 = layernorm_backward(np, x, dq @ wq.T + dk @ wk.T + dv @ wv.T, g0)
    gradients = (
        dg0,
        dc0,
        n0.T @ dq,
        n0.T @ dk,
        n0.T @ dv,
        mixed.T @ dh,
        dg1,
        dc1,
        n1.T @ du,
        np.sum(du, axis=0),
        a.T @ dy,
        np.sum(dy, axis=0),
    )
    return tuple(w - RATE * g for w, g in zip(parameters, gradients, strict=True))


def _lstm(d, n, m):
    """Steps of (batch, inputs), the state, and weights of the four gates side by side."""
    batch, width, steps = min(n, 256), max(min(m // 2, 256), 4), 8 if n >= 64 else 2
    return (
        d.normal(steps, batch, width),
        d.normal(batch, width),
        d.normal(batch, width),
        d.weights(width, 4 * width),
        d.weights(width, 4 * width),
        d.normal(4 * width),
    )


def _sigmoid(np, x):
    return 1.0 / (1.0 + np.exp(-x))


def _step(np, x, h, c, w, r, b):
    """One step: the new state, and the gates."""
    width = h.shape[1]
    z = x @ w + h @ r + b
    i, f = _sigmoid(np, z[:, :width]), _sigmoid(np, z[:, width : 2 * width])
    g, o = np.tanh(z[:, 2 * width : 3 * width]), _sigmoid(np, z[:, 3 * width :])
    new = f * c + i * g
    t = np.tanh(new)
    return o * t, new, (i, f, g, o, t)


@model(_lstm)
def lstm_forward(np, xs, h, c, w, r, b):
    for k in range(xs.shape[0]):
        h, c, _ = _step(np, xs[k], h, c, w, r, b)
    return h, c


@model(lambda d, n, m: (*_lstm(d, n, m), d.normal(min(n, 256), max(min(m // 2, 256), 4))))
def lstm_training(np, xs, h, c, w, r, b, wanted):
    """One step of gradient descent through all steps, on the last state's squared error."""
    kept = []
    for k in range(xs.shape[0]):
        new_h, new_c, gates = _step(np, xs[k], h, c, w, r, b)
        kept.append((h, c, gates))
        h, c = new_h, new_c
    dh = (h - wanted) * (2.0 / (h.shape[0] * h.shape[1]))
    dc, dw, dr, db = 0.0 * c, 0.0 * w, 0.0 * r, 0.0 * b
    for k in reversed(range(xs.shape[0])):
        h, c, (i, f, g, o, t) = kept[k]
        dc = dc + dh * o * (1.0 - t * t)
        dz = np.concatenate(
            [dc * g * i * (1.0 - i), dc * c * f * (1.0 - f), dc * i * (1.0 - g * g), dh * t * o * (1.0 - o)], axis=1
        )
        dw, dr, db = dw + xs[k].T @ dz, dr + h.T @ dz, db + np.sum(dz, axis=0)
        dh, dc = dz @ r.T, dc * f
    return w - RATE * dw, r - RATE * dr, b - RATE * db
