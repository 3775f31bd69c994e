"""The arguments of a call as text: plain values, nested sequences of them, places of operands.

The text is that of a call in Python, between the parentheses: ``x0, x1, axis=-1, kind='stable'``.
The operands are ``x0``, ``x1``, …; what has no literal is written as ``slice(None, 3, None)``,
``float('nan')``, ``complex(0.0, 1.0)``, ``dtype('f32')``, and ``scalar('i64', 3)`` for a scalar of
NumPy.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import DTypeError, IRError
from ...ir.dtypes import dtype_named, dtype_of

_PLAIN = (type(None), type(Ellipsis), bool, int, str)
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_MADE: Mapping[str, Callable[..., Any]] = {
    "slice": slice,
    "float": lambda text: _FLOATS[text],
    "complex": complex,
    "dtype": lambda name: dtype_named(name).numpy,
    "scalar": lambda name, number: dtype_named(name).numpy.type(number),
}


@dataclass(frozen=True)
class OperandPlace:
    """The place of an operand among the arguments; ``index`` is its number."""

    index: int


@dataclass(frozen=True)
class CallTemplate:
    """The arguments of a call, in which a `OperandPlace` stands for each operand."""

    positional: tuple[Any, ...]
    named: Mapping[str, Any]

    def filled(self, value: Callable[[int], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with ``value(index)`` in each place."""
        return (
            [filled(node, value) for node in self.positional],
            {name: filled(node, value) for name, node in self.named.items()},
        )

    def places(self) -> Iterator[int]:
        """The numbers of the operands, in the order of their places."""
        for node in (*self.positional, *self.named.values()):
            yield from _places(node)


def filled(node: Any, value: Callable[[int], Any]) -> Any:
    """An argument with ``value(index)`` in place of each operand in it."""
    if isinstance(node, OperandPlace):
        return value(node.index)
    if isinstance(node, (tuple, list)):
        return type(node)(filled(item, value) for item in node)
    if isinstance(node, slice):
        return slice(*(filled(x, value) for x in (node.start, node.stop, node.step)))
    return node


def _places(node: Any) -> Iterator[int]:
    if isinstance(node, OperandPlace):
        yield node.index
    elif isinstance(node, (tuple, list)):
        for item in node:
            yield from _places(item)
    elif isinstance(node, slice):
        yield from _places((node.start, node.stop, node.step))


def arguments_text(arguments: CallTemplate) -> str:
    """The text of a call's arguments; raises TypeError for a value that has none."""
    kwargs = [f"{name}={_written(node)}" for name, node in arguments.named.items()]
    return ", ".join([*map(_written, arguments.positional), *kwargs])


def _written(node: Any) -> str:
    if type(node) in _PLAIN:
        return "..." if node is Ellipsis else repr(node)
    if type(node) is float:
        return repr(node) if math.isfinite(node) else f"float('{node!r}')"
    if type(node) is complex:
        return f"complex({_written(node.real)}, {_written(node.imag)})"
    if isinstance(node, OperandPlace):
        return f"x{node.index}"
    if isinstance(node, tuple):
        return f"({', '.join(map(_written, node))}{',' * (len(node) == 1)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_written, node))}]"
    if isinstance(node, slice):
        return f"slice({', '.join(map(_written, (node.start, node.stop, node.step)))})"
    if isinstance(node, np.generic):
        return f"scalar('{dtype_of(node.dtype).name}', {_written(node.item())})"
    if isinstance(node, (np.dtype, type)):
        return f"dtype('{dtype_of(node).name}')"
    raise TypeError(f"an object of type {type(node).__name__} cannot be part of a graph")


@lru_cache(maxsize=1024)
def parsed_arguments(text: str) -> CallTemplate:
    """The places that `arguments_text` wrote; raises IRError for any other text."""
    try:
        call = ast.parse(f"call({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("it is not one call")
        return CallTemplate(tuple(map(_read, call.args)), _read_named(call))
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise IRError(f"{text!r} is no list of arguments: {error}") from None
    except DTypeError as error:
        raise IRError(f"{text!r} is no list of arguments: {error.what}") from None


def _read_named(called: ast.Call) -> dict[str, Any]:
    if any(keyword.arg is None for keyword in called.keywords):
        raise ValueError("a keyword has no name")
    return {str(keyword.arg): _read(keyword.value) for keyword in called.keywords}


def _read(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (*_PLAIN, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_read(node.operand)
    if isinstance(node, ast.Name) and node.id[0] == "x" and node.id[1:].isdecimal():
        return OperandPlace(int(node.id[1:]))
    if isinstance(node, ast.Tuple):
        return tuple(map(_read, node.elts))
    if isinstance(node, ast.List):
        return list(map(_read, node.elts))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _MADE[node.func.id](*map(_read, node.args))
    raise ValueError(f"{ast.unparse(node)} is no plain value")
