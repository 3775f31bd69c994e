"""Factors of matrices: triangles with rows exchanged, least squares, eigenvalues of any matrix, exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...on_host import on_host
from ...triangles import factored, row_order
from ..aten_table import aten, refuse
from ..demands import demanded
from ..promotion import INT64, cast, category, real_dtype
from .linalg_operators import pinv

_INT32 = np.dtype(np.int32)
_SINGULAR = "torch.linalg.lu_factor: a matrix is singular"
_CLEAR = 16.0  # how far above the bound the least singular value is of a matrix whose rank is not in doubt


def _adjoint(x: Any) -> Any:
    y = np.swapaxes(x, -1, -2)
    return np.conj(y) if category(x.dtype) == 3 else y


def _sizes(x: Any) -> tuple[int, int]:
    return int(x.shape[-2]), int(x.shape[-1])


def _nothing(x: Any) -> Any:
    return np.zeros((0,), x.dtype)


# --- two triangles --------------------------------------------------------------------------------------------


def _factors(A: Any, pivot: bool) -> tuple[Any, Any]:
    if not pivot:
        raise refuse("linalg_lu", "without an exchange of rows")
    return factored(A)


@aten("linalg_lu_factor_ex")
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> tuple[Any, Any, Any]:
    """The third result is 0, or the number of the first column, from 1 on, that has no pivot but 0."""
    both, exchanges = _factors(A, pivot)
    is_zero = np.diagonal(both, 0, -2, -1) == 0
    info = np.where(np.any(is_zero, axis=-1), np.argmax(is_zero, axis=-1) + 1, 0).astype(_INT32)
    if check_errors:
        both = demanded(both, info == 0, _SINGULAR)
    return both, exchanges, info


@aten("linalg_lu_factor")
def lu_factor(A: Any, *, pivot: bool = True) -> tuple[Any, Any]:
    return lu_factor_ex(A, pivot=pivot, check_errors=True)[:2]


@aten("linalg_lu")
def lu(A: Any, *, pivot: bool = True) -> tuple[Any, Any, Any]:
    return lu_unpack(*_factors(A, pivot))


@aten("lu_unpack")
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, Any, Any]:
    m, n = _sizes(LU_data)
    count = min(m, n)
    rows = lower = upper = _nothing(LU_data)
    if unpack_pivots:
        rows = cast(np.arange(m)[:, None] == row_order(LU_pivots, m)[..., None, :], LU_data.dtype)
    if unpack_data:
        lower = np.tril(LU_data[..., :count], -1) + np.eye(m, count, dtype=LU_data.dtype)
        upper = np.triu(LU_data[..., :count, :])
    return rows, lower, upper


@aten("linalg_lu_solve")
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    if not left:  # X @ A == B is A.mH @ X.mH == B.mH
        return _adjoint(lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint))
    n = int(LU.shape[-1])
    order = row_order(pivots, n)
    lower = np.tril(LU, -1) + np.eye(n, dtype=LU.dtype)
    upper = np.triu(LU)
    if not adjoint:
        return _solved(upper, _solved(lower, _taken(B, order)))
    x = _solved(_adjoint(lower), _solved(_adjoint(upper), B))
    return _taken(x, np.argsort(order, axis=-1))


@aten("lu_solve")
def lu_solve_of(self: Any, LU_data: Any, LU_pivots: Any) -> Any:
    return lu_solve(LU_data, LU_pivots, self)


def _solved(a: Any, b: Any) -> Any:
    return on_host("numpy.linalg.solve", a, b)


def _taken(x: Any, order: Any) -> Any:
    """The rows of each matrix in an order of its own."""
    batch = np.broadcast_shapes(tuple(map(int, x.shape[:-2])), tuple(map(int, order.shape[:-1])))
    m, n = _sizes(x)
    places = np.broadcast_to(order[..., None], (*batch, m, n))
    return np.take_along_axis(np.broadcast_to(x, (*batch, m, n)), places, -2)


# --- least squares --------------------------------------------------------------------------------------------


@aten("linalg_lstsq")
def lstsq(self: Any, b: Any, rcond: float | None = None, *, driver: str | None = None) -> tuple[Any, ...]:
    """By the pseudoinverse, for matrices whose rank is not in doubt: how it is found differs from driver to driver."""
    m, n = _sizes(self)
    if not m * n:
        raise refuse("linalg_lstsq", "of a matrix without elements")
    is_vector = b.ndim == 1 or (self.ndim - 1 == b.ndim and tuple(b.shape) == tuple(self.shape[:-1]))
    right = b[..., None] if is_vector else b
    real, count = real_dtype(self.dtype), min(m, n)
    least = float(np.finfo(real).eps) * max(m, n) if rcond is None else max(rcond, 0.0)
    values = on_host("numpy.linalg.svd", self, compute_uv=False)
    is_clear = values[..., -1] > cast(_CLEAR * least, real) * values[..., 0]
    matrix = demanded(self, is_clear, "the rank of a matrix of least squares is in doubt")
    solution = np.matmul(pinv(matrix, rtol=least), right)
    residuals = rank = sizes = _nothing(values)
    if m > n and driver not in (None, "gelsy"):
        off = right - np.matmul(matrix, solution)
        residuals = np.sum(np.real(off * np.conj(off)) if category(off.dtype) == 3 else off * off, axis=-2)
    if driver != "gels":
        rank = np.full(tuple(self.shape[:-2]), count, np.int64)
    if driver in ("gelsd", "gelss"):
        sizes = values
    rank = cast(rank, INT64)
    return np.squeeze(solution, axis=-1) if is_vector else solution, residuals, rank, sizes


# --- eigenvalues and exponentials -----------------------------------------------------------------------------


@aten("linalg_eig")
def eig(self: Any) -> tuple[Any, Any]:
    values, vectors = on_host("profuse.eig", self)
    return values, vectors


@aten("linalg_eigvals", "_linalg_eigvals")
def eigvals(self: Any) -> Any:
    return eig(self)[0]


@aten("linalg_matrix_exp", "matrix_exp")
def matrix_exp(self: Any) -> Any:
    if category(self.dtype) == 2 and self.dtype.itemsize < 4:
        raise refuse("linalg_matrix_exp", f"on {self.dtype}")
    return on_host("profuse.expm", self)
