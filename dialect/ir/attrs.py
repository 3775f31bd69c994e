"""Attribute kinds: for each, its Python value, IR text, IRDL constraint and decoding.

Programs hold attribute values as plain Python (int, bool, str, tuples, DType, ndarray …); these
kinds are the only place that knows how each is spelled in IR.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..errors import IRError
from .dtypes import F32, NUMBERS, DType, dtype_of, dtype_of_mlir
from .dtypes import F64 as FLOAT64
from .types import ScalarType, TensorType, Type, listed_type, type_from_mlir, type_from_object, type_to_mlir

DYNAMIC = -(2**63)  # in I64_ARRAY: "the value is the next dynamic operand", MLIR's own convention


@dataclass(frozen=True)
class AttrKind:
    """A kind of attribute: how it is written, read back, checked.

    Attributes:
        name: for messages and docs.
        irdl: body of an IRDL constraint, e.g. ``irdl.base "#builtin.integer"``.
        text: Python value -> IR text.
        decode: MLIR attribute (bindings object) -> Python value.
        to_json: Python value -> plain JSON data, bit for bit.
        from_json: its inverse; raises ValueError, TypeError, KeyError or IRError for other data.
    """

    name: str
    irdl: str
    text: Callable[[Any], str]
    decode: Callable[[Any], Any]
    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]


def _float_text(value: float) -> str:
    """Exact text of a double: decimal when it round-trips as MLIR reads it, else hex bits."""
    if math.isfinite(value):
        text = repr(float(value))
        if "e" not in text and "." in text:
            return text
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent or 0):+03d}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def dense_text(array: np.ndarray, dtype: DType) -> str:
    """``dense<…> : tensor<…>`` holding ``array`` bit for bit.

    Complex: ``[dense<…> : tensor<…x2xf32>]``, real and imaginary parts along the last axis.
    """
    sizes: tuple[int, ...] = np.shape(array)
    array = np.ascontiguousarray(array, dtype=dtype.numpy).reshape(sizes)
    shape = "".join(f"{d}x" for d in sizes)
    type_ = f"tensor<{shape}{dtype.mlir}>"
    if dtype.kind == "c":
        # The bindings cannot hand out dense complex elements: a list of one, of the parts.
        part = F32 if dtype.bits == 64 else FLOAT64
        return f"[{dense_text(array[..., None].view(part.numpy), part)}]"
    if array.size == 0:
        return f"dense<> : {type_}"
    if dtype.kind == "b":
        if array.ndim == 0:
            return f"dense<{str(bool(array)).lower()}> : {type_}"
        return f"dense<{_nested_bools(array.tolist())}> : {type_}"
    return f'dense<"0x{array.tobytes().hex().upper()}"> : {type_}'


def _nested_bools(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_nested_bools, value)) + "]"
    return "true" if value else "false"


def quoted(text: str) -> str:
    """A string literal of IR; control characters are escaped, as MLIR refuses raw newlines."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\{ord(m[0]):02X}", text) + '"'


def scalar_text(value: bool | int | float | complex) -> str:
    """Typed attribute of a Python number: ``2 : i64``, ``0.5 : f64``, ``true``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{_float_text(value)} : f64"
    return f"[{_float_text(value.real)} : f64, {_float_text(value.imag)} : f64]"


def _value_text(value: Any) -> str:
    listed = listed_type(value)
    if listed is not None:
        return "unit" if value is None else _LISTED_KINDS[listed.kind].text(value)
    if isinstance(value, NUMBERS) and not isinstance(value, np.generic):
        return scalar_text(value)
    array = np.asarray(value)
    return dense_text(array, dtype_of(array.dtype))


def _decode_value(attr: Any) -> Any:
    """A constant's value: a Python number, an ndarray, a tuple of ints or bools, a string, or None."""
    kind = type(attr).__name__
    if kind == "UnitAttr":
        return None
    if kind in _LISTED_CLASSES:
        return _LISTED_CLASSES[kind].decode(attr)
    if kind == "BoolAttr":
        return bool(attr.value)
    if kind == "IntegerAttr":
        return bool(attr.value) if str(attr.type) == "i1" else int(attr.value)
    if kind == "FloatAttr":
        return float(attr.value)
    if kind == "ArrayAttr" and len(attr) == 1:
        parts = decode_dense(attr[0])
        return parts.view(f"c{2 * parts.itemsize}")[..., 0]
    if kind == "ArrayAttr":
        real, imag = (float(a.value) for a in attr)
        return complex(real, imag)
    return decode_dense(attr)


def decode_dense(attr: Any) -> np.ndarray:
    """ndarray of a dense elements attribute (any dtype of the table)."""
    type_ = type_from_object(attr.type)
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None:
        raise IRError(f"constant of type {attr.type} is not a ranked tensor")
    shape, dtype = tuple(int(d) for d in type_.shape), type_.dtype  # type: ignore[arg-type]
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    if dtype.bits == 16 and dtype.kind == "f":
        return _decode_by_text(str(attr), shape, dtype)
    if dtype.kind == "b" and attr.is_splat:
        # The buffer of a splat is one byte, which the bindings read as if it were all of them.
        return np.full(shape, bool(attr.get_splat_value().value))
    data = np.array(attr)
    # The bindings' long long equals NumPy's int64, but is another type of scalar.
    data = data.astype(dtype.numpy) if dtype.kind == "b" else data.view(dtype.numpy)
    return np.broadcast_to(data, shape).copy() if data.shape != shape else data


def _decode_by_text(text: str, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """16-bit floats have no buffer format: read the printed elements."""
    body = text[text.index("<") + 1 : text.rindex("> :")]
    if body.startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(body[3:-1]), dtype.numpy)
    else:
        flat = np.array([_f16(n, dtype) for n in _NUMBER.findall(body)], dtype.numpy)
    flat = flat.reshape(()) if flat.size == 1 else flat.reshape(shape)
    return np.broadcast_to(flat, shape).copy()


_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


def _f16(text: str, dtype: DType) -> np.ndarray:
    if text.startswith("0x"):
        return np.array(int(text, 16), np.uint16).view(dtype.numpy)
    return np.array(float(text), dtype.numpy)


def _decode_type(attr: Any) -> Type:
    return type_from_object(attr.value)


def _scalar_dtype_text(dtype: DType) -> str:
    return dtype.mlir


def _float_to_json(value: float) -> str:
    """All 64 bits in hex: JSON has no infinities, and no payloads of NaN."""
    return struct.pack(">d", value).hex()


def _float_from_json(data: str) -> float:
    return struct.unpack(">d", bytes.fromhex(data))[0]


def _value_to_json(value: Any) -> Any:
    """Bools and ints as they are; of everything else a list that begins with its kind."""
    if type(value) in (bool, int):
        return value
    if type(value) is float:
        return ["float", _float_to_json(value)]
    if type(value) is complex:
        return ["complex", _float_to_json(value.real), _float_to_json(value.imag)]
    listed = listed_type(value)
    if listed is not None:
        return ["none"] if value is None else [listed.kind, _LISTED_KINDS[listed.kind].to_json(value)]
    array = np.asarray(value)
    raw = base64.b64encode(array.tobytes()).decode()
    return ["array", dtype_of(array.dtype).mlir, list(array.shape), raw]


def _value_from_json(data: Any) -> Any:
    if type(data) in (bool, int):
        return data
    kind, *rest = data
    if kind == "float":
        return _float_from_json(*rest)
    if kind == "complex":
        real, imag = rest
        return complex(_float_from_json(real), _float_from_json(imag))
    if kind == "none":
        if rest:
            raise ValueError(f"None has no value {rest}")
        return None
    if kind in _LISTED_KINDS:
        return _LISTED_KINDS[kind].from_json(*rest)
    if kind != "array":
        raise ValueError(f"a constant cannot be of kind {kind!r}")
    dtype, shape, raw = rest
    flat = np.frombuffer(base64.b64decode(raw, validate=True), dtype_of_mlir(dtype).numpy)
    return flat.reshape(shape).copy()


def _exactly(type_: type) -> Callable[[Any], Any]:
    """A check that data are of a JSON type: ``int`` takes no bool."""

    def check(data: Any) -> Any:
        if type(data) is not type_:
            raise TypeError(f"expected {type_.__name__}, not {data!r}")
        return data

    return check


def _tuple_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple]:
    return lambda data: tuple(map(read, data))


_INT, _BOOL, _STR = map(_exactly, (int, bool, str))

I64 = AttrKind(
    "integer", 'irdl.base "#builtin.integer"', lambda v: f"{int(v)} : i64", lambda a: int(a.value), int, _INT
)
BOOL = AttrKind(
    "bool", 'irdl.base "#builtin.integer"', lambda v: str(bool(v)).lower(), lambda a: bool(a.value), bool, _BOOL
)
F64 = AttrKind(
    "float",
    'irdl.base "#builtin.float"',
    lambda v: f"{_float_text(v)} : f64",
    lambda a: float(a.value),
    _float_to_json,
    _float_from_json,
)
STR = AttrKind("string", 'irdl.base "#builtin.string"', quoted, lambda a: str(a.value), str, _STR)
I64_ARRAY = AttrKind(
    "integer array",
    'irdl.base "#builtin.dense_array"',
    lambda v: f"array<i64: {', '.join(str(int(x)) for x in v)}>" if len(v) else "array<i64>",
    lambda a: tuple(int(x) for x in a),
    lambda v: [int(x) for x in v],
    _tuple_of(_INT),
)
I64_ARRAYS = AttrKind(
    "array of integer arrays",
    'irdl.base "#builtin.array"',
    lambda v: "[" + ", ".join(map(I64_ARRAY.text, v)) + "]",
    lambda a: tuple(map(I64_ARRAY.decode, a)),
    lambda v: [I64_ARRAY.to_json(x) for x in v],
    _tuple_of(_tuple_of(_INT)),
)
BOOL_ARRAY = AttrKind(
    "bool array",
    'irdl.base "#builtin.dense_array"',
    lambda v: f"array<i1: {', '.join(str(bool(x)).lower() for x in v)}>" if len(v) else "array<i1>",
    lambda a: tuple(bool(x) for x in a),
    lambda v: [bool(x) for x in v],
    _tuple_of(_BOOL),
)
SYMBOL = AttrKind("symbol", 'irdl.base "#builtin.symbol_ref"', lambda v: f"@{v}", lambda a: str(a.value), str, _STR)
DTYPE = AttrKind(
    "dtype",
    'irdl.base "#builtin.type"',
    _scalar_dtype_text,
    lambda a: dtype_of_mlir(str(a.value)),
    _scalar_dtype_text,
    dtype_of_mlir,
)
TYPE = AttrKind("type", 'irdl.base "#builtin.type"', type_to_mlir, _decode_type, type_to_mlir, type_from_mlir)
TYPES = AttrKind(
    "type array",
    'irdl.base "#builtin.array"',
    lambda v: "[" + ", ".join(map(type_to_mlir, v)) + "]",
    lambda a: tuple(type_from_object(t.value) for t in a),
    lambda v: [type_to_mlir(t) for t in v],
    _tuple_of(type_from_mlir),
)
STR_ARRAY = AttrKind(
    "string array",
    'irdl.base "#builtin.array"',
    lambda v: "[" + ", ".join(STR.text(x) for x in v) + "]",
    lambda a: tuple(str(x.value) for x in a),
    list,
    _tuple_of(_STR),
)
_LISTED_KINDS = {"ints": I64_ARRAY, "bools": BOOL_ARRAY, "str": STR}
_LISTED_CLASSES = {"DenseI64ArrayAttr": I64_ARRAY, "DenseBoolArrayAttr": BOOL_ARRAY, "StringAttr": STR}
VALUE = AttrKind("constant value", "irdl.any", _value_text, _decode_value, _value_to_json, _value_from_json)

__all__ = [
    "BOOL",
    "BOOL_ARRAY",
    "DTYPE",
    "DYNAMIC",
    "F64",
    "I64",
    "I64_ARRAY",
    "I64_ARRAYS",
    "STR",
    "STR_ARRAY",
    "SYMBOL",
    "TYPE",
    "TYPES",
    "VALUE",
    "AttrKind",
    "ScalarType",
    "decode_dense",
    "dense_text",
    "quoted",
    "scalar_text",
]
