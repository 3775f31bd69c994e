"""Small rewrites across two ops, beyond the canonical form (R1.24, R1.26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.op import Fusion, Op
from ...ir.types import ScalarType, TensorType
from ...mlir.facts import constant_value, is_constant, source_of
from ...mlir.rewrite import create, op_class, replace, terminator_of, type_of
from ...ops.control_flow.control import If
from ...ops.elementwise.binary import Add, Sub
from ...ops.elementwise.families import Elementwise
from ...ops.elementwise.unary import Neg
from ...ops.queries import DTypeCode, Query
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _branch(m: Match) -> int:
    op = m.op
    blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    if len(blocks) != 2:
        return 0
    changes = 0
    for result, a, b in zip(op.results, *(terminator_of(k).operands for k in blocks), strict=True):
        if next(iter(result.uses), None) is None:
            continue
        if a == b:
            new = a
        elif _truth(a) is True and _truth(b) is False:
            new = op.operands[0]
        else:
            continue
        result.replace_all_uses_with(new)
        changes += 1
    return changes


def _truth(value: ir.Value) -> bool | None:
    found = constant_value(value) if is_constant(value) else None
    return found if isinstance(found, bool) else None


def _query(m: Match) -> int:
    source = source_of(m.op.operands[0])
    inner = op_class(source) if source is not None else None
    if source is None or inner is None or len(source.operands) != 1:
        return 0
    if not issubclass(inner, Elementwise) or inner.fusion is not Fusion.POINTWISE:
        return 0
    # A Python number has no sizes, and an op may change the dtype.
    x = source.operands[0]
    if m.cls is DTypeCode or not isinstance(type_of(x), TensorType):
        return 0
    m.op.operands[0] = x
    return 1


def _sign(m: Match) -> int:
    op, (a, b) = m.op, m.op.operands
    source = source_of(b)
    if source is None or op_class(source) is not Neg or m.function.memory.is_touched(source):
        return 0
    inner = source.operands[0]
    types = [type_of(v) for v in (a, inner)]
    # Negation in a narrow dtype wraps before the sum widens: the dtypes must be one.
    dtypes = {None if isinstance(t, ScalarType) else t.dtype for t in types}  # type: ignore[union-attr]
    if len(dtypes) != 1 or None in dtypes or next(iter(dtypes)).kind not in "iuf":  # type: ignore[union-attr]
        return 0
    opposite: type[Op] = Sub if m.cls is Add else Add
    made = create(opposite, [a, inner], {}, [type_of(op.results[0])], op)
    replace(op, list(made.results))
    return 1


@register_pass
@dataclass(frozen=True)
class Peephole(PatternPass):
    """``x + -y`` and ``x - -y`` without the negation, queries past elementwise ops, idle branches.

    A size or rank is asked of the operand of a unary op instead of its result, which may then go.
    A branch whose blocks yield one value, or true and false, gives that value, or the condition.
    """

    name: ClassVar[str] = "peephole"
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("branch-results-replaced", (If,), _branch),
        Pattern("queries-moved", (Query,), _query),
        Pattern("negations-absorbed", (Add, Sub), _sign),
    )
