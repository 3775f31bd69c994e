"""Remove what nothing needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mlir import ir

from ...mlir.rewrite import (
    all_attributes,
    functions,
    is_private,
    is_pure,
    is_terminator,
    is_used,
    symbol_of,
    walk,
    walk_backwards,
)
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class Dce(Pass):
    """Remove pure ops whose results nobody uses, and private functions nobody names.

    Control flow goes when everything in it is pure; loops are taken to end.  A module without a
    public function keeps all its functions.
    """

    name: ClassVar[str] = "dce"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        self._functions(module)
        before = self.statistics["ops-removed"]
        for func in functions(module):
            self.function(func)
        # Dead ops may have been the last to name a function.
        if self.statistics["ops-removed"] != before:
            self._functions(module)

    def function(self, func: ir.Operation) -> None:
        """Remove from one function the ops that it does not need."""
        # Backwards, so that one sweep removes whole chains.
        for op in walk_backwards(func):
            if not is_terminator(op) and not is_used(op) and is_pure(op):
                op.erase()
                self.count("ops-removed")

    def _functions(self, module: ir.Module) -> None:
        by_name = {symbol_of(func): func for func in functions(module)}
        todo = [func for func in by_name.values() if not is_private(func)]
        if len(todo) in (0, len(by_name)):
            return
        reached = {symbol_of(func) for func in todo}
        while todo:
            for name in _named_in(todo.pop()):
                if name in by_name and name not in reached:
                    reached.add(name)
                    todo.append(by_name[name])
        for name, func in by_name.items():
            if name not in reached:
                func.erase()
                self.count("functions-removed")


def _named_in(func: ir.Operation) -> set[str]:
    """Symbols that a function and its ops name, whatever the attribute is called."""
    names: set[str] = set()
    for op in (func, *walk(func)):
        for _, value in all_attributes(op):
            _collect(value, names)
    return names


def _collect(attr: Any, names: set[str]) -> None:
    if isinstance(attr, ir.FlatSymbolRefAttr):
        names.add(attr.value)
    elif isinstance(attr, ir.SymbolRefAttr):
        names.add(attr.value[0])
    elif isinstance(attr, ir.ArrayAttr):
        for element in attr:
            _collect(element, names)
    elif isinstance(attr, ir.DictAttr):
        for index in range(len(attr)):
            _collect(attr[index].attr, names)
