"""ONNX's conversions of dtypes, and the arguments of models."""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np

from .....errors import ArgumentError, DTypeError, ShapeError, TraceError
from .....ir.dtypes import dtype_named, dtype_of
from ....numpy.tracing.operators import op
from ...array_values import captured, is_size
from ...foreign_arguments import check_array
from ...foreign_graph import ForeignType
from ...size_values import as_numbers, each
from ..onnx_table import onnx_op
from ..onnx_texts import Texts

# The numbers of `onnx.TensorProto.DataType`.
_BY_NUMBER = {
    1: "f32",
    2: "u8",
    3: "i8",
    4: "u16",
    5: "i16",
    6: "i32",
    7: "i64",
    9: "bool",
    10: "f16",
    11: "f64",
    12: "u32",
    13: "u64",
    14: "c64",
    15: "c128",
    16: "bf16",
}
_TEXT = 8
_NAMES = {_TEXT: "texts", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4"}
_NAMES |= {22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2"}


def dtype_numbered(number: int) -> np.dtype:
    """The dtype with ONNX's number; raises DTypeError for those that no array here has."""
    name = _BY_NUMBER.get(number)
    if name is None:
        raise DTypeError(f"tensors of {_NAMES.get(number, f'the type {number}')} are not supported")
    return dtype_named(name).numpy


def cast(x: Any, dtype: np.dtype) -> Any:
    """``x`` in a dtype; floats become integers by rounding to zero, and truths where they are not zero."""
    if x.dtype == dtype:
        return x
    if dtype == np.bool_:
        return np.not_equal(x, np.zeros((), x.dtype)[()])
    if x.dtype.kind in "OSUT":
        raise DTypeError("texts are not supported")
    return x.astype(dtype)


def _cast_sizes(call: Any, x: Any, /, *, to: int) -> Any:
    dtype = dtype_numbered(to)
    if dtype == np.int64:
        return each(lambda n: n * 1, x)  # a truth becomes a number
    # Numbers of other dtypes are no sizes any more: the graph holds for these.
    return np.array(as_numbers(x) if isinstance(x, tuple) else as_numbers(x)[0], dtype)[()]


@onnx_op("Cast", sizes=_cast_sizes, texts=True)
def _cast(call: Any, x: Any, /, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    if not isinstance(x, Texts):
        return cast(x, dtype_numbered(to))
    if to != _TEXT:
        raise TraceError(f"Cast of texts to {dtype_numbered(to)} is not supported", hint="pass numbers")
    return x


@onnx_op("CastLike")
def _cast_like(call: Any, x: Any, like: Any, /, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return cast(x, like.dtype)


@onnx_op("BitCast")
def _bit_cast(call: Any, x: Any, /, *, to: int) -> Any:
    dtype = dtype_numbered(to)
    x = x.astype(np.uint8) if x.dtype == np.bool_ else x  # a truth is the byte 0 or 1
    if dtype.itemsize != x.dtype.itemsize:
        raise DTypeError(f"BitCast of {x.dtype} to {dtype}, which have other widths")
    return x if dtype == x.dtype else op("bitcast", captured(x), dtype=dtype_of(dtype))


@onnx_op("profuse.Argument", whole=True, texts=True)
def _argument(
    call: Any,
    x: Any,
    /,
    *,
    name: str,
    dtype: np.dtype | None = None,
    shape: tuple[int | None, ...] | None = None,
    texts: bool = False,
) -> Any:
    """An argument of a model, which has the dtype, the rank and the fixed sizes that the model says."""
    if texts:
        if isinstance(x, Texts):  # those that the model has for an argument that is left out
            return x
        check_array(name, x, ForeignType(np.dtype(np.int64), shape))
        return Texts(x, is_open=True)
    if dtype is None:  # a sequence, or what may be left out
        return x
    if isinstance(x, (list, NoneType)):
        raise ArgumentError(
            f"{name} is {'None' if x is None else 'a list'}, where the model takes an array",
            hint=f"pass an array: np.asarray({name}, '{dtype}')",
        )
    if is_size(x) or (isinstance(x, (float, complex)) and not hasattr(x, "dtype")):
        if isinstance(x, tuple) and not all(isinstance(n, (int, float)) for n in x):
            raise ArgumentError(f"{name} is a tuple, where the model takes an array", hint=f"pass an array of {dtype}")
        ndim = 1 if isinstance(x, tuple) else 0
        array: Any = x
        if dtype != np.int64 or not is_size(x):
            # Numbers of other dtypes are constants: the graph holds for these.
            array = np.array([_plain(n) for n in x] if ndim else _plain(x)).astype(dtype)[()]
        if shape is not None and len(shape) != ndim:
            if shape == (1,) and ndim == 0:
                return (x,) if array is x else np.reshape(array, (1,))
            raise ShapeError(f"{name} is a number, where the model takes an array with {len(shape)} axes")
        return array
    if not hasattr(x, "dtype"):
        raise ArgumentError(f"{name} is of type {type(x).__name__}", hint=f"pass an array of {dtype}")
    check_array(name, x, ForeignType(dtype, shape))
    return x


def _plain(n: Any) -> int | float | complex:
    if isinstance(n, bool):
        return bool(n)
    return int(n) if isinstance(n, int) else float(n) if isinstance(n, float) else complex(n)


@onnx_op("Constant")
def _constant(
    call: Any,
    /,
    *,
    value: Any = None,
    sparse_value: Any = None,
    value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None,
    value_string: Any = None,
    value_strings: Any = None,
) -> Any:
    if value is not None or sparse_value is not None:
        return sparse_value if value is None else value
    if value_float is not None or value_floats is not None:
        return np.array(value_float if value_floats is None else value_floats, np.float32)[()]
    if value_int is not None or value_ints is not None:
        return np.array(value_int if value_ints is None else value_ints, np.int64)[()]
    return value_string if value_strings is None else list(value_strings)
