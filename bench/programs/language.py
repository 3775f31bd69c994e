"""Decoding with a small GPT-2-like transformer: a context that grows, a cache of keys."""

from __future__ import annotations

import numpy as np

from .program import program

WIDTH, HEADS, LAYERS, VOCABULARY = 64, 4, 2, 101


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, g, b, eps=1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + eps) + b


def linear(x, w, b):
    return x @ w + b


def ffn(x, c_fc, c_proj):
    return linear(gelu(linear(x, **c_fc)), **c_proj)


def attention(q, k, v, mask):
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v


def mha(x, c_attn, c_proj, n_head):
    x = linear(x, **c_attn)
    qkv = np.split(x, 3, axis=-1)
    heads = list(map(lambda x: np.split(x, n_head, axis=-1), qkv))
    causal = (1 - np.tri(x.shape[0], dtype=x.dtype)) * -1e10
    out = [attention(q, k, v, causal) for q, k, v in zip(*heads)]
    return linear(np.hstack(out), **c_proj)


def block(x, mlp, attn, ln_1, ln_2, n_head):
    x = x + mha(layer_norm(x, **ln_1), **attn, n_head=n_head)
    return x + ffn(layer_norm(x, **ln_2), **mlp)


def gpt2(inputs, wte, wpe, blocks, ln_f, n_head):
    x = wte[inputs] + wpe[range(len(inputs))]
    for weights in blocks:
        x = block(x, **weights, n_head=n_head)
    return layer_norm(x, **ln_f) @ wte.T


def parameters(rng):
    def dense(m, n):
        return {"w": rng.standard_normal((m, n)) * 0.1, "b": np.zeros(n)}

    def norm():
        return {"g": np.ones(WIDTH), "b": np.zeros(WIDTH)}

    blocks = [
        {
            "mlp": {"c_fc": dense(WIDTH, 4 * WIDTH), "c_proj": dense(4 * WIDTH, WIDTH)},
            "attn": {"c_attn": dense(WIDTH, 3 * WIDTH), "c_proj": dense(WIDTH, WIDTH)},
            "ln_1": norm(),
            "ln_2": norm(),
        }
        for _ in range(LAYERS)
    ]
    wte, wpe = rng.standard_normal((VOCABULARY, WIDTH)), rng.standard_normal((512, WIDTH))
    return {"wte": wte, "wpe": wpe, "blocks": blocks, "ln_f": norm()}


@program(small=3, real=64)
def gpt2_growing(jit, n, rng):
    forward = jit(gpt2)
    weights = parameters(rng)
    tokens = [int(k) for k in rng.integers(0, VOCABULARY, n)]

    def call():
        if len(tokens) >= 2 * n:
            del tokens[n:]
        logits = forward(np.array(tokens), **weights, n_head=HEADS)
        tokens.append(int(np.argmax(logits[-1])))
        return logits

    return call, (tokens,)


class Decoder:
    """One token at a time; keys and values of earlier ones are kept in attributes."""

    def __init__(self, weights, longest):
        self.weights = weights
        self.keys = np.zeros((LAYERS, HEADS, longest, WIDTH // HEADS))
        self.values = np.zeros_like(self.keys)
        self.n = 0

    def step(self, token):
        w, n = self.weights, self.n
        x = w["wte"][token] + w["wpe"][n]
        for i, layer in enumerate(w["blocks"]):
            h = linear(layer_norm(x, **layer["ln_1"]), **layer["attn"]["c_attn"])
            q, k, v = h.reshape(3, HEADS, WIDTH // HEADS)
            self.keys[i, :, n] = k
            self.values[i, :, n] = v
            keys, values = self.keys[i, :, : n + 1], self.values[i, :, : n + 1]
            scores = np.einsum("hd,htd->ht", q, keys) / np.sqrt(WIDTH // HEADS)
            mixed = np.einsum("ht,htd->hd", softmax(scores), values).reshape(WIDTH)
            x = x + linear(mixed, **layer["attn"]["c_proj"])
            x = x + ffn(layer_norm(x, **layer["ln_2"]), **layer["mlp"])
        self.n = n + 1
        return layer_norm(x, **w["ln_f"]) @ w["wte"].T


@program(small=8, real=128)
def gpt2_with_cache(jit, n, rng):
    decoder = Decoder(parameters(rng), n)
    step = jit(Decoder.step)
    tokens = [1]

    def call():
        if decoder.n >= n:
            decoder.n = 0
        logits = step(decoder, tokens[-1])
        tokens[-1] = int(np.argmax(logits))
        return logits

    return call, (decoder, tokens)
