"""Kernels with matrix products: what stands around the library's calls."""

from __future__ import annotations

from .elementwise import gelu
from .kernel import kernel
from .reductions import causal_mask, layernorm_of, softmax_of


def _layer(d, n, m):
    """Arguments of a layer with as many inputs as outputs; at most 512."""
    width = min(m, 512)
    return d.normal(n, width), d.weights(width, width), d.normal(width)


def _mlp(d, n, m):
    width = min(m, 256)
    return (
        d.normal(n, width),
        d.weights(width, 4 * width),
        d.normal(4 * width),
        d.weights(4 * width, width),
        d.normal(width),
    )


def _attention(d, n, m):
    """Queries, keys, values of 8 heads (4 of a small size); (256, 512) at size l3."""
    length, model = max(n // 2, 4), max(m // 2, 8)
    length, model = min(length, 1024), min(model, 512)
    heads = 8 if model >= 256 else 4
    return *(d.normal(heads, length, model // heads) for _ in range(3)), causal_mask(length, length)


@kernel(_layer, "f32 f64")
def linear_relu(np, x, w, b):
    return np.maximum(x @ w + b, 0.0)


@kernel(_layer)
def linear_gelu(np, x, w, b):
    return gelu(np, x @ w + b)


@kernel(lambda d, n, m: (*_layer(d, n, m), d.normal(min(m, 512)), d.normal(n, min(m, 512))))
def linear_residual_layernorm(np, x, w, b, g, r):
    return layernorm_of(np, x @ w + r, g, b)


@kernel(lambda d, n, m: (*_layer(d, n, m)[:2], d.normal(n, min(m, 512))))
def linear_backward(np, x, w, dy):
    """Gradients of the argument, the weights and the bias."""
    return dy @ w.T, x.T @ dy, np.sum(dy, axis=0)


@kernel(_mlp)
def mlp_block(np, x, w0, b0, w1, b1):
    return gelu(np, x @ w0 + b0) @ w1 + b1 + x


@kernel(lambda d, n, m: (d.normal(max(n * m // 1024, 4), 16, 16), d.normal(max(n * m // 1024, 4), 16, 16)), "f32 f64")
def small_batched_product(np, x, y):
    return x @ y * 0.5


@kernel(_attention, tolerance=3e-5)
def attention(np, q, k, v, mask):
    """All heads, masked; scores are held as the function says."""
    scores = q @ np.transpose(k, (0, 2, 1)) * 0.125 + mask
    return softmax_of(np, scores) @ v


@kernel(lambda d, n, m: (d.normal(min(n, 1024), min(m, 128)), d.normal(min(n, 1024), min(m, 128))), tolerance=3e-5)
def squared_distances(np, x, y):
    xx = np.sum(x * x, axis=1)[:, None]
    yy = np.sum(y * y, axis=1)[None, :]
    return np.maximum(xx + yy - 2.0 * (x @ y.T), 0.0)


@kernel(
    lambda d, n, m: (d.normal(n, 4, max(m // 8, 1), 2), d.normal(n, 1, max(m // 8, 1)), d.normal(n, 1, max(m // 8, 1)))
)
def rope(np, x, cos, sin):
    """Rotary positions on pairs of neighbours; (length, heads, pairs, 2)."""
    a, b = x[..., 0], x[..., 1]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)


@kernel(
    lambda d, n, m: (d.normal(n, 4, max(m // 8, 1) * 2), d.normal(n, 1, max(m // 8, 1)), d.normal(n, 1, max(m // 8, 1)))
)
def rope_halves(np, x, cos, sin):
    """Rotary positions on the two halves of each head."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


@kernel(lambda d, n, m: (d.normal(n, min(m, 256)),), tolerance=3e-5)
def covariance(np, x):
    c = x - np.mean(x, axis=0)
    return c.T @ c / x.shape[0]


@kernel(lambda d, n, m: (d.weights(m, m // 2).T, d.normal(m)))
def matrix_vector_tanh(np, w, x):
    return np.tanh(w @ x)
