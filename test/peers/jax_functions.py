"""Functions of jax whose StableHLO modules are run: one for each part of jax that users meet, by name."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax
from jax import nn as jnn

_RNG = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


x = _normal(4, 8)
y = _normal(4, 8)
p = np.abs(_normal(4, 8)) + np.float32(0.1)
v = _normal(6)
m3 = _normal(3, 3)
sp = m3 @ m3.T + 3 * np.eye(3, dtype=np.float32)
i = _RNG.integers(-20, 20, (4, 8)).astype(np.int32)
j = _RNG.integers(1, 9, (4, 8)).astype(np.int32)
u = _RNG.integers(0, 200, (4, 8)).astype(np.uint32)
b = x > 0
img = _normal(2, 8, 8, 3)
k = _normal(3, 3, 3, 4)


def mlp(x, w, b):
    return jnp.tanh(x @ w + b)


def layernorm(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * g + b


def attention(q, k, v):
    a = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.25
    return jnp.einsum("bhqk,bhkd->bhqd", jnn.softmax(a, -1), v)


def adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def loss(w, x, y):
    return ((jnp.tanh(x @ w) - y) ** 2).mean()


def lstm(x, w, u):
    def step(state, t):
        h, c = state
        i, f, g, o = jnp.split(t @ w + h @ u, 4)
        c = jnn.sigmoid(f) * c + jnn.sigmoid(i) * jnp.tanh(g)
        h = jnn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros(u.shape[0]), jnp.zeros(u.shape[0])), x)


def runge_kutta(y):
    def step(k, y):
        a = -y
        b = -(y + 0.05 * a)
        c = -(y + 0.05 * b)
        return y + 0.1 / 6 * (a + 2 * b + 2 * c - (y + 0.1 * c))

    return lax.fori_loop(0, 10, step, y)


def xent(x, t):
    return -jnp.take_along_axis(jnn.log_softmax(x), t[:, None], 1).mean()


FUNCTIONS = {
    "relu": (jnn.relu, x),
    "silu": (jnn.silu, x),
    "gelu_t": (jnn.gelu, x),
    "softplus": (jnn.softplus, x),
    "elu": (jnn.elu, x),
    "selu": (jnn.selu, x),
    "logsm": (jnn.log_softmax, x),
    "lse": (jsp.special.logsumexp, x),
    "onehot": (lambda i: jnn.one_hot(i, 9), j),
    "glu": (jnn.glu, x),
    "standardize": (jnn.standardize, x),
    "mean_var": (lambda x: (x.mean(0), x.var(1), x.std()), x),
    "cumprod": (lambda x: jnp.cumprod(x, 1), x),
    "cummax": (lambda x: lax.cummax(x, 1), x),
    "cumsum_r": (lambda x: lax.cumsum(x, 1, reverse=True), x),
    "diff": (jnp.diff, x),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), x),
    "intdiv": (lambda a, b: (a // b, a % b, lax.div(a, b), lax.rem(a, b)), i, j),
    "div0": (lambda a: (lax.div(a, a - a), lax.rem(a, a - a)), i),
    "shift": (lambda a, b: (a << b, a >> b, lax.shift_right_logical(a, b)), i, j * 5),
    "ushift": (lambda a, b: (a << b, a >> b), u, j.astype(np.uint32) * 4),
    "ipow": (lambda a: (a**3, lax.integer_pow(a, 2)), i),
    "bits": (lambda a, b: (a & b, a | b, a ^ b, ~a), i, j),
    "conv_i": (
        lambda x: (
            x.astype(jnp.int32),
            (x * 1e12).astype(jnp.int32),
            (x * 100).astype(jnp.int8),
            (x * 100).astype(jnp.uint8),
        ),
        x,
    ),
    "round": (lambda x: (jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x), lax.round(x * 4 / 2)), x * 3),
    "isnan": (
        lambda x: (jnp.isnan(x), jnp.isinf(x), jnp.isfinite(x)),
        np.array([1, np.nan, np.inf, -np.inf], np.float32),
    ),
    "minmax": (lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y)), x, y),
    "where": (lambda b, x, y: jnp.where(b, x, y), b, x, y),
    "allany": (lambda b: (b.all(0), b.any(1), b.sum(), b.astype(int).max()), b),
    "argmm": (lambda x: (x.argmax(), x.argmin(0), x.max(1), x.min()), x),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x, 0), jnp.sort(x, descending=True), jnp.median(x)), x),
    "topk": (lambda x: lax.top_k(x, 3), x),
    "unique": (lambda x: jnp.sort(x.reshape(-1)), i),
    "searchsorted": (lambda a, v: jnp.searchsorted(jnp.sort(a), v), v, _normal(3)),
    "einsum": (lambda a, b: jnp.einsum("ij,kj->ik", a, b), x, y),
    "outer": (jnp.outer, v, v),
    "tensordot": (lambda a, b: jnp.tensordot(a, b, ([1], [1])), x, y),
    "dot_bf16": (lambda a, b: jnp.dot(a.astype(jnp.bfloat16), b.T.astype(jnp.bfloat16)), x, y),
    "trace": (jnp.trace, m3),
    "triu": (lambda m: (jnp.triu(m), jnp.tril(m, -1), jnp.diag(m)), m3),
    "kron": (jnp.kron, m3, m3),
    "det": (jnp.linalg.det, m3),
    "inv": (jnp.linalg.inv, sp),
    "chol": (jnp.linalg.cholesky, sp),
    "norm": (lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1)), x),
    "concat": (lambda x, y: (jnp.concatenate([x, y], 1), jnp.stack([x, y]), jnp.hstack([x, y])), x, y),
    "pad": (
        lambda x: (
            jnp.pad(x, ((1, 2), (0, 3))),
            jnp.pad(x, 1, mode="reflect"),
            jnp.pad(x, 2, mode="edge"),
            lax.pad(x, jnp.float32(9), ((1, -1, 2), (-2, 1, 0))),
        ),
        x,
    ),
    "roll": (lambda x: jnp.roll(x, 3, 1), x),
    "flip": (lambda x: (x[::-1], jnp.flip(x, 1)), x),
    "tile": (lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 2, 0)), x),
    "transpose": (lambda x: (x.T, x.reshape(2, 2, 8).transpose(2, 0, 1)), x),
    "split": (lambda x: jnp.split(x, 2, 1), x),
    "meshgrid": (lambda a, b: jnp.meshgrid(a, b), v, v),
    "index": (
        lambda x, a: (x[a[0] % 4], x[:, a[1] % 8], x[a[0] % 4, a[1] % 8], x[1:3, ::2], x[-1], x[..., None]),
        x,
        j,
    ),
    "take": (lambda x, a: (jnp.take(x, a % 4, 0), jnp.take_along_axis(x, a % 8, 1)), x, j),
    "at_set": (
        lambda x, a: (
            x.at[a[0] % 4].set(1.0),
            x.at[0, 2].add(5.0),
            x.at[a[0] % 4, a[1] % 8].max(2.0),
            x.at[:, 3].multiply(2.0),
            x.at[1:3].set(0.0),
        ),
        x,
        j,
    ),
    "segment": (lambda x, a: jax.ops.segment_sum(x, a[:, 0] % 3, 3), x, j),
    "dynslice": (
        lambda x, a: (
            lax.dynamic_slice(x, (a[0, 0] - 3, a[0, 1] - 2), (2, 3)),
            lax.dynamic_update_slice(x, x[:2, :3], (a[0, 0] - 3, a[0, 1] - 2)),
        ),
        x,
        j,
    ),
    "bincount": (lambda a: jnp.bincount(a.reshape(-1), length=10), j),
    "oob": (lambda x, a: (x[a], x.at[a].add(1.0)), v, np.array([0, 5, 9, -1, -20], np.int32)),
    "conv2d": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        img,
        k,
    ),
    "conv_s": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (2, 1), ((1, 0), (2, 1)), rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        img,
        k,
    ),
    "conv_t": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        img,
        k,
    ),
    "conv_dw": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), "SAME", feature_group_count=3, dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        img,
        _normal(3, 3, 1, 6),
    ),
    "conv1d": (lambda x: jnp.convolve(x, x[:3]), v),
    "avgpool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), img),
    "maxpool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), img),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda k, c: c * 0.9 + k, x), x),
    "scan2": (lambda x: lax.scan(lambda c, t: (jnp.tanh(c + t), c.sum()), jnp.zeros(8), x), x),
    "while2": (lambda x: lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 0.5), (0, x)), x),
    "switch": (lambda x, k: lax.switch(k[0, 0] % 3, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x), x, j),
    "cond2": (lambda x: lax.cond(x[0, 0] > 0, lambda x: x.sum(), lambda x: x.max(), x), x),
    "map": (lambda x: lax.map(lambda r: r / r.sum(), p), p),
    "assoc": (lambda x: lax.associative_scan(jnp.add, x), x),
    "newton": (
        lambda x: lax.while_loop(
            lambda s: jnp.abs(s * s - 2.0).max() > 1e-6, lambda s: s - (s * s - 2) / (2 * s), jnp.abs(x) + 1
        ),
        x,
    ),
    "erf": (
        lambda x: (jsp.special.erf(x), jsp.special.erfc(x), jsp.special.expit(x), jsp.special.logit(jnn.sigmoid(x))),
        x,
    ),
    "trig": (
        lambda x: (
            jnp.sin(x),
            jnp.cos(x),
            jnp.tan(x),
            jnp.sinh(x),
            jnp.cosh(x),
            jnp.tanh(x),
            jnp.arctan(x),
            jnp.arcsinh(x),
        ),
        x,
    ),
    "inv_trig": (lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctanh(x), jnp.arccosh(x + 2)), np.clip(x, -0.9, 0.9)),
    "cbrt": (jnp.cbrt, x),
    "logs": (lambda x: (jnp.log(x), jnp.log2(x), jnp.log10(x), jnp.log1p(x), jnp.exp2(x), jnp.expm1(x)), p),
    "pow": (lambda x, y: (x**y, x**2, x**-1, jnp.sqrt(x), lax.rsqrt(x)), p, y),
    "hypot": (
        lambda x, y: (
            jnp.hypot(x, y),
            jnp.arctan2(x, y),
            jnp.copysign(x, y),
            jnp.logaddexp(x, y),
            jnp.fmod(x, y),
            jnp.remainder(x, y),
        ),
        x,
        y,
    ),
    "sign": (lambda x, i: (jnp.sign(x), jnp.sign(i), jnp.abs(i)), x, i),
    "cplx": (
        lambda x, y: (jnp.abs(lax.complex(x, y)), jnp.real(lax.complex(x, y) * 2), jnp.conj(lax.complex(x, y))),
        x,
        y,
    ),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), x),
    "gammaln": (lambda x: jsp.special.gammaln(x), p),
    "random": (lambda x: jax.random.uniform(jax.random.key(0), (5,)), x),
    "randn": (lambda x: jax.random.normal(jax.random.key(1), (5,)), x),
    "bern": (lambda x: jax.random.bernoulli(jax.random.key(1), 0.3, (5,)), x),
    "f16": (lambda x: (x.astype(jnp.float16) * 2).sum(), x),
    "bf16": (lambda x: jnn.softmax(x.astype(jnp.bfloat16)), x),
    "const": (lambda x: x + jnp.asarray(np.arange(32.0).reshape(4, 8), np.float32), x),
    "arange": (lambda x: x * jnp.arange(8) + jnp.linspace(0, 1, 8) + jnp.eye(4, 8), x),
    "interp": (lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), p),
    "polyval": (lambda x: jnp.polyval(jnp.asarray([1.0, 2, 3]), x), x),
    "cov": (jnp.cov, x),
    "nan": (lambda x: (jnp.nansum(x), jnp.nanmax(x), jnp.nan_to_num(x)), np.array([1, np.nan, 3], np.float32)),
    "quantile": (lambda x: jnp.quantile(x, jnp.float32(0.3)), x),
    "histogram": (lambda x: jnp.histogram(x, bins=5, range=(-2.0, 2.0))[0], x),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32), x),
    "popc": (
        lambda i, u: (
            lax.population_count(i),
            lax.population_count(u.astype(jnp.uint8)),
            lax.clz(i),
            lax.clz(u.astype(jnp.int16)),
        ),
        i,
        u,
    ),
    "chol_upper": (lambda m: jnp.linalg.cholesky(jnp.stack([m, 2 * m]), upper=True), sp),
    "qr": (lambda m: (*jnp.linalg.qr(m), *jnp.linalg.qr(m.T), *jnp.linalg.qr(m, mode="complete")), _normal(6, 4)),
    "qr_complex": (lambda m, n: jnp.linalg.qr(lax.complex(m, n)), m3, _normal(3, 3)),
    "eigh": (lambda m: (lambda w, v: (w, jnp.abs(v)))(*jnp.linalg.eigh(m)), sp),
    "svd": (
        lambda m: (*map(jnp.abs, jnp.linalg.svd(m, full_matrices=False)), jnp.linalg.svd(m, compute_uv=False)),
        _normal(6, 4),
    ),
    "lu": (
        lambda m: (*lax.linalg.lu(m[::-1]), *lax.linalg.lu(m[::-1].T), *lax.linalg.lu(jnp.zeros((2, 2)))),
        _normal(5, 3),
    ),
    "solve": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.slogdet(a), jnp.linalg.inv(a)), sp, _normal(3, 2)),
    "triangles": (
        lambda a, b: (
            jsp.linalg.solve_triangular(a, b, lower=True, trans=1),
            lax.linalg.triangular_solve(a, b.T, left_side=False, lower=False, unit_diagonal=True),
        ),
        sp,
        _normal(3, 2),
    ),
    "lstsq": (lambda a, b: (jnp.linalg.lstsq(a, b)[0], jnp.linalg.pinv(a)), _normal(6, 4), v),
    "conv3d": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 2, 1), [(1, 0), (0, 0), (-1, 2)], rhs_dilation=(1, 1, 2)),
        _normal(1, 2, 4, 5, 4),
        _normal(2, 2, 2, 3, 2),
    ),
    "conv_empty": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID"),
        _normal(1, 2, 2, 5),
        _normal(3, 2, 3, 3),
    ),
    "reducep": (lambda x: lax.reduce(x, jnp.float32(0), lambda a, b: a + b * b * 0 + b, (1,)), x),
    "attn": (
        lambda q, k, v: jnn.dot_product_attention(q, k, v),
        _normal(2, 5, 3, 4),
        _normal(2, 5, 3, 4),
        _normal(2, 5, 3, 4),
    ),
    "mlp": (mlp, _normal(4, 8), _normal(8, 3), _normal(3)),
    "layernorm": (layernorm, x, _normal(8), _normal(8)),
    "attention": (attention, _normal(2, 2, 4, 8), _normal(2, 2, 4, 8), _normal(2, 2, 4, 8)),
    "adam": (adam, v, v * 2, v * 3, np.abs(v)),
    "gradient": (jax.grad(loss), _normal(8, 3), x, _normal(4, 3)),
    "lstm": (lstm, _normal(5, 3), _normal(3, 16), _normal(4, 16)),
    "runge_kutta": (runge_kutta, v),
    "gelu_erf": (lambda x: jnn.gelu(x, approximate=False), x),
    "cross_entropy": (xent, x, j[0, :4] - 1),
    "conv_nchw": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        _normal(1, 3, 8, 8),
        _normal(4, 3, 3, 3),
    ),
}

# Of these, gradients of the module are compared with the module of jax's own gradients.
GRADIENTS = (
    "mlp",
    "logsm",
    "layernorm",
    "gelu_erf",
    "attention",
    "adam",
    "conv_nchw",
    "lstm",
    "runge_kutta",
    "cross_entropy",
    "cumprod",
    "sort",
    "take",
    "maxpool",
    "where",
    "concat",
    "pad",
    "einsum",
    "standardize",
)
