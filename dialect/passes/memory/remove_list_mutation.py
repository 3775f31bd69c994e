"""Lists grown in place as new lists (R1.26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...mlir.rewrite import create, defining_op, erase, op_class, ops_in, types_of, walk
from ...ops.control_flow.lists import ListAppend, ListConstruct, ListUnpack
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _append(m: Match) -> int:
    op, (grown, item) = m.op, m.op.operands
    source = defining_op(grown)
    if source is None or op_class(source) is not ListConstruct:
        return 0
    order = ops_in(op.block)
    if source not in order:
        return 0
    start, end = order.index(source), order.index(op)
    for other in order[start + 1 : end]:
        inside = (other, *walk(other))
        if any(grown in list(o.operands) for o in inside) and op_class(other) is not ListUnpack:
            return 0
    items = [*source.operands, item]
    longer = create(ListConstruct, items, {}, types_of(source.results), op).results[0]
    for use in list(grown.uses):
        owner = use.owner.operation
        if owner != op and owner not in order[:end]:
            owner.operands[use.operand_number] = longer
    erase(op)
    if not any(True for _ in grown.uses):
        erase(source)
    return 1


@register_pass
@dataclass(frozen=True)
class RemoveListMutation(PatternPass):
    """Make a longer ``list_construct`` of one and the ``list_append`` to it in the same block.

    Only while nothing but unpacks has had the list before the append: an alias would see it grow.
    """

    name: ClassVar[str] = "remove-list-mutation"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("appends-removed", (ListAppend,), _append),)
