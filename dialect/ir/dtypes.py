"""The element types: one table from NumPy dtype to MLIR spelling.

Unsigned integers are spelled ``ui8`` … in the `profuse` dialect (it must tell them from signed
ones); `lowering` maps them to signless storage and picks unsigned operations by the dtype.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from ..dataclass import dataclass
from ..errors import DTypeError

NUMBERS = (bool, int, float, complex)  # the types of Python numbers


@dataclass(frozen=True)
class DType:
    """One element type.

    Attributes:
        name: short name used in specs and guards, e.g. ``"f32"``.
        mlir: spelling in the `profuse` dialect, e.g. ``"f32"``, ``"ui8"``, ``"i1"``.
        kind: ``"b"`` bool, ``"i"`` signed, ``"u"`` unsigned, ``"f"`` float, ``"c"`` complex.
        bits: width of one element in memory, in bits (bool: 8).
    """

    name: str
    mlir: str
    kind: str
    bits: int
    scalar_type: type

    @cached_property
    def numpy(self) -> np.dtype:
        """The native-endian NumPy dtype."""
        return np.dtype(self.scalar_type)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_int(self) -> bool:
        return self.kind in "iu"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def part(self) -> DType:
        """The dtype of the real part: of complex numbers the float of half their width."""
        return {"c64": F32, "c128": F64}.get(self.name, self)

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return dtype_named, (self.name,)


BOOL = DType("bool", "i1", "b", 8, np.bool_)
I8 = DType("i8", "i8", "i", 8, np.int8)
I16 = DType("i16", "i16", "i", 16, np.int16)
I32 = DType("i32", "i32", "i", 32, np.int32)
I64 = DType("i64", "i64", "i", 64, np.int64)
U8 = DType("u8", "ui8", "u", 8, np.uint8)
U16 = DType("u16", "ui16", "u", 16, np.uint16)
U32 = DType("u32", "ui32", "u", 32, np.uint32)
U64 = DType("u64", "ui64", "u", 64, np.uint64)
F16 = DType("f16", "f16", "f", 16, np.float16)
BF16 = DType("bf16", "bf16", "f", 16, ml_dtypes.bfloat16)
F32 = DType("f32", "f32", "f", 32, np.float32)
F64 = DType("f64", "f64", "f", 64, np.float64)
C64 = DType("c64", "complex<f32>", "c", 64, np.complex64)
C128 = DType("c128", "complex<f64>", "c", 128, np.complex128)

DTYPES: tuple[DType, ...] = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128)
_BY_NAME = {d.name: d for d in DTYPES}
_BY_MLIR = {d.mlir: d for d in DTYPES}
_BY_NUMPY = {d.numpy: d for d in DTYPES}


def dtype_named(name: str) -> DType:
    """The dtype with this short name (``"f32"``); raises DTypeError."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise DTypeError(f"unknown dtype name {name!r}", hint=f"use one of {', '.join(_BY_NAME)}") from None


def dtype_of_mlir(text: str) -> DType:
    """The dtype spelled ``text`` in IR; raises DTypeError."""
    try:
        return _BY_MLIR[text]
    except KeyError:
        raise DTypeError(f"element type {text!r} is not one profuse knows") from None


_SWAPPED = frozenset("iufcV")  # kinds of dtypes that may have a foreign byte order


def dtype_of(obj: object) -> DType:
    """The dtype of anything NumPy accepts as a dtype (byte order is ignored).

    Text is NumPy's, not a short name of ours: ``"i8"`` has eight bytes. Raises DTypeError for
    object, string, structured, datetime and other unsupported dtypes, and for what is no dtype.
    """
    if isinstance(obj, DType):
        return obj
    try:
        npdtype = np.dtype(obj)  # type: ignore[call-overload]
    except TypeError as error:
        raise DTypeError(str(error), hint="write np.float32 or 'float32'") from None
    dtype = _BY_NUMPY.get(npdtype)
    if dtype is None and npdtype.kind in _SWAPPED:
        dtype = _BY_NUMPY.get(npdtype.newbyteorder("="))
    if dtype is None:
        raise DTypeError(
            f"arrays of dtype {npdtype} are not supported",
            hint="supported: bool, (u)int8-64, float16/32/64, bfloat16, complex64/128",
        )
    return dtype


def numpy_dtype(x: Any) -> np.dtype:
    """The dtype of an array or of a Python number, traced or not."""
    return np.dtype(x.dtype if hasattr(x, "dtype") else x.__class__)
