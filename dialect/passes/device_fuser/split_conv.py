"""Convolutions with a bias as convolutions and sums, of which device groups take the sums (R3.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ProfuseError
from ...ir.types import TensorType
from ...mlir.rewrite import create, replace, types_of
from ...ops.manipulation.shape import ExpandDims
from ...ops.nn.copies import AddOptional
from ...ops.nn.weighted_ops import Conv2d
from ...reasons import Kind, Reason
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass
from .op_splits import ROUNDED_ONCE, is_rounded_once, left_whole, type_in_place_of

_LAST = {"axes": (-1,)}
_GIVEN = {"given": 1}


def _conv(m: Match) -> int:
    if not m.attrs["given"]:
        return 0
    x, weight, bias = m.op.operands
    types = types_of(m.op.operands)
    bias_type = types[2]
    if not isinstance(bias_type, TensorType) or not bias_type.is_complete or bias_type.rank != 1:
        return left_whole(m, Reason(Kind.UNKNOWN_OPERAND, operand=2))
    if any(not isinstance(t, TensorType) or t.dtype is None for t in types[:2]):
        return left_whole(m, Reason(Kind.UNKNOWN_OPERAND, operand=0))
    if is_rounded_once(types):
        return left_whole(m, ROUNDED_ONCE)
    attrs = {name: value for name, value in m.attrs.items() if name != "given"}
    try:
        (plain,) = Conv2d.infer(types[:2], Conv2d.full_attrs(attrs))
        (column,) = ExpandDims.infer([bias_type], _LAST)
        (columns,) = ExpandDims.infer([column], _LAST)
        (total,) = AddOptional.infer([plain, columns], _GIVEN)
    except ProfuseError as error:
        return left_whole(m, Reason(Kind.TYPES, detail=error.what))  # running it is where that is reported
    op = m.op
    wide = create(ExpandDims, [bias], _LAST, [column], op)
    wide = create(ExpandDims, list(wide.results), _LAST, [columns], op)
    conv = create(Conv2d, [x, weight], attrs, [plain], op)
    added = create(AddOptional, [*conv.results, *wide.results], _GIVEN, [type_in_place_of(op.results[0], total)], op)
    replace(op, list(added.results))
    return 1


@register_pass
@dataclass(frozen=True)
class SplitConv(PatternPass):
    """``conv2d`` with a bias into one without and an optional sum with the bias of shape (C, 1, 1).

    One with a bias of an unknown size stays whole, and one of 16-bit floats, which are rounded
    after the bias has been added, with the reason.
    """

    name: ClassVar[str] = "split-conv"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("ops-split", (Conv2d,), _conv),)
