"""The eight functions every release must fuse well, in plain NumPy."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(7)


def gelu_bias(x, b):
    y = x + b
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x, g, b):
    m = x.mean(axis=-1, keepdims=True)
    v = ((x - m) ** 2).mean(axis=-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * g + b


def rmsnorm(x, g):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * g


def cross_entropy(logits, labels):
    top = logits.max(axis=-1, keepdims=True)
    lse = np.log(np.exp(logits - top).sum(axis=-1)) + top[:, 0]
    picked = np.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
    return (lse - picked).mean()


def column_sum(x):
    return x.sum(axis=0)


def adam(p, g, m, v, lr, t):
    m2 = 0.9 * m + 0.1 * g
    v2 = 0.999 * v + 0.001 * g * g
    step = lr * (m2 / (1.0 - 0.9**t)) / (np.sqrt(v2 / (1.0 - 0.999**t)) + 1e-8)
    return p - step, m2, v2


def mlp(x, w0, b0, w1, b1):
    return gelu_bias(x @ w0, b0) @ w1 + b1


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def arguments(name: str, rows: int = 33, columns: int = 48) -> tuple:
    """Float32 arguments for a function above."""
    n, m = rows, columns
    made = {
        "gelu_bias": lambda: (normal(n, m), normal(m)),
        "softmax": lambda: (normal(n, m),),
        "layernorm": lambda: (normal(n, m), normal(m), normal(m)),
        "rmsnorm": lambda: (normal(n, m), normal(m)),
        "cross_entropy": lambda: (normal(n, m), rng.integers(0, m, n)),
        "column_sum": lambda: (normal(n, m),),
        "adam": lambda: (
            normal(n, m),
            normal(n, m),
            normal(n, m),
            normal(n, m) ** 2,
            np.full((1,), 1e-3, np.float32),
            np.full((1,), 3.0, np.float32),
        ),
        "mlp": lambda: (normal(n, m), normal(m, 64), normal(64), normal(64, 10), normal(10)),
    }
    return made[name]()


FUNCTIONS = {f.__name__: f for f in (gelu_bias, softmax, layernorm, rmsnorm, cross_entropy, column_sum, adam, mlp)}
