"""The fused kernels that are measured, written once for any library that looks like NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np


def gelu_bias(np, x, b):
    y = x + b
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def softmax(np, x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def masked_softmax(np, x, mask):
    return softmax(np, x * 0.125 + mask)


def layernorm(np, x, g, b):
    m = x.mean(axis=-1, keepdims=True)
    v = ((x - m) * (x - m)).mean(axis=-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * g + b


def rmsnorm(np, x, g):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * g


def cross_entropy(np, x, labels):
    top = x.max(axis=-1, keepdims=True)
    lse = np.log(np.exp(x - top).sum(axis=-1)) + top[:, 0]
    return (lse - np.take_along_axis(x, labels[:, None], axis=-1)[:, 0]).mean()


def column_sum(np, x):
    return (x * x).sum(axis=0)


def swiglu(np, x, y):
    return x / (1.0 + np.exp(-x)) * y


def adam(np, p, g, m, v):
    m2 = 0.9 * m + 0.1 * g
    v2 = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m2 / 0.271) / (np.sqrt(v2 / 0.003) + 1e-8), m2, v2


def block(lib, x, b):
    """Bias, tanh-GELU and layer norm, in what NumPy, JAX and torch have in common."""
    y = x + b
    y = 0.5 * y * (1.0 + lib.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
    m = y.mean(-1)[:, None]
    v = ((y - m) * (y - m)).mean(-1)[:, None]
    return (y - m) / lib.sqrt(v + 1e-5)


def causal_mask(n: int) -> np.ndarray:
    """What attention adds to its scores: -1e9 above the diagonal."""
    return np.triu(np.full((n, n), -1e9, np.float32), 1)


def cases(n: int) -> dict[str, tuple[Callable, tuple]]:
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    x, row = normal(n, n), normal(n)
    return {
        "gelu_bias": (gelu_bias, (x, row)),
        "softmax": (softmax, (x,)),
        "masked_softmax": (masked_softmax, (x, causal_mask(n))),
        "layernorm": (layernorm, (x, row, normal(n))),
        "rmsnorm": (rmsnorm, (x, row)),
        "cross_entropy": (cross_entropy, (x, rng.integers(0, n, n))),
        "column_sum": (column_sum, (x,)),
        "swiglu": (swiglu, (x, normal(n, n))),
        "adam": (adam, (x, normal(n, n), normal(n, n), normal(n, n) ** 2)),
    }


def check(name: str, found, fn: Callable, args: tuple) -> None:
    exact = fn(np, *[a.astype(np.float64) if a.dtype == np.float32 else a for a in args])
    for a, b in zip(leaves(found), leaves(exact), strict=True):
        scale = np.abs(b).max()
        error = np.abs(np.asarray(a, np.float64) - b).max() / scale
        if not error < 1e-5:
            sys.exit(f"{name}: relative error {error:.1e} against float64")


def leaves(out):
    """The results of a call, as a tuple."""
    return out if isinstance(out, tuple) else (out,)
