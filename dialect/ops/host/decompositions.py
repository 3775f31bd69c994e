"""Functions of linear algebra as compositions of products, solutions and singular values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import TraceError
from .moves import axes_of


def matrix_power(a: Any, n: int) -> Any:
    if n < 0:
        return matrix_power(np.linalg.inv(a), -n)
    if n == 0:
        return 0 * a + np.eye(int(np.shape(a)[-1]))
    product = a
    for _ in range(n - 1):
        product = np.matmul(product, a)
    return product


def multi_dot(arrays: Sequence[Any]) -> Any:
    product = arrays[0]
    for x in arrays[1:]:
        product = np.dot(product, x)
    return product


def vecdot(x1: Any, x2: Any, /, axis: int = -1) -> Any:
    return np.sum(np.conj(x1) * x2, axis=axis)


def matvec(x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, np.expand_dims(x2, -1))[..., 0]


def vecmat(x1: Any, x2: Any, /) -> Any:
    return np.matmul(np.expand_dims(np.conj(x1), -2), x2)[..., 0, :]


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    rank = np.ndim(a)
    if axes is not None:
        last = axes_of(axes, rank)
        a = np.transpose(a, [k for k in range(rank) if k not in last] + last)
    shape = np.shape(a)[np.ndim(b) :]
    square = np.reshape(a, (np.size(b), np.size(b)))
    return np.reshape(np.linalg.solve(square, np.reshape(b, (-1,))), shape)


def tensorinv(a: Any, ind: int = 2) -> Any:
    shape = np.shape(a)
    size = math.prod(int(n) for n in shape[ind:])
    return np.reshape(np.linalg.inv(np.reshape(a, (size, size))), (*shape[ind:], *shape[:ind]))


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    solution = np.matmul(np.linalg.pinv(a), b)
    off = b - np.matmul(a, solution)
    squares = np.sum(np.real(off * np.conj(off)), axis=0, keepdims=np.ndim(b) == 1)
    return solution, squares, None, np.linalg.svdvals(a)


def svdvals(x: Any, /) -> Any:
    return np.linalg.svd(x, full_matrices=False)[1]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (2, -2, "nuc"):
        raise TraceError(f"np.linalg.norm(…, ord={ord!r}) has no gradient yet")
    axes = axes_of(axis, np.ndim(x))
    values = np.linalg.svdvals(np.moveaxis(x, axes, (-2, -1)))
    reduce: dict[Any, Callable[..., Any]] = {2: np.max, -2: np.min, "nuc": np.sum}
    result = reduce[ord](values, axis=-1)
    return np.expand_dims(result, tuple(axes)) if keepdims else result


COMPOSITIONS: dict[str, Callable[..., Any]] = {
    **{
        f"numpy.linalg.{f.__name__}": f
        for f in (lstsq, matrix_power, multi_dot, norm, svdvals, tensorinv, tensorsolve, vecdot)
    },
    **{f"numpy.{f.__name__}": f for f in (matvec, vecdot, vecmat)},
}
