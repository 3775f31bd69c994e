"""Branches that only choose (R1.45)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.rewrite import (
    create,
    functions,
    op_class,
    ops_in,
    replace,
    terminator_of,
    types_of,
    walk,
)
from ...ops.control import If, IfThenElse
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class IfThenElsePass(Pass):
    """Make ``if_then_else`` of each ``scf.if`` of one result whose two blocks are both empty."""

    name: ClassVar[str] = "if-then-else"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            # Inner ones first: they may leave nothing else in an outer block.
            for op in reversed([op for op in walk(func) if op_class(op) is If]):
                if len(op.results) == 1 and all(map(_is_empty, op.regions)):
                    self._choose(op)

    def _choose(self, op: ir.Operation) -> None:
        values = [terminator_of(region.blocks[0]).operands[0] for region in op.regions]
        new = create(IfThenElse, [op.operands[0], *values], {}, types_of(op.results), op)
        replace(op, list(new.results))
        self.count("branches-replaced")


def _is_empty(region: ir.Region) -> bool:
    return len(ops_in(region.blocks[0])) == 1
