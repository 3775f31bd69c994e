"""Products and statistics of matrices, written as loops over rows, columns and elements."""

from __future__ import annotations

import numpy as np

from ..program import program


def covariance(data):
    mean = np.mean(data, axis=0)
    data -= mean
    m = data.shape[1]
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i:, i] = data[:, i] @ data[:, i:] / (data.shape[0] - 1.0)
        cov[i, i:] = cov[i:, i]
    return cov


@program(small=6, real=160)
def covariance_by_columns(jit, n, rng):
    run = jit(covariance)
    source = rng.random((n + 40, n))
    data = np.empty_like(source)

    def call():
        data[:] = source
        return run(data)

    return call, (data,)


def correlation(data):
    rows, columns = data.shape
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data = (data - mean) / (np.sqrt(rows) * stddev)
    corr = np.eye(columns)
    for i in range(columns - 1):
        corr[i + 1 :, i] = np.transpose(data[:, i + 1 :]) @ data[:, i]
        corr[i, i + 1 :] = corr[i + 1 :, i]
    return corr


@program(small=6, real=160)
def correlation_by_columns(jit, n, rng):
    run = jit(correlation)
    data = rng.random((n + 40, n))
    return lambda: run(data), (data,)


def covariance_of_elements(x, cov):
    n, m = x.shape
    mean = np.zeros(m)
    for j in range(m):
        for i in range(n):
            mean[j] += x[i, j]
        mean[j] /= n
    for a in range(m):
        for b in range(a, m):
            total = 0.0
            for i in range(n):
                total += (x[i, a] - mean[a]) * (x[i, b] - mean[b])
            cov[a, b] = total / (n - 1)
            cov[b, a] = cov[a, b]


@program(small=4, real=24)
def covariance_by_elements(jit, n, rng):
    run = jit(covariance_of_elements)
    x, cov = rng.random((5 * n, n)), np.zeros((n, n))
    return lambda: run(x, cov), (x, cov)


def syrk(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def syr2k(alpha, beta, C, A, B):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]


@program(small=5, real=80)
def symmetric_update(jit, n, rng):
    run = jit(syrk)
    A, C = rng.random((n, n + 5)), rng.random((n, n))
    return lambda: run(0.1, 0.5, C, A), (A, C)


@program(small=5, real=60)
def symmetric_update_of_two(jit, n, rng):
    run = jit(syr2k)
    A, B = rng.random((2, n, n + 5))
    C = rng.random((n, n))
    return lambda: run(0.1, 0.5, C, A, B), (A, B, C)


def symm(alpha, beta, C, A, B):
    temp = np.empty((C.shape[1],), dtype=C.dtype)
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp


@program(small=5, real=70)
def symmetric_product(jit, n, rng):
    run = jit(symm)
    A, B, C = rng.random((n, n)), rng.random((n, n + 3)), rng.random((n, n + 3))
    return lambda: run(0.1, 0.5, C, A, B), (A, B, C)


def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha


@program(small=5, real=100)
def triangular_product(jit, n, rng):
    run = jit(trmm)
    A, source = rng.random((n, n)), rng.random((n, n + 3))
    B = source.copy()

    def call():
        B[:] = source
        run(1.5, A, B)

    return call, (A, B)


def matmul(A, B):
    m, k = A.shape
    n = B.shape[1]
    C = np.zeros((m, n))
    for i in range(m):
        for j in range(n):
            acc = 0.0
            for p in range(k):
                acc += A[i, p] * B[p, j]
            C[i, j] = acc
    return C


@program(small=5, real=55)
def product_by_elements(jit, n, rng):
    run = jit(matmul)
    A, B = rng.random((n, n + 2)), rng.random((n + 2, n + 1))
    return lambda: run(A, B), (A, B)


def doitgen(A, C4):
    r, q, p = A.shape
    for i in range(r):
        for j in range(q):
            A[i, j, :] = np.sum(A[i, j, :, None] * C4, axis=0)


@program(small=4, real=40)
def tensor_by_matrix(jit, n, rng):
    run = jit(doitgen)
    source, C4 = rng.random((n, n + 1, n + 2)), rng.random((n + 2, n + 2)) / n
    A = source.copy()

    def call():
        A[:] = source
        run(A, C4)

    return call, (A, C4)


def csr(n, per_row, rng):
    counts = rng.integers(0, 2 * per_row, n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = rng.integers(0, n, indptr[-1])
    return indptr, indices, rng.standard_normal(indptr[-1])


def spmv_slices(A_row, A_col, A_val, x):
    y = np.empty(A_row.size - 1, A_val.dtype)
    for i in range(A_row.size - 1):
        cols = A_col[A_row[i] : A_row[i + 1]]
        vals = A_val[A_row[i] : A_row[i + 1]]
        y[i] = vals @ x[cols]
    return y


@program(small=8, real=10_000)
def sparse_product_by_rows(jit, n, rng):
    run = jit(spmv_slices)
    indptr, indices, values = csr(n, 10, rng)
    x = rng.standard_normal(n)
    return lambda: run(indptr, indices, values, x), (x,)


def spmv_elements(indptr, indices, data, x, y):
    for i in range(len(indptr) - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[indices[k]]
        y[i] = total


@program(small=8, real=8_000)
def sparse_product_by_elements(jit, n, rng):
    run = jit(spmv_elements)
    indptr, indices, values = csr(n, 8, rng)
    x, y = rng.standard_normal(n), np.zeros(n)
    return lambda: run(indptr, indices, values, x, y), (x, y)


def coo_add(rows, cols, values, dense):
    for k in range(rows.shape[0]):
        dense[rows[k], cols[k]] += values[k]
    return dense.sum()


@program(small=12, real=40_000)
def assembly_of_a_matrix(jit, n, rng):
    run = jit(coo_add)
    m = int(np.sqrt(n)) + 2
    rows, cols = rng.integers(0, m, (2, n))
    values, dense = rng.standard_normal(n), np.zeros((m, m))
    return lambda: run(rows, cols, values, dense), (dense,)


def distances(x):
    n = x.shape[0]
    d = np.empty((n, n), dtype=x.dtype)
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(x.shape[1]):
                t = x[i, k] - x[j, k]
                s += t * t
            d[i, j] = np.sqrt(s)
    return d


@program(small=6, real=150, tolerance=1e-6)
def pairwise_distances(jit, n, rng):
    run = jit(distances)
    x = rng.random((n, 3)).astype(np.float32)
    return lambda: run(x), (x,)
