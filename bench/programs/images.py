"""Work on images: windows, tables, colours."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .program import program


def convolve(x, weight, bias):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.tensordot(windows, weight, axes=((3, 4, 5), (2, 0, 1))) + bias


def batch_norm(x):
    mean = x.mean(axis=(0, 1, 2), keepdims=True)
    std = x.std(axis=(0, 1, 2), keepdims=True)
    return (x - mean) / np.sqrt(std + 1e-5)


def resnet(x, w1, b1, w2, b2):
    y = np.maximum(batch_norm(convolve(x, w1, b1)), 0)
    return np.maximum(batch_norm(convolve(y, w2, b2)) + x, 0)


@program(small=5, real=28, tolerance=1e-3)
def resnet_block(jit, n, rng):
    run = jit(resnet)
    x = rng.standard_normal((4, n, n, 16)).astype(np.float32)
    w1, w2 = (rng.standard_normal((3, 3, 16, 16)).astype(np.float32) * 0.1 for _ in range(2))
    b1, b2 = np.zeros(16, dtype=np.float32), np.zeros(16, dtype=np.float32)
    return lambda: run(x, w1, b1, w2, b2), ()


def resize(image, height, width):
    h, w = image.shape[:2]
    y = np.linspace(0, h - 1, height)
    x = np.linspace(0, w - 1, width)
    y0 = np.floor(y).astype(int)
    x0 = np.floor(x).astype(int)
    y1 = np.minimum(y0 + 1, h - 1)
    x1 = np.minimum(x0 + 1, w - 1)
    fy = (y - y0)[:, None, None]
    fx = (x - x0)[None, :, None]
    top = image[y0][:, x0] * (1 - fx) + image[y0][:, x1] * fx
    bottom = image[y1][:, x0] * (1 - fx) + image[y1][:, x1] * fx
    return top * (1 - fy) + bottom * fy


@program(small=6, real=300)
def bilinear_resize(jit, n, rng):
    run = jit(resize)
    image = rng.random((n, n, 3))
    return lambda: run(image, n * 3 // 2, n * 2), ()


def equalise(image):
    counts, _ = np.histogram(image.flatten(), bins=256, range=(0, 256))
    cdf = counts.cumsum()
    low = cdf[cdf > 0].min()
    table = np.round((cdf - low) / (cdf[-1] - low) * 255).clip(0, 255).astype(np.uint8)
    return table[image]


@program(small=9, real=512)
def histogram_equalisation(jit, n, rng):
    run = jit(equalise)
    image = np.clip(rng.normal(100, 20, (n, n)), 0, 255).astype(np.uint8)
    return lambda: run(image), ()


def to_hsv(rgb):
    out = np.empty_like(rgb)
    high, low = rgb.max(axis=-1), rgb.min(axis=-1)
    delta = high - low
    s = np.zeros_like(high)
    np.divide(delta, high, out=s, where=high > 0)
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    h = np.zeros_like(high)
    safe = np.where(delta == 0, 1, delta)
    red = (high == r) & (delta > 0)
    green = (high == g) & ~red & (delta > 0)
    blue = (high == b) & ~red & ~green & (delta > 0)
    h[red] = ((g - b) / safe)[red] % 6
    h[green] = ((b - r) / safe)[green] + 2
    h[blue] = ((r - g) / safe)[blue] + 4
    out[..., 0] = h / 6
    out[..., 1] = s
    out[..., 2] = high
    return out


@program(small=6, real=400)
def hsv(jit, n, rng):
    run = jit(to_hsv)
    rgb = rng.random((n, n, 3))
    return lambda: run(rgb), ()
