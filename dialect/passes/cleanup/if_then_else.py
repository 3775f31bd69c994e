"""Branches that only choose (R1.45)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...mlir.rewrite import create, ops_in, replace, terminator_of, types_of, walk_backwards
from ...ops.control_flow.control import If, IfThenElse
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _choose(m: Match) -> int:
    op = m.op
    if len(op.results) != 1 or any(len(ops_in(region.blocks[0])) != 1 for region in op.regions):
        return 0
    values = [terminator_of(region.blocks[0]).operands[0] for region in op.regions]
    new = create(IfThenElse, [op.operands[0], *values], {}, types_of(op.results), op)
    replace(op, list(new.results))
    return 1


@register_pass
@dataclass(frozen=True)
class IfThenElsePass(PatternPass):
    """Make ``if_then_else`` of each ``scf.if`` of one result whose two blocks are both empty."""

    name: ClassVar[str] = "if-then-else"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("branches-replaced", (If,), _choose),)
    order = staticmethod(walk_backwards)  # inner ones may leave nothing else in an outer block
