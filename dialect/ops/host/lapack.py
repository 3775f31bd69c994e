"""Functions of `numpy.linalg`, whose work is LAPACK's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.size_algebra import sym_min
from ...ir.types import MaybeDim, Shape, TensorType
from ..broadcast import broadcast_shapes
from .rule import BoundCall, Rule, Shapes
from .shapes import same


def _cut(name: str, *drops: int) -> Callable[[BoundCall], Shapes | None]:
    """A rule: per result, the sizes of an argument without so many of its last axes."""

    def shapes(call: BoundCall) -> Shapes | None:
        shape = call.shape(name)
        return None if shape is None else [shape[: len(shape) - d] for d in drops]

    return shapes


def _solve(call: BoundCall) -> Shapes | None:
    a, b = call.shape("a"), call.shape("b")
    if a is None or b is None:
        return None
    if len(b) == 1:
        return [a[:-1]]
    batch = broadcast_shapes(a[:-2], b[:-2])
    return None if batch is None else [(*batch, *b[-2:])]


def _lstsq(call: BoundCall) -> Shapes | None:
    a, b = call.shape("a"), call.shape("b")
    if a is None or b is None:
        return None
    # How many sums of squares there are depends on the rank.
    return [(a[-1], *b[1:]), (None,), (), (_smaller(*a),)]


def _transposed(call: BoundCall) -> Shapes | None:
    shape = call.shape("a")
    return None if shape is None else [(*shape[:-2], shape[-1], shape[-2])]


def _smaller(m: MaybeDim, n: MaybeDim) -> MaybeDim:
    return None if m is None or n is None else sym_min(m, n)


def _svd(call: BoundCall) -> Shapes | None:
    shape = call.shape("a")
    if shape is None:
        return None
    *batch, m, n = shape
    k = _smaller(m, n)
    if not call["compute_uv"]:
        return [(*batch, k)]
    rows, columns = (m, n) if call["full_matrices"] else (k, k)
    return [(*batch, m, rows), (*batch, k), (*batch, columns, n)]


def _singular_values(call: BoundCall) -> Shapes | None:
    shape = call.shape("x")
    return None if shape is None else [(*shape[:-2], _smaller(*shape[-2:]))]


def _qr(call: BoundCall) -> Shapes | None:
    shape = call.shape("a")
    if shape is None or call["mode"] not in ("reduced", "complete", "r", "raw"):
        return None
    *batch, m, n = shape
    if call["mode"] == "raw":  # reflectors and their factors, for LAPACK's other functions; transposed
        return [(*batch, n, m), (*batch, _smaller(m, n))]
    k = m if call["mode"] == "complete" else _smaller(m, n)
    r: Shape = (*batch, k, n)
    return [r] if call["mode"] == "r" else [(*batch, m, k), r]


def _real(call: BoundCall) -> tuple[str, str] | None:
    a = call["a"]
    if isinstance(a, TensorType) and a.dtype is not None and a.dtype.kind == "c":
        return None
    return (
        "the result of a real matrix is real or complex, as its eigenvalues are",
        "write a.astype(complex), or np.linalg.eigh for symmetric matrices",
    )


def eig(a: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors, complex ones also of real matrices whose eigenvalues are all real."""
    values, vectors = np.linalg.eig(a)
    dtype = np.result_type(vectors.dtype, np.complex64)
    return values.astype(dtype), vectors.astype(dtype)


def expm(a: Any) -> Any:
    """Exponentials of matrices (scaling and squaring; Al-Mohy and Higham, 2009), in the dtype of the matrices."""
    from scipy.linalg import expm as exponential

    return exponential(a).astype(a.dtype, copy=False)


def _linalg(name: str, shapes: Callable[[BoundCall], Shapes | None] | None = None, **more) -> Rule:
    return Rule(f"numpy.linalg.{name}", shapes, **({"fill": "eye"} | more))


RULES = (
    _linalg("inv", same("a"), gradient="inv"),
    _linalg("pinv", _transposed, gradient="pinv"),
    _linalg("solve", _solve, gradient="solve"),
    _linalg("lstsq", _lstsq),
    _linalg("tensorsolve", fill="tensor"),
    _linalg("tensorinv", fill="tensor"),
    _linalg("det", _cut("a", 2), gradient="det"),
    _linalg("slogdet", _cut("a", 2, 2), gradient="slogdet"),
    _linalg("cholesky", same("a"), gradient="cholesky"),
    _linalg("qr", _qr, gradient="qr"),
    _linalg("svd", _svd, gradient="svd"),
    _linalg("svdvals", _singular_values),
    _linalg("eigh", _cut("a", 1, 0), gradient="eigh"),
    _linalg("eigvalsh", _cut("a", 1), gradient="eigvalsh"),
    _linalg("eig", _cut("a", 1, 0), refuse=_real),
    _linalg("eigvals", _cut("a", 1), refuse=_real),
    Rule("profuse.eig", _cut("a", 1, 0), fill="eye", own=eig, gradient="eig"),
    Rule("profuse.expm", same("a"), fill="eye", own=expm, gradient="expm"),
    _linalg("matrix_rank", None),
    _linalg("matrix_power", same("a"), neutral={"n": 1}),
    _linalg("cond"),
    _linalg("norm"),
    _linalg("multi_dot"),
    _linalg("cross", fill="ones"),
    _linalg("vecdot", fill="ones"),
)
