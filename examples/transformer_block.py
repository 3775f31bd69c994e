"""A transformer encoder block in plain NumPy, run through all tiers.

python examples/transformer_block.py
"""

from __future__ import annotations

import time

import numpy as np
import profuse as pf

MODEL, HEADS, HIDDEN = 128, 4, 512


def layer_norm(x, gain, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def softmax(x):
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def attention(p, x):
    """Multi-head self-attention on ``x`` (batch, length, MODEL)."""
    batch, length, model = x.shape
    width = model // HEADS

    def split(y):
        return y.reshape(batch, length, HEADS, width).transpose(0, 2, 1, 3)

    q, k, v = (split(x @ p[name]) for name in ("wq", "wk", "wv"))
    scores = q @ k.transpose(0, 1, 3, 2) / width**0.5
    mixed = softmax(scores) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, model) @ p["wo"]


def block(p, x):
    """Pre-norm encoder block: attention, then a GELU feed-forward layer, each with a residual."""
    x = x + attention(p, layer_norm(x, p["gain0"], p["bias0"]))
    h = layer_norm(x, p["gain1"], p["bias1"])
    return x + gelu(h @ p["w0"] + p["b0"]) @ p["w1"] + p["b1"]


def weights(seed=0):
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return (rng.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)

    square = {name: normal(MODEL, MODEL) for name in ("wq", "wk", "wv", "wo")}
    ones, zeros = np.ones(MODEL, np.float32), np.zeros(MODEL, np.float32)
    return square | {
        "w0": normal(MODEL, HIDDEN),
        "b0": np.zeros(HIDDEN, np.float32),
        "w1": normal(HIDDEN, MODEL),
        "b1": zeros,
        "gain0": ones,
        "bias0": zeros,
        "gain1": ones,
        "bias1": zeros,
    }


def main():
    p = weights()
    rng = np.random.default_rng(1)
    fused = pf.jit(block)
    worst = 0.0
    for length in (32, 32, 48, 48, 17, 17, 29, 64):
        x = rng.standard_normal((2, length, MODEL)).astype(np.float32)
        start = time.perf_counter()
        found = fused(p, x)
        seconds = time.perf_counter() - start
        worst = max(worst, float(np.abs(found - block(p, x)).max()))
        print(f"length {length:>3}: {fused.state().tier:<10} {seconds * 1e3:8.2f} ms")
        fused.wait()  # in place of other work: the tier is what the call ran on
    print(f"largest difference from NumPy: {worst:.1e}")
    print(fused.explain())
    if worst > 1e-3:
        raise SystemExit("results differ from NumPy")


if __name__ == "__main__":
    main()
