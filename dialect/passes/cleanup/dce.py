"""Remove what nothing needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mlir import ir

from ...mlir.rewrite import (
    attribute,
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
            # Backwards, so that one sweep removes whole chains.
            for op in walk_backwards(func):
                if not is_terminator(op) and not is_used(op) and is_pure(op):
                    op.erase()
                    self.count("ops-removed")
        # Dead ops may have been the last to name a function.
        if self.statistics["ops-removed"] != before:
            self._functions(module)

    def _functions(self, module: ir.Module) -> None:
        found = {symbol_of(func): func for func in functions(module)}
        todo = [func for func in found.values() if not is_private(func)]
        if len(todo) in (0, len(found)):
            return
        reached = {symbol_of(func) for func in todo}
        while todo:
            for name in _named_in(todo.pop()):
                if name in found and name not in reached:
                    reached.add(name)
                    todo.append(found[name])
        for name, func in found.items():
            if name not in reached:
                func.erase()
                self.count("functions-removed")


def _named_in(func: ir.Operation) -> set[str]:
    """Symbols that a function and its ops name, whatever the attribute is called."""
    names: set[str] = set()
    for op in (func, *walk(func)):
        for key in op.attributes:
            _collect(attribute(op, key), names)
    return names


def _collect(found: Any, names: set[str]) -> None:
    if isinstance(found, ir.FlatSymbolRefAttr):
        names.add(found.value)
    elif isinstance(found, ir.SymbolRefAttr):
        names.add(found.value[0])
    elif isinstance(found, ir.ArrayAttr):
        for element in found:
            _collect(element, names)
    elif isinstance(found, ir.DictAttr):
        for index in range(len(found)):
            _collect(found[index].attr, names)
