"""Make ops of `late` ones whose attributes are known (R3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ProfuseError
from ...ir.op import op_named
from ...mlir.facts import constant_value, is_constant
from ...mlir.rewrite import create, replace, types_of
from ...ops.late import Late
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _bound(m: Match) -> int:
    op, count = m.op, len(m.op.operands) - len(m.attrs["names"])
    operands, values = list(op.operands)[:count], list(op.operands)[count:]
    if not all(map(is_constant, values)):
        return 0
    cls = op_named(m.attrs["op"])
    try:
        attrs = Late.bound_attrs(m.attrs, list(map(constant_value, values)))
        if next(iter(cls.verify(types_of(operands), attrs)), None) is not None:
            return 0
    except ProfuseError:
        return 0  # where it runs is where the user must see it
    replace(op, list(create(cls, operands, attrs, types_of(op.results), op).results))
    return 1


BINDING = Pattern("late-ops-bound", (Late,), _bound)


@register_pass
@dataclass(frozen=True)
class BindLate(PatternPass):
    """Put the op itself in the place of ``late`` where all values are constants.

    A conditional constant is none: until a guard has compared it, the op stays late.
    """

    name: ClassVar[str] = "bind-late"
    patterns: ClassVar[Sequence[Pattern]] = (BINDING,)
