"""Results of TorchScript functions: which tuples among them are named, and lists and dicts of what."""

from __future__ import annotations

import collections
import functools
from typing import Any


def result_shape(type_: Any) -> Any:
    """The parts of a type that tell the class of a result: plain data.

    ``("named", name, fields, parts)`` and ``("tuple", parts)`` for tuples, ``("list", part)``, ``("dict", part)``,
    and None for all other types.
    """
    kind = type_.kind()
    if kind == "TupleType":
        parts = tuple(map(result_shape, type_.elements()))
        text = type_.str()
        if not text.startswith("NamedTuple(") or type_.annotation_str.startswith("Tuple["):  # of ATen, without a class
            return "tuple", parts
        return "named", type_.annotation_str.rpartition(".")[2], _fields(text), parts
    if kind in ("ListType", "OptionalType"):
        part = result_shape(type_.getElementType())
        return ("list", part) if kind == "ListType" else part
    if kind == "DictType":
        return "dict", result_shape(type_.getValueType())
    return None


def _fields(text: str) -> tuple[str, ...]:
    """The names in ``NamedTuple(x : Tensor, y : (int, int))``."""
    depth, parts = 0, [""]
    for letter in text[text.index("(") + 1 : -1]:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.partition(":")[0].strip() for part in parts)


@functools.cache
def _class(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)  # as torch makes one for results


def shaped(value: Any, shape: Any) -> Any:
    """A result whose tuples, lists and dicts are those that torch gives."""
    if shape is None or value is None:
        return value
    if shape[0] == "named":
        return _class(shape[1], shape[2])(*map(shaped, value, shape[3]))
    if shape[0] == "tuple":
        return tuple(map(shaped, value, shape[1]))
    if shape[0] == "list":
        return [shaped(x, shape[1]) for x in value]
    return {key: shaped(x, shape[1]) for key, x in value.items()}
