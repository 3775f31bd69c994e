"""Attributes of StableHLO ops as plain Python values.

The ops are read in MLIR's generic form by a context that does not know the dialect. Its own
attributes are opaque there, so their text is read here: ``#stablehlo.gather<offset_dims = [1], …>``
becomes a dict, and ``#stablehlo<comparison_direction LT>`` the word ``"LT"``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import IRError
from ....ir.dtypes import BF16, F16, dtype_of_mlir

if TYPE_CHECKING:
    from mlir import ir

_WORD = re.compile(r"^#(?:stablehlo|chlo)<(\w+) (\w+)>$")
_FIELDS = re.compile(r"^#(?:stablehlo|chlo)\.(\w+)<(.*)>$", re.DOTALL)
_FIELD = re.compile(r"(\w+) = (\[[^\]]*\]|[\w.+-]+)")
_CONVOLUTION = re.compile(r"^\[(.*)\]x\[(.*)\]->\[(.*)\]$")
_OPENING = {"<": ">", "(": ")", "[": "]", "{": "}"}


def attributes_of(op: ir.Operation) -> dict[str, Any]:
    """The attributes of an op, its properties included, as plain values by their names."""
    from mlir import ir

    attributes = {name: plain(op.attributes[name]) for name in _names(op)}
    text = _properties(op)
    if text:  # the bindings do not hand out properties of ops that they do not know
        properties = ir.DictAttr(ir.Attribute.parse(text, op.context))
        attributes |= {named.name: plain(named.attr) for named in properties}
    return attributes


def _properties(op: ir.Operation) -> str:
    text = op.get_asm(print_generic_op_form=True, skip_regions=True, use_local_scope=True)
    start = text.find(" <{")
    return _balanced(text, start + 2) if start >= 0 else ""


def constant_of(op: ir.Operation) -> np.ndarray:
    """The array of a ``stablehlo.constant``; one element repeated by strides of 0 where all are equal."""
    from mlir import ir

    type_ = ir.RankedTensorType(op.results[0].type)
    dtype = dtype_of_mlir(str(type_.element_type)).numpy
    if dtype.kind == "c":  # the bindings abort where they are asked for such an attribute
        return _of_text(_properties(op).partition(" = ")[2], dtype, tuple(type_.shape))
    return attributes_of(op)["value"]


def _names(op: ir.Operation) -> list[str]:
    return [name if isinstance(name, str) else name.name for name in op.attributes]


def _balanced(text: str, start: int) -> str:
    """The text of a bracket that opens at ``start``, up to its end."""
    closing: list[str] = []
    at = start
    while True:
        letter = text[at]
        if letter == '"':
            at = _behind_string(text, at)
            continue
        if letter in _OPENING:
            closing.append(_OPENING[letter])
        elif closing and letter == closing[-1] and text[at - 1 : at + 1] != "->":
            closing.pop()
        at += 1
        if not closing:
            return text[start:at]


def _behind_string(text: str, at: int) -> int:
    at += 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def plain(attribute: ir.Attribute) -> Any:
    """One attribute as ints, floats, words, tuples, dicts and arrays; raises IRError for other kinds."""
    from mlir import ir

    if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr, ir.StringAttr, ir.BoolAttr, ir.FlatSymbolRefAttr)):
        return attribute.value
    if isinstance(attribute, (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr, ir.DenseBoolArrayAttr)):
        return tuple(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(plain(item) for item in attribute)
    if isinstance(attribute, ir.DictAttr):
        return {named.name: plain(named.attr) for named in attribute}
    if isinstance(attribute, ir.UnitAttr):
        return True
    if isinstance(attribute, ir.TypeAttr):
        return str(attribute)
    if isinstance(attribute, ir.DenseElementsAttr):
        return elements(attribute)
    return _opaque(str(attribute))


def _opaque(text: str) -> Any:
    """The fields of an attribute of the dialect, from its text."""
    word = _WORD.match(text)
    if word:
        return word[2]
    fields = _FIELDS.match(text)
    if fields is None:
        return text  # of another dialect, such as a sharding: no handler asks for it
    if fields[1] == "conv":
        return _convolution(fields[2])
    return {name: _field(value) for name, value in _FIELD.findall(fields[2])}


def _field(text: str) -> Any:
    if text.startswith("["):
        return tuple(int(item) for item in text[1:-1].split(",") if item.strip())
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _convolution(text: str) -> tuple[tuple[str, ...], ...]:
    """The three layouts of ``[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]``."""
    parts = _CONVOLUTION.match(text.strip())
    if parts is None:
        raise IRError(f"the layouts of a convolution are not understood: {text}")
    return tuple(tuple(item.strip() for item in part.split(",")) for part in parts.groups())


def elements(attribute: ir.DenseElementsAttr) -> np.ndarray:
    """The array of a dense attribute; one element repeated by strides of 0 where all are equal."""
    from mlir import ir

    type_ = ir.ShapedType(attribute.type)
    shape = tuple(type_.shape)
    element = str(type_.element_type)
    dtype = np.dtype(np.int64) if element == "index" else dtype_of_mlir(element).numpy
    if attribute.is_splat:
        return np.broadcast_to(_number(attribute.get_splat_value(), dtype), shape)
    if dtype in (BF16.numpy, F16.numpy):
        return _of_text(str(attribute), dtype, shape)
    return np.array(attribute).reshape(shape).astype(dtype, copy=False)


def _number(attribute: ir.Attribute, dtype: np.dtype) -> np.ndarray:
    from mlir import ir

    if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr, ir.BoolAttr)):
        return np.asarray(attribute.value).astype(dtype)
    return _of_text(f"dense<[{attribute}]>", dtype, ())


def _of_text(text: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Elements of which the bindings have no buffer, from ``dense<"0x…">``, or from numbers in text."""
    raw = re.match(r'dense<"0x([0-9A-Fa-f]*)">', text)
    if raw:
        return np.frombuffer(bytes.fromhex(raw[1]), dtype).reshape(shape)
    part = np.zeros((), dtype).real.dtype if dtype.kind == "c" else dtype
    words = re.findall(r"0x[0-9A-F]+|[-+]?\d[\d.eE+-]*", text[: text.find(" : ")])
    numbers: list[complex] = [_float(word, part) for word in words]
    if dtype.kind == "c":
        numbers = [complex(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
    values = np.asarray(numbers)
    if values.size == 1:
        values = np.broadcast_to(np.reshape(values, ()), shape)
    if values.size != np.prod(shape, dtype=int):
        raise IRError(f"a constant of {dtype} is not understood: {text[:80]}")
    return values.astype(dtype).reshape(shape)


def _float(text: str, dtype: np.dtype) -> float:
    """A number in text; NaN and infinities are written as the bits of their dtype."""
    if not text.startswith("0x"):
        return float(text)
    return float(np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype))
