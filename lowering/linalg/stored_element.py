"""Elements as they stand in memory, where a bool is a byte, as scalars and back.

Both functions emit at the current insertion point and location of the `mlir` bindings.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.ir.dtypes import BOOL, I8, DType
from .element import compute_type, emit, int_type
from .scalar import Scalar


def load(value: ir.Value, dtype: DType) -> Scalar:
    """The Scalar of an element as stored in memory (bool: any non-zero byte is True)."""
    if dtype.is_complex:
        element = compute_type(dtype.part)
        real, imag = (Scalar(emit(f"complex.{part}", element, value), dtype.part) for part in ("re", "im"))
        return Scalar(value, dtype, parts=(real, imag))
    if dtype is BOOL:
        return Scalar(value, I8).ne(0)
    return Scalar(value, dtype)


def store(scalar: Scalar) -> ir.Value:
    """The element as stored in memory: the inverse of `load`."""
    if scalar.dtype is BOOL:
        return emit("arith.extui", int_type(8), scalar.value)
    return scalar.value
