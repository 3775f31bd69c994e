"""Comparing at each call what an export holds for, object by object, in few steps of C.

The checks that decide are those of `ModuleState` and `ClosedCode`, by value where they have to. Where each object that
these read is the one that it was when they last held, they hold.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, repeat
from typing import Any

import torch

from ..exchange.torch_tensors import TensorMemories

_MISSING = object()
_content = operator.attrgetter("cell_contents")
_parts = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
_version: Callable[[dict], int] | None = getattr(torch._C._dynamo.guards, "dict_version", None)


class ObjectComparison:
    """Objects, and what they hold, each compared by identity with what was there when they were `taken`."""

    def __init__(self) -> None:
        self._noted: dict[int, dict[str, Any]] = {}
        self._tables: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._values: list[Any] = []
        self._bound: dict[bool, tuple[list[Any], list[str], list[Any]]] = {False: ([], [], []), True: ([], [], [])}
        self._cells: list[types.CellType] = []
        self._contents: list[Any] = []
        self._functions: list[types.FunctionType] = []
        self._function_parts: list[Any] = []
        self._objects: list[Any] = []
        self._classes: list[type] = []
        self._empty: list[Any] = []
        self._memories: list[TensorMemories] = []
        self._versions: list[int] = []
        self._checks: list[Callable[[], bool]] = []

    def table(self, table: dict[str, Any]) -> None:
        """A dict has the same names, in the same order, and holds the same objects."""
        self._noted[id(table)] = table

    def binding(self, table: Any, name: str) -> None:
        """A dict or the names of a class hold the same object by a name, or none."""
        for column, value in zip(self._bound[type(table) is types.MappingProxyType], (table, name, None), strict=True):
            column.append(value)

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
        for is_of_class, (tables, names, values) in self._bound.items():
            values[:] = _looked_up(is_of_class, tables, names)
        self._contents = list(map(_content, self._cells))
        self._function_parts = list(chain.from_iterable(map(_parts, self._functions)))
        self._classes = list(map(type, self._objects))
        self._checks = list(self._checks_needed())
        return self

    def _checks_needed(self) -> Iterator[Callable[[], bool]]:
        """What compares the parts of which there are any."""
        if self._tables:
            yield self._have_same_items
        for is_of_class, (tables, names, values) in self._bound.items():
            if tables:
                yield partial(_hold, partial(_looked_up, is_of_class, tables, names), values)
        if self._cells:
            yield partial(_hold, partial(map, _content, self._cells), self._contents)
        if self._functions:
            yield partial(_hold, lambda: chain.from_iterable(map(_parts, self._functions)), self._function_parts)
        if self._objects:
            yield partial(_hold, partial(map, type, self._objects), self._classes)
        if self._empty:
            yield lambda: not any(self._empty)
        for memories in self._memories:
            yield memories.are_same

    def are_same(self) -> bool:
        """True if nothing has changed since `taken`."""
        try:
            for check in self._checks:  # in fewer steps than `all` takes
                if not check():
                    return False
        except (RuntimeError, ValueError):  # a dict that grows meanwhile, a variable without a value
            return False
        return True

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


def _hold(values_now: Callable[[], Iterable[Any]], values: Iterable[Any]) -> bool:
    """True if these are the same objects; there are as many of both."""
    return all(map(operator.is_, values_now(), values))


def _looked_up(is_of_class: bool, tables: Iterable[Any], names: Iterable[str]) -> Iterable[Any]:
    get: Any = types.MappingProxyType.get if is_of_class else dict.get
    return map(get, tables, names, repeat(_MISSING))
