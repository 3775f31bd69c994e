"""Kernels that move elements: transposes, strides, broadcasts, slices, gathers, scatters."""

from __future__ import annotations

import numpy

from .kernel import kernel


def _one(d, n, m):
    return (d.normal(n, m),)


def _square(n, m):
    """A side of a square of about as many elements, a multiple of 16 where there are enough."""
    side = int((n * m) ** 0.5)
    return side - side % 16 if side >= 32 else side


def _rows_moved(args, results):
    """Of a gather: each result is read and written, and each index is read."""
    return 2 * sum(numpy.asarray(r).nbytes for r in results) + args[-1].nbytes


@kernel(lambda d, n, m: (d.normal(n, m), d.normal(m, n)), "f32 f64 f16")
def transposed_add(np, x, y):
    return x + y.T


@kernel(_one, "f32 f64 i64")
def transposed_copy(np, x):
    return x.T * 2


@kernel(lambda d, n, m: (d.normal(m, n).T, d.normal(n, m)))
def transposed_argument(np, x, y):
    """The first argument is a transposed view (JAX gets what it makes of it when it copies)."""
    return x * y + 1.0


@kernel(lambda d, n, m: (d.normal(n, 2 * m)[:, ::2], d.normal(n, m)))
def strided_argument(np, x, y):
    return x * y + 1.0


@kernel(lambda d, n, m: (d.normal(n, 2 * m),))
def strided_add(np, x):
    """Even columns plus odd columns."""
    return x[:, ::2] + x[:, 1::2]


@kernel(lambda d, n, m: (d.normal(n, m), d.normal(n, m)))
def reversed_add(np, x, y):
    """Negative strides on both axes."""
    return np.flip(x, 1) + np.flip(y, 0)


@kernel(lambda d, n, m: (d.normal(n), d.normal(m)), "f32 f64")
def outer_product(np, x, y):
    return x[:, None] * y[None, :]


@kernel(lambda d, n, m: (d.normal(n, 1), d.normal(1, m), d.normal(n, m)))
def broadcast_both(np, x, y, z):
    return (x + y) * z


@kernel(lambda d, n, m: (numpy.broadcast_to(d.normal(m), (n, m)), d.normal(n, m)))
def broadcast_argument(np, x, y):
    """The first argument has a stride of 0."""
    return x * y + 1.0


@kernel(lambda d, n, m: (d.integers(256, 2, _square(n, m) // 2, _square(n, m), 3),), "u8")
def hwc_to_chw(np, image):
    """Two images of bytes to normalised float32 planes."""
    return np.transpose(np.astype(image, np.float32) / 127.5 - 1.0, (0, 3, 1, 2))


@kernel(lambda d, n, m: (d.normal(2, 4, n // 2, max(m // 4, 2)),), "f32")
def swap_heads(np, x):
    """(batch, heads, length, width) to (batch, length, heads * width)."""
    batch, heads, length, width = x.shape
    return np.reshape(np.transpose(x * 2.0, (0, 2, 1, 3)), (batch, length, heads * width))


@kernel(_one, "f32 f64")
def stencil_5_point(np, x):
    inner = x[1:-1, 1:-1]
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return inner + 0.1 * (around - 4.0 * inner)


@kernel(_one)
def stencil_1d(np, x):
    return 0.25 * x[:, :-2] + 0.5 * x[:, 1:-1] + 0.25 * x[:, 2:]


@kernel(_one)
def difference_of_rows(np, x):
    return x[1:] - x[:-1]


@kernel(lambda d, n, m: (d.normal(n, m // 2), d.normal(n, m - m // 2)))
def concatenate_scaled(np, x, y):
    return np.concatenate([x * 2.0, y + 1.0], axis=1)


@kernel(lambda d, n, m: (d.normal(4 * n, m), d.integers(4 * n, n, dtype=numpy.int64)), "f32 f16", moved=_rows_moved)
def gather_rows(np, table, index):
    return np.take(table, index, axis=0)


@kernel(
    lambda d, n, m: (d.normal(n, m), d.normal(n, m), d.integers(n, n, dtype=numpy.int64)),
    moved=lambda args, results: _rows_moved(args, results) + args[1].nbytes,
)
def embedding(np, table, positions, tokens):
    """Rows of a table, scaled, plus positions."""
    return np.take(table, tokens, axis=0) * 8.0 + positions


@kernel(
    lambda d, n, m: (d.normal(n, m), d.integers(n, 4 * n, dtype=numpy.int64)),
    moved=lambda args, results: 5 * results[0].nbytes,
)
def embedding_bag(np, table, tokens):
    """Mean of four rows each."""
    rows = np.take(table, tokens, axis=0)
    return np.mean(np.reshape(rows, (-1, 4, table.shape[1])), axis=1)


@kernel(lambda d, n, m: (d.normal(n, m), d.integers(m, n, m, dtype=numpy.int64)))
def gather_in_rows(np, x, index):
    return np.take_along_axis(x, index, axis=1) * 2.0


@kernel(lambda d, n, m: (d.normal(n, m), d.integers(n, n, dtype=numpy.int64), d.normal(n, m)))
def scatter_add(np, x, index, y):
    """x with each row of y added to the row that its index names."""
    return np.scatter_add(x, index, y)


@kernel(lambda d, n, m: (d.normal(n, m), d.normal(n, m)))
def update_slice(np, x, y):
    """A band of columns is replaced, the rest is kept."""
    k = x.shape[1] // 4
    return np.concatenate([x[:, :k], y[:, k : 3 * k] * 2.0, x[:, 3 * k :]], axis=1)
