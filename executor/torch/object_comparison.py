"""Comparing at each call what an export holds for, object by object, in few steps of C.

The checks that decide are those of `ModuleState` and `ClosedCode`, by value where they have to. Where each object that
these read is the one that it was when they last held, they hold.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import torch

from ..exchange.torch_tensors import TensorMemories

_MISSING = object()
_version: Callable[[dict], int] | None = getattr(torch._C._dynamo.guards, "dict_version", None)


class ObjectComparison:
    """Objects, and what they hold, each compared by identity with what was there when they were `taken`.

    Attributes:
        are_same: the function that is True if nothing has changed since `taken`: one of straight code, for a call of
            a small model takes no longer than the steps that a loop over few objects would have.
    """

    def __init__(self) -> None:
        self._noted: dict[int, dict[str, Any]] = {}
        self._tables: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._values: list[Any] = []
        self._bound: list[tuple[Any, str]] = []
        self._cells: list[types.CellType] = []
        self._functions: list[types.FunctionType] = []
        self._objects: list[Any] = []
        self._empty: list[Any] = []
        self._memories: list[TensorMemories] = []
        self._versions: list[int] = []
        self.are_same: Callable[[], bool] = lambda: False

    def table(self, table: dict[str, Any]) -> None:
        """A dict has the same names, in the same order, and holds the same objects."""
        self._noted[id(table)] = table

    def binding(self, table: Any, name: str) -> None:
        """A dict or the names of a class hold the same object by a name, or none."""
        self._bound.append((table, name))

    def cell(self, cell: types.CellType) -> None:
        """A variable of an enclosing function has the same value."""
        self._cells.append(cell)

    def function(self, function: types.FunctionType) -> None:
        """A function has the same code and default values."""
        self._functions.append(function)
        if function.__kwdefaults__:
            self.table(function.__kwdefaults__)

    def kind(self, value: Any) -> None:
        """An object is of the same class."""
        self._objects.append(value)

    def empty(self, container: Any) -> None:
        """A container holds nothing."""
        self._empty.append(container)

    def memories(self, memories: TensorMemories) -> None:
        """Tensors have their elements in the same places."""
        self._memories.append(memories)

    def taken(self) -> ObjectComparison:
        """This object, with all that has been noted as it is now."""
        self._tables = list(self._noted.values())
        self._names = list(chain.from_iterable(self._tables))
        self._values = list(chain.from_iterable(map(dict.values, self._tables)))
        values: dict[str, Any] = {}
        # The conditions in the text are told apart by numbers alone, so that models of one form have one text.
        conditions = [condition for pair in self._conditions() for condition in _condition(values, *pair)]
        exec(_code_of(" and ".join(conditions) or "True"), values)
        self.are_same = values["are_same"]
        return self

    def _conditions(self) -> Iterator[tuple[str, Sequence[tuple[Any, ...]]]]:
        """Conditions as text, each with the objects that it is about, as often as it stands."""
        yield "{}()", [(self._have_same_items,)] if self._tables else []
        yield (
            "{}({}, {}) is {}",
            [(get, name, _MISSING, get(name, _MISSING)) for table, name in self._bound for get in [_getter(table)]],
        )
        yield "{}.cell_contents is {}", [(cell, cell.cell_contents) for cell in self._cells]
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            yield f"{{}}.{part} is {{}}", [(function, getattr(function, part)) for function in self._functions]
        yield "{}({}) is {}", [(type, value, type(value)) for value in self._objects]
        yield "not {}", [(container,) for container in self._empty if container is not None]
        yield "{}()", [(memories.are_same,) for memories in self._memories]

    def _have_same_items(self) -> bool:
        """True if all dicts have the same names, in the same order, and hold the same objects."""
        # A version tells of any change of a dict; it is read first, so that no change is missed.
        versions = [] if _version is None else list(map(_version, self._tables))
        if versions and versions == self._versions:
            return True
        if list(chain.from_iterable(self._tables)) != self._names:
            return False
        if not all(map(operator.is_, chain.from_iterable(map(dict.values, self._tables)), self._values)):
            return False
        self._versions = versions
        return True


def _getter(table: Any) -> Callable[[str, Any], Any]:
    """What looks names up in a dict, or in the names of a class, in Python's own way."""
    return table.get if type(table) in (dict, types.MappingProxyType) else functools.partial(dict.get, table)


def _condition(values: dict[str, Any], form: str, objects: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """Conditions of one form with names for their objects, which ``values`` gets."""
    for each in objects:
        names = [f"x{len(values) + k}" for k in range(len(each))]
        values.update(zip(names, each, strict=True))
        yield form.format(*names)


@functools.lru_cache(maxsize=64)
def _code_of(condition: str) -> types.CodeType:
    """A function that tells whether a condition holds; it does not where a dict grows or a variable has no value."""
    text = f"def are_same():\n try:\n  return {condition}\n except (RuntimeError, ValueError):\n  return False\n"
    return compile(text, "<profuse: comparison of objects>", "exec")
