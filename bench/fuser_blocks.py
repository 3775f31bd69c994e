"""Blocks of neural networks for `bench/fusers.py`, and the bytes that their kernels move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import profuse as pf
from profuse.dialect.ir.dtypes import dtype_named
from profuse.dialect.ir.size_algebra import parse_dim
from profuse.dialect.ir.symbolic import evaluate

nn: Any = pf.nn
FUSERS = {"general": "off", "device groups": "host"}
HEADS, WIDTH, TOKENS = 4, 64, 49

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """A block of a network: its function, the same for torch, and the shapes of six sets of arguments."""

    fn: Callable[..., Any]
    torch: Callable[..., Any]
    shapes: Sequence[Sequence[Shape]]


def resnet(x, w1, g1, b1, w2, g2, b2):
    """Two convolutions with batch normalisations, and what they are added to."""
    y = nn.relu(nn.batch_norm(nn.conv2d(x, w1, padding=1), None, None, g1, b1, training=True))
    y = nn.batch_norm(nn.conv2d(y, w2, padding=1), None, None, g2, b2, training=True)
    return nn.relu(y + x)


def torch_resnet(x, w1, g1, b1, w2, g2, b2):
    from torch.nn import functional as F

    y = F.relu(F.batch_norm(F.conv2d(x, w1, padding=1), None, None, g1, b1, training=True))
    return F.relu(F.batch_norm(F.conv2d(y, w2, padding=1), None, None, g2, b2, training=True) + x)


def vit(x, g, b, wq, wk, wv, wo, w1, b1, w2, b2):
    """Attention of one head and two linear maps, with dropout behind each."""
    h = nn.layer_norm(x, WIDTH, g, b)
    weights = nn.softmax((h @ wq) @ (h @ wk).swapaxes(-1, -2) * 0.125, dim=-1)
    x = x + nn.dropout(weights @ (h @ wv) @ wo, 0.1)
    h = nn.layer_norm(x, WIDTH, g, b)
    return x + nn.dropout(nn.linear(nn.gelu(nn.linear(h, w1, b1)), w2, b2), 0.1)


def torch_vit(x, g, b, wq, wk, wv, wo, w1, b1, w2, b2):
    from torch.nn import functional as F

    h = F.layer_norm(x, (WIDTH,), g, b)
    weights = F.softmax((h @ wq) @ (h @ wk).swapaxes(-1, -2) * 0.125, dim=-1)
    x = x + F.dropout(weights @ (h @ wv) @ wo, 0.1)
    h = F.layer_norm(x, (WIDTH,), g, b)
    return x + F.dropout(F.linear(F.gelu(F.linear(h, w1, b1)), w2, b2), 0.1)


def unet(x, w1, w2, b):
    """A stage down and up again: a convolution, half the size, another one, twice the size, both side by side."""
    fine = nn.relu(nn.conv2d(x, w1, padding=1))
    coarse = nn.silu(nn.conv2d(nn.max_pool2d(fine, 2), w2, b, padding=1))
    return np.concatenate([np.repeat(np.repeat(coarse, 2, axis=2), 2, axis=3), fine], axis=1) * 0.5


def torch_unet(x, w1, w2, b):
    import torch
    from torch.nn import functional as F

    fine = F.relu(F.conv2d(x, w1, padding=1))
    coarse = F.silu(F.conv2d(F.max_pool2d(fine, 2), w2, b, padding=1))
    return torch.cat([F.interpolate(coarse, scale_factor=2), fine], dim=1) * 0.5


def gpt(x, g, b, wqkv, wo, w1, w2):
    """A block of a language model in plain NumPy: causal attention of several heads, and a perceptron."""

    def normed(x):
        mean = x.mean(axis=-1, keepdims=True)
        return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-5) * g + b

    def heads(y):
        return y.reshape(y.shape[0], y.shape[1], HEADS, WIDTH // HEADS).swapaxes(1, 2)

    q, k, v = (heads(part) for part in np.split(normed(x) @ wqkv, 3, axis=-1))
    weights = q @ k.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5
    place = np.arange(x.shape[1])
    weights = np.where(place[:, None] >= place, weights, -1e9)
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    x = x + (weights @ v).swapaxes(1, 2).reshape(x.shape) @ wo
    h = normed(x) @ w1
    return x + (h * 0.5 * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h**3)))) @ w2


def torch_gpt(x, g, b, wqkv, wo, w1, w2):
    from torch.nn import functional as F

    parts = (F.layer_norm(x, (WIDTH,), g, b) @ wqkv).chunk(3, dim=-1)
    q, k, v = (p.reshape(p.shape[0], p.shape[1], HEADS, -1).swapaxes(1, 2) for p in parts)
    x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).swapaxes(1, 2).reshape(x.shape) @ wo
    return x + F.gelu(F.layer_norm(x, (WIDTH,), g, b) @ w1, approximate="tanh") @ w2


def _images(*rest: Shape, sides: Sequence[tuple[int, int]]) -> list[list[Shape]]:
    return [[(n, 32, side, side), *rest] for n, side in sides]


def _tokens(*rest: Shape) -> list[list[Shape]]:
    return [[(n, t, WIDTH), *rest] for n, t in ((8, TOKENS), (4, TOKENS), (8, 17), (2, 64), (3, 33), (6, 50))]


SIDES = ((4, 28), (2, 28), (4, 14), (8, 20), (3, 16), (5, 24))
VECTOR, SQUARE = (WIDTH,), (WIDTH, WIDTH)
BLOCKS = {
    "ResNet block": Block(
        resnet, torch_resnet, _images((32, 32, 3, 3), (32,), (32,), (32, 32, 3, 3), (32,), (32,), sides=SIDES)
    ),
    "ViT block, dropout": Block(
        vit,
        torch_vit,
        _tokens(VECTOR, VECTOR, *[SQUARE] * 4, (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH), VECTOR),
    ),
    "U-Net stage": Block(unet, torch_unet, _images((16, 32, 3, 3), (32, 16, 3, 3), (32,), sides=SIDES)),
    "GPT block, NumPy": Block(
        gpt, torch_gpt, _tokens(VECTOR, VECTOR, (WIDTH, 3 * WIDTH), SQUARE, (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
    ),
}


def arguments(shapes: Sequence[Shape]) -> list[np.ndarray]:
    """Random arguments of these shapes, small enough for deep blocks."""
    draw = np.random.default_rng(len(shapes))
    return [(draw.standard_normal(shape) * 0.2).astype(np.float32) for shape in shapes]


def bytes_moved(result: Any) -> int:
    """What the kernels of a compile read and write at least, for the sizes that were profiled."""
    total = 0
    for name, kernel in result.kernels.items():
        sizes = result.sizes.get(name, {})
        abi = kernel.abi
        for spec in (*abi.inputs, *abi.outputs):
            elements = int(np.prod([evaluate(parse_dim(dim), sizes) for dim in spec.dims], initial=1))
            total += elements * dtype_named(spec.dtype).numpy.itemsize
        total += 2 * evaluate(parse_dim(abi.workspace), sizes)
    return total
