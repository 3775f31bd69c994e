"""Lists that only carry tensors from one place to another (R1.24: simple tuples)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.rewrite import erase, functions, op_class, replace, users, walk
from ...ops.lists import ListConstruct, ListUnpack
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class LowerLists(Pass):
    """Forward the items of a ``list_construct`` to its ``list_unpack`` users.

    Only where nothing else uses the list: what else has it may grow it. An unpack into another
    number of items stays, as does the list; running it is where that is reported. Lists that
    nobody uses go.
    """

    name: ClassVar[str] = "lower-lists"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            for op in [op for op in walk(func) if op_class(op) is ListConstruct]:
                self._list(op)

    def _list(self, op: ir.Operation) -> None:
        readers = users(op.results[0])
        if any(op_class(r) is not ListUnpack for r in readers):
            return
        if any(len(r.results) != len(op.operands) for r in readers):
            return
        for reader in readers:
            replace(reader, list(op.operands))
        erase(op)
        self.count("lists-lowered")
