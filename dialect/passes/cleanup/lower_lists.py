"""Lists that only carry tensors from one place to another (R1.24: simple tuples)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...mlir.rewrite import erase, op_class, replace, users
from ...ops.control_flow.lists import ListConstruct, ListUnpack
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _forward(m: Match) -> int:
    readers = users(m.op.results[0])
    if any(op_class(r) is not ListUnpack for r in readers):
        return 0
    if any(len(r.results) != len(m.op.operands) for r in readers):
        return 0
    for reader in readers:
        replace(reader, list(m.op.operands))
    erase(m.op)
    return 1


@register_pass
@dataclass(frozen=True)
class LowerLists(PatternPass):
    """Forward the items of a ``list_construct`` to its ``list_unpack`` users.

    Only where nothing else uses the list: what else has it may grow it. An unpack into another
    number of items stays, as does the list; running it is where that is reported. Lists that
    nobody uses go.
    """

    name: ClassVar[str] = "lower-lists"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("lists-lowered", (ListConstruct,), _forward),)
