"""ONNX's products of matrices, and what comes with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....numpy.neural.layer_inputs import narrowed, widened
from ..onnx_table import onnx_op


@onnx_op("MatMul")
def _mat_mul(call: Any, a: Any, b: Any, /) -> Any:
    return narrowed(np.matmul(a, b), a.dtype)


@onnx_op("Gemm")
def _gemm(
    call: Any,
    a: Any,
    b: Any,
    c: Any = None,
    /,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 1,
) -> Any:
    dtype = a.dtype
    a, b, c = widened(a, b, c)
    y = np.matmul(a.T if transA else a, b.T if transB else b)
    if alpha != 1:
        y = y * alpha
    if c is not None and beta != 0:
        y = y + (c if beta == 1 else c * beta)
    return narrowed(y, dtype)


@onnx_op("Einsum")
def _einsum(call: Any, /, *operands: Any, equation: str) -> Any:
    return narrowed(np.einsum(equation.replace(" ", ""), *widened(*operands)), operands[0].dtype)


@onnx_op("Det")
def _det(call: Any, x: Any, /) -> Any:
    return np.linalg.det(x)
