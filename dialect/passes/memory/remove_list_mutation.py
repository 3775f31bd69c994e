"""Lists grown in place as new lists (R1.26)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.rewrite import create, defining_op, erase, functions, op_class, ops_in, types_of, walk
from ...ops.lists import ListAppend, ListConstruct, ListUnpack
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class RemoveListMutation(Pass):
    """Make a longer ``list_construct`` of one and the ``list_append`` to it in the same block.

    Only while nothing but unpacks has had the list before the append: an alias would see it grow.
    """

    name: ClassVar[str] = "remove-list-mutation"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            for op in [op for op in walk(func) if op_class(op) is ListAppend]:
                self._append(op.block, op)

    def _append(self, block: ir.Block, op: ir.Operation) -> None:
        grown, item = op.operands
        source = defining_op(grown)
        if source is None or op_class(source) is not ListConstruct:
            return
        order = ops_in(block)
        if source not in order:
            return
        start, end = order.index(source), order.index(op)
        for other in order[start + 1 : end]:
            inside = (other, *walk(other))
            if any(grown in list(o.operands) for o in inside) and op_class(other) is not ListUnpack:
                return
        longer = create(
            ListConstruct, [*source.operands, item], {}, types_of(source.results), op
        ).results[0]
        for use in list(grown.uses):
            owner = use.owner.operation
            if owner != op and owner not in order[:end]:
                owner.operands[use.operand_number] = longer
        erase(op)
        if not any(True for _ in grown.uses):
            erase(source)
        self.count("appends-removed")
