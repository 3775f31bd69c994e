"""Kernels that compute each element of the result of one element of each argument."""

from __future__ import annotations

from .kernel import kernel


def _one(d, n, m):
    return (d.normal(n, m),)


def _two(d, n, m):
    return d.normal(n, m), d.normal(n, m)


def _with_row(d, n, m):
    return d.normal(n, m), d.normal(m)


def gelu(np, y):
    """By tanh."""
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


@kernel(_with_row, "f32 f64 f16 bf16")
def gelu_bias(np, x, b):
    y = x + b
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


@kernel(_one, "f32 f64")
def gelu_erf(np, x):
    return 0.5 * x * (1.0 + np.erf(x * 0.7071067811865476))


@kernel(_one, "f32 f16")
def sigmoid(np, x):
    return 1.0 / (1.0 + np.exp(-x))


@kernel(_one, "f32 bf16")
def silu(np, x):
    return x / (1.0 + np.exp(-x))


@kernel(_two)
def swiglu(np, x, y):
    return x / (1.0 + np.exp(-x)) * y


@kernel(_one, "f32 f64")
def softplus(np, x):
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


@kernel(lambda d, n, m: (d.normal(n, m) * d.dtype(10),), "f32 f64")
def sin_cos(np, x):
    return np.sin(x) * np.cos(3.0 * x)


@kernel(lambda d, n, m: (d.positive(n, m), d.positive(n, m)))
def kl_terms(np, p, q):
    return p * (np.log(p) - np.log(q))


@kernel(lambda d, n, m: (d.positive(n, m),), "f32 f64")
def power_of_1_5(np, x):
    return x**1.5


@kernel(lambda d, n, m: (d.positive(n, m), d.normal(n, m)))
def power(np, x, y):
    return x**y


@kernel(
    lambda d, n, m: (
        d.positive(n, m, low=50, high=150),
        d.positive(n, m, low=50, high=150),
        d.positive(n, m, low=0.1, high=2),
        d.positive(n, m, low=0.1, high=0.5),
    ),
    "f32 f64",
    tolerance=3e-5,
)
def black_scholes(np, spot, strike, years, volatility):
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (0.03 + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    paid = strike * np.exp(-0.03 * years)
    n1 = 0.5 * (1.0 + np.erf(d1 * 0.7071067811865476))
    n2 = 0.5 * (1.0 + np.erf(d2 * 0.7071067811865476))
    call = spot * n1 - paid * n2
    return call, call - spot + paid


@kernel(_two)
def huber(np, x, y):
    d = x - y
    a = np.abs(d)
    return np.where(a < 1.0, 0.5 * d * d, a - 0.5)


@kernel(_one, "f32 f64 f16")
def polynomial(np, x):
    """Of degree 9 in x / 4, by Horner's rule."""
    t = x * 0.25
    y = t * 0.011 - 0.021
    for c in (0.032, -0.045, 0.083, -0.125, 0.25, -0.5, 0.75, 1.0):
        y = y * t + c
    return y


@kernel(_two, "f32 f16")
def where_clip_chain(np, x, y):
    a = np.clip(x, -1.0, 1.0)
    b = np.where(y > 0.0, a * y, a - y)
    c = np.minimum(np.maximum(b, -2.0), 2.0)
    return np.where(np.abs(c) < 0.5, c * c, c)


@kernel(_two, "f32 f64 f16 bf16 i32 i64")
def triad(np, x, y):
    return x * 3 + y


@kernel(_two)
def iterate_map(np, x, y):
    """Eight steps of z = z * z + c in two real parts, bounded: arithmetic alone."""
    a, b = x * 0.1, y * 0.1
    re, im = a, b
    for _ in range(8):
        re, im = re * re - im * im + a, 2.0 * re * im + b
    return re, im


@kernel(lambda d, n, m: (d.integers(1000, n, m), d.integers(1000, n, m)), "i32 i64")
def integer_arithmetic(np, x, y):
    z = (x * 3 + y) ^ (x >> 2)
    return (z & 255) + (y << 1) - x


@kernel(lambda d, n, m: (d.integers(1000, n, m, low=-1000), d.integers(50, n, m, low=1)), "i32 i64")
def integer_division(np, x, y):
    return x // y + x % 7


@kernel(_one, tolerance=1.0)
def quantise(np, x):
    """float32 to uint8 with a scale."""
    return np.astype(np.clip(x * 32.0 + 128.0, 0.0, 255.0), np.uint8)


@kernel(lambda d, n, m: (d.integers(256, n, m), d.integers(256, n, m)), "u8", tolerance=1.0)
def cast_chain(np, x, y):
    """Mean of two images: uint8 to int32 to float32 and back."""
    s = np.astype(x, np.int32) + np.astype(y, np.int32)
    return np.astype(np.astype(s, np.float32) * 0.5, np.uint8)


@kernel(_two, "f32 f64")
def magnitude(np, re, im):
    return np.sqrt(re * re + im * im)


@kernel(lambda d, n, m: (d.normal(n, m) + 1j * d.normal(n, m),), "c64")
def complex_magnitude(np, z):
    return np.abs(z * z + 1.0)


@kernel(lambda d, n, m: (*_two(d, n, m), d.integers(2, n, m, dtype="bool")))
def dropout(np, x, y, keep):
    return np.where(keep, x * 1.25, 0.0) + y
