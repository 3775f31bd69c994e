"""Linear algebra and Fourier transforms, which run on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural.layer_inputs import detached
from ...on_host import on_host
from ..aten_table import aten, refuse
from ..dimensions import axis_of
from ..promotion import cast, category, complex_dtype, real_dtype, together

_INT32 = np.dtype(np.int32)


def _info(self: Any) -> Any:
    """What LAPACK tells of each matrix: 0, or NumPy had raised."""
    return np.zeros(tuple(self.shape[:-2]), _INT32)


def _adjoint(x: Any) -> Any:
    y = np.swapaxes(x, -1, -2)
    return np.conj(y) if category(x.dtype) == 3 else y


@aten("linalg_inv", "inverse")
def inv(A: Any) -> Any:
    return on_host("numpy.linalg.inv", A)


@aten("linalg_inv_ex")
def inv_ex(A: Any, *, check_errors: bool = False) -> tuple[Any, Any]:
    return inv(A), _info(A)


@aten("linalg_det", "det")
def det(A: Any) -> Any:
    return on_host("numpy.linalg.det", A)


@aten("_linalg_det")
def det_with_factors(A: Any) -> tuple[Any, Any, Any]:
    return det(A), None, None


@aten("linalg_slogdet", "slogdet")
def slogdet(A: Any) -> tuple[Any, Any]:
    sign, logarithm = on_host("numpy.linalg.slogdet", A)
    return sign, logarithm


@aten("_linalg_slogdet")
def slogdet_with_factors(A: Any) -> tuple[Any, ...]:
    return *slogdet(A), None, None


@aten("logdet")
def logdet(self: Any) -> Any:
    sign, logarithm = slogdet(self)
    if category(self.dtype) == 3:
        return cast(logarithm, self.dtype) + np.log(sign)
    return np.where(sign == -1, cast(np.nan, logarithm.dtype), logarithm)


@aten("linalg_solve")
def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    right = B[..., None] if is_vector else B
    if left:
        x = on_host("numpy.linalg.solve", A, right)
    else:
        x = np.swapaxes(on_host("numpy.linalg.solve", np.swapaxes(A, -1, -2), np.swapaxes(right, -1, -2)), -1, -2)
    return np.squeeze(x, axis=-1) if is_vector else x


@aten("_linalg_solve_ex")
def solve_with_factors(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    return solve(A, B, left=left), None, None, _info(A)


@aten("linalg_solve_ex")
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> tuple[Any, Any]:
    return solve(A, B, left=left), _info(A)


@aten("linalg_cholesky", "cholesky")
def cholesky(self: Any, upper: bool = False) -> Any:
    lower = on_host("numpy.linalg.cholesky", _adjoint(self) if upper else self)
    return _adjoint(lower) if upper else lower


@aten("linalg_cholesky_ex")
def cholesky_ex(self: Any, *, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    return cholesky(self, upper), _info(self)


@aten("linalg_qr", "qr")
def qr(A: Any, mode: Any = "reduced") -> tuple[Any, Any]:
    if mode == "r":
        return np.zeros((0,), A.dtype), on_host("numpy.linalg.qr", A, mode="r")
    whole = mode == "complete" or mode is False
    q, r = on_host("numpy.linalg.qr", A, mode="complete" if whole else "reduced")
    return q, r


@aten("_linalg_svd", "linalg_svd")
def svd(A: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None) -> tuple[Any, Any, Any]:
    if not compute_uv:
        nothing = np.zeros((0,), A.dtype)
        return nothing, on_host("numpy.linalg.svd", A, compute_uv=False), nothing
    u, s, vh = on_host("numpy.linalg.svd", A, full_matrices=bool(full_matrices))
    return u, s, vh


@aten("linalg_pinv")
def pinv(
    self: Any, *cutoff: Any, atol: Any = None, rtol: Any = None, rcond: Any = None, hermitian: bool = False
) -> Any:
    if cutoff or rcond is not None:
        rtol = cutoff[0] if cutoff else rcond
    if self.shape[-1] == 0 or self.shape[-2] == 0:
        return np.copy(np.swapaxes(self, -1, -2))
    real = real_dtype(self.dtype)
    eps = float(np.finfo(real).eps) * max(int(self.shape[-1]), int(self.shape[-2]))
    if atol is None:
        least = cast(eps if rtol is None else rtol, real)
    else:
        sizes = on_host("numpy.linalg.svd", detached(self), compute_uv=False, hermitian=bool(hermitian))
        absolute = cast(atol, real)
        # Without a relative bound there is one, unless there is an absolute one.
        relative = np.where(absolute > 0, cast(0, real), cast(eps, real)) if rtol is None else cast(rtol, real)
        least = np.maximum(relative, absolute / np.max(sizes, axis=-1))
    # Of a Hermitian matrix the lower triangle is read alone, and the gradient is that of any matrix, as torch has it.
    return on_host("numpy.linalg.pinv", self, rcond=least, hermitian=bool(hermitian))


@aten("linalg_svdvals")
def svdvals(A: Any, *, driver: Any = None) -> Any:
    return on_host("numpy.linalg.svd", A, compute_uv=False)


@aten("_linalg_eigh")
def eigh(A: Any, UPLO: str = "L", compute_v: bool = True) -> tuple[Any, Any]:
    if not compute_v:
        return on_host("numpy.linalg.eigvalsh", A, UPLO=UPLO), np.zeros((0,), A.dtype)
    values, vectors = on_host("numpy.linalg.eigh", A, UPLO=UPLO)
    return values, vectors


@aten("linalg_eigh")
def eigh_(A: Any, UPLO: str = "L") -> tuple[Any, Any]:
    return eigh(A, UPLO)


@aten("linalg_eigvalsh")
def eigvalsh(self: Any, UPLO: str = "L") -> Any:
    return on_host("numpy.linalg.eigvalsh", self, UPLO=UPLO)


@aten("_linalg_check_errors")
def check_errors(info: Any, api_name: str, *, is_matrix: bool) -> tuple[()]:
    return ()  # NumPy has raised already


@aten("matrix_power", "linalg_matrix_power")
def matrix_power(self: Any, n: int) -> Any:
    if n < 0:
        return matrix_power(inv(self), -n)
    if n == 0:
        return np.broadcast_to(np.eye(int(self.shape[-1]), dtype=self.dtype), tuple(self.shape))
    y = self
    for _ in range(n - 1):
        y = y @ self
    return y


@aten("linalg_solve_triangular")
def solve_triangular(self: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    triangle = np.triu(self) if upper else np.tril(self)
    if unitriangular:
        eye = np.eye(int(self.shape[-1]), dtype=self.dtype)
        triangle = triangle * (1 - eye) + eye
    return solve(triangle, B, left=left) if B.ndim > 1 else solve(triangle, B)


@aten("triangular_solve")
def triangular_solve(
    self: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Any, Any]:
    triangle = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        eye = np.eye(int(A.shape[-1]), dtype=A.dtype)
        triangle = triangle * (1 - eye) + eye
    x = on_host("numpy.linalg.solve", np.swapaxes(triangle, -1, -2) if transpose else triangle, self)
    return x, np.copy(A)


@aten("cholesky_solve")
def cholesky_solve(self: Any, input2: Any, upper: bool = False) -> Any:
    factor = np.triu(input2) if upper else np.tril(input2)
    product = _adjoint(factor) @ factor if upper else factor @ _adjoint(factor)
    return on_host("numpy.linalg.solve", product, self)


@aten("cholesky_inverse")
def cholesky_inverse(self: Any, upper: bool = False) -> Any:
    factor = np.triu(self) if upper else np.tril(self)
    return inv(_adjoint(factor) @ factor if upper else factor @ _adjoint(factor))


@aten("linalg_cross")
def cross(self: Any, other: Any, *, dim: int = -1) -> Any:
    a, b = together(self, other)
    ndim = max(a.ndim, b.ndim)
    axis = axis_of(dim, ndim)
    x, y = np.broadcast_arrays(a, b)

    def part(v: Any, k: int) -> Any:
        return v[(slice(None),) * axis + (k,)]

    parts = [part(x, i) * part(y, j) - part(x, j) * part(y, i) for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.stack(parts, axis=axis)


# --- Fourier transforms ---------------------------------------------------------------------------------------

_FORWARD = {0: "backward", 1: "ortho", 2: "forward"}
_BACKWARD = {0: "forward", 1: "ortho", 2: "backward"}


def _axes(dim: Any) -> tuple[int, ...]:
    return tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


def _transform(name: str, x: Any, axes: tuple[int, ...], norm: str, **more: Any) -> Any:
    if category(x.dtype) == 2 and x.dtype.itemsize < 4:
        raise refuse("fft", f"on {x.dtype}")
    return on_host(f"numpy.fft.{name}", x, axes=axes, norm=norm, **more)


@aten("_fft_c2c")
def fft_c2c(self: Any, dim: Any, normalization: int, forward: bool) -> Any:
    if not _axes(dim):
        return np.copy(self)
    norm = (_FORWARD if forward else _BACKWARD)[normalization]
    return _transform("fftn" if forward else "ifftn", self, _axes(dim), norm)


@aten("_fft_r2c")
def fft_r2c(self: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    y = _transform("rfftn" if onesided else "fftn", self, _axes(dim), _FORWARD[normalization])
    return cast(y, complex_dtype(self.dtype))


@aten("_fft_c2r")
def fft_c2r(self: Any, dim: Any, normalization: int, last_dim_size: Any) -> Any:
    axes = _axes(dim)
    sizes = (*(int(self.shape[k]) for k in axes[:-1]), int(last_dim_size))
    y = _transform("irfftn", self, axes, _BACKWARD[normalization], s=sizes)
    return cast(y, real_dtype(self.dtype))
