"""Linear algebra in StableHLO: its own two ops, and the calls of LAPACK that jax writes, by the names of LAPACK.

Such a call takes and gives whole batches of matrices. Its options are the letters of LAPACK's, as numbers. What NumPy
has runs on the host; a matrix that LAPACK finds singular, or not positive definite, is then an error, not NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import TraceError
from ...numpy.tracing.operators import op
from ...numpy.tracing.traced_control import fori_loop
from ..array_values import captured
from ..interpreter import NodeContext
from ..on_host import on_host
from ..triangles import column_at, factored
from .hlo_elementwise import CUSTOM_CALLS, STABLEHLO

_KINDS = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}
_INT32 = np.dtype(np.int32)


def _lapack(*names: str) -> Callable:
    """Decorate the handler of functions of LAPACK, by their names without the letter of the dtype.

    It takes the options as a dictionary of letters, the results' shapes, and the operands.
    """

    def add(handler: Callable) -> Callable:
        def called(call: NodeContext, *operands: Any) -> Any:
            config = call.node.attributes.get("mhlo.backend_config") or {}
            options = {name: chr(int(letter)) for name, letter in config.items()}
            shapes = [() if t is None or t.shape is None else t.shape for t in call.node.types]
            if any(n is None for shape in shapes for n in shape):
                raise TraceError(f"{call.node.attributes['call_target_name']} of matrices whose sizes are symbols")
            return handler(options, shapes, *map(captured, operands))

        for name in names:
            for kind in _KINDS:
                CUSTOM_CALLS[f"lapack_{kind}{name}_ffi"] = called
        return handler

    return add


def _info(shape: Any) -> Any:
    """What LAPACK tells of each matrix: 0, or NumPy had raised."""
    return np.zeros(tuple(shape), _INT32)


def _adjoint(x: Any) -> Any:
    y = np.swapaxes(x, -1, -2)
    return np.conj(y) if x.dtype.kind == "c" else y


@_lapack("potrf")
def _cholesky(options: dict[str, str], shapes: list, x: Any) -> tuple[Any, Any]:
    return _factor(x, is_lower=options["uplo"] == "L"), _info(shapes[1])


def _factor(x: Any, *, is_lower: bool) -> Any:
    """The factor of Cholesky, of the matrix whose triangle that is."""
    lower = on_host("numpy.linalg.cholesky", x if is_lower else _adjoint(x))
    return lower if is_lower else _adjoint(lower)


@STABLEHLO.register("stablehlo.cholesky")
def _cholesky_op(call: NodeContext, a: Any, *, lower: bool = False) -> Any:
    return _factor(captured(a), is_lower=bool(lower))


@_lapack("syevd", "heevd")
def _eigenvectors(options: dict[str, str], shapes: list, x: Any) -> tuple[Any, Any, Any]:
    values, vectors = on_host("numpy.linalg.eigh", x, UPLO=options["uplo"])
    return vectors, values, _info(shapes[2])


@_lapack("gesdd")
def _singular_values(options: dict[str, str], shapes: list, x: Any) -> tuple[Any, ...]:
    if options["mode"] == "N":
        nothing = (np.zeros(tuple(shape), x.dtype) for shape in shapes[2:4])
        return x, on_host("numpy.linalg.svd", x, compute_uv=False), *nothing, _info(shapes[4])
    if options["mode"] not in "AS":
        raise TraceError(f"gesdd of mode {options['mode']!r} is not supported")
    u, s, vh = on_host("numpy.linalg.svd", x, full_matrices=options["mode"] == "A")
    return x, s, u, vh, _info(shapes[4])


@_lapack("geqrf")
def _reflectors(options: dict[str, str], shapes: list, x: Any) -> tuple[Any, Any]:
    packed, factors = on_host("numpy.linalg.qr", x, mode="raw")
    return np.swapaxes(packed, -1, -2), factors


@_lapack("orgqr", "ungqr")
def _orthogonal(options: dict[str, str], shapes: list, packed: Any, factors: Any) -> Any:
    """The product of reflections, each of which is a column below the diagonal and a factor."""
    *batch, m, n = shapes[0]
    count = int(factors.shape[-1])
    rows = np.arange(m)

    def reflected(step: Any, q: Any) -> Any:
        k = op("to_tensor", count - 1 - step)
        v = np.where(rows > k, column_at(packed, k), np.where(rows == k, 1, 0).astype(q.dtype))
        factor = np.sum(np.where(np.arange(count) == k, factors, np.zeros((), q.dtype)), -1)[..., None, None]
        return q - factor * (v[..., :, None] * (np.conj(v)[..., None, :] @ q))

    eye = np.broadcast_to(np.eye(m, n, dtype=packed.dtype), (*batch, m, n))
    return fori_loop(0, count, reflected, captured(np.ascontiguousarray(eye)))


@_lapack("getrf")
def _triangles(options: dict[str, str], shapes: list, x: Any) -> tuple[Any, Any, Any]:
    """Both triangles of each matrix, with rows exchanged."""
    return *factored(x), _info(shapes[2])


@_lapack("trsm")
def _solved(options: dict[str, str], shapes: list, a: Any, b: Any) -> Any:
    return _solution(
        a,
        b,
        is_left=options["side"] == "L",
        is_lower=options["uplo"] == "L",
        is_unit=options["diag"] == "U",
        transposed=options["trans_x"],
    )


def _solution(a: Any, b: Any, *, is_left: bool, is_lower: bool, is_unit: bool, transposed: str) -> Any:
    """The ``x`` of ``a @ x == b``, or of ``x @ a == b``, of a triangle; T and C take its transpose and its adjoint."""
    triangle = np.tril(a, -1 if is_unit else 0) if is_lower else np.triu(a, 1 if is_unit else 0)
    if is_unit:
        triangle = triangle + np.eye(int(a.shape[-1]), dtype=a.dtype)
    if transposed != "N":
        triangle = _adjoint(triangle) if transposed == "C" else np.swapaxes(triangle, -1, -2)
    if is_left:
        return on_host("numpy.linalg.solve", triangle, b)
    turned = on_host("numpy.linalg.solve", np.swapaxes(triangle, -1, -2), np.swapaxes(b, -1, -2))
    return np.swapaxes(turned, -1, -2)


@STABLEHLO.register("stablehlo.triangular_solve")
def _triangular_solve(
    call: NodeContext,
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: str = "NO_TRANSPOSE",
) -> Any:
    letters = {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}
    if transpose_a not in letters:
        raise TraceError(f"stablehlo.triangular_solve of transpose_a = {transpose_a} is not known")
    return _solution(
        captured(a),
        captured(b),
        is_left=bool(left_side),
        is_lower=bool(lower),
        is_unit=bool(unit_diagonal),
        transposed=letters[transpose_a],
    )
