"""MLIR types as NumPy ones.

Integers are signless in MLIR; here they are signed, except ``i1``, which is bool.  ``index`` is 64
bits wide.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
from mlir import ir

from .faults import SimtError

BF16 = np.dtype(ml_dtypes.bfloat16)
_DTYPES = {
    "i1": np.dtype(bool),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": BF16,
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
DYNAMIC = -(2**63)  # stands for "in an operand" in lists of static sizes and positions


def dtype_of(type_: ir.Type) -> np.dtype:
    """The dtype of a scalar type, or of a vector's or memref's elements; raises SimtError."""
    if isinstance(type_, ir.ShapedType):
        type_ = type_.element_type
    try:
        return _DTYPES[str(type_)]
    except KeyError:
        raise SimtError(f"values of type {type_} are not emulated") from None


def shape_of(type_: ir.Type) -> tuple[int, ...]:
    """The shape of a vector type; that of a scalar is ``()``."""
    return tuple(type_.shape) if isinstance(type_, ir.VectorType) else ()


def is_float(dtype: np.dtype) -> bool:
    """True of f16, bf16, f32 and f64."""
    return dtype.kind == "f" or dtype == BF16


def storage_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype kernels see in memory: integers are signless, and a bool takes a byte."""
    return np.dtype(f"i{dtype.itemsize}") if dtype.kind in "bu" else dtype


def part_of(dtype: np.dtype) -> np.dtype:
    """The dtype of the two parts that a complex number is in memory."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def unsigned(array: np.ndarray) -> np.ndarray:
    """The same bits, read as unsigned integers."""
    return array if array.dtype == bool else array.view(f"u{array.itemsize}")


def constant_of(attribute: ir.Attribute) -> np.ndarray:
    """The value of a constant, with a leading axis of 1: all threads agree on it."""
    dtype = dtype_of(attribute.type)
    if not isinstance(attribute, ir.DenseElementsAttr):
        return np.array([attribute.value]).astype(dtype)
    shape = (1, *attribute.type.shape)
    element = attribute.type.element_type
    if attribute.is_splat:
        return np.full(shape, np.array(attribute.get_splat_value().value).astype(dtype))
    if dtype != BF16:
        return np.array(attribute).astype(dtype).reshape(shape)
    # The bindings give no bf16 elements; many are printed in hexadecimal, few one by one.
    text = str(attribute).removeprefix("dense<").rsplit("> : ", 1)[0]
    if text.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(text[3:-1]), BF16).reshape(shape)
    words = text.replace("[", " ").replace("]", " ").replace(",", " ").split()
    values = [ir.Attribute.parse(f"{w} : {element}", attribute.context) for w in words]
    return np.array([v.value for v in values]).astype(dtype).reshape(shape)
