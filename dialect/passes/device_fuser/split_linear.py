"""Linear maps as products and sums, of which device groups take the sums (R3.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ProfuseError
from ...ir.types import TensorType, Type
from ...mlir.rewrite import create, replace, types_of
from ...ops.linalg.contract import Matmul
from ...ops.manipulation.permute import Transpose
from ...ops.nn.copies import AddOptional
from ...ops.nn.weighted_ops import LinearMap
from ...reasons import Kind, Reason
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass
from .op_splits import ROUNDED_ONCE, is_rounded_once, left_whole, type_in_place_of

_TURNED = {"perm": (1, 0)}
_GIVEN = {"given": 1}


def _linear(m: Match) -> int:
    if not m.attrs["given"]:
        return 0
    x, weight, bias = m.op.operands
    types = types_of(m.op.operands)
    for k, type_ in enumerate(types[:2]):
        if not isinstance(type_, TensorType) or not type_.is_complete:
            return left_whole(m, Reason(Kind.UNKNOWN_OPERAND, operand=k))
    if is_rounded_once(types):
        return left_whole(m, ROUNDED_ONCE)
    rank = len(types[1].shape)  # type: ignore[union-attr, arg-type]
    if rank not in (1, 2):
        return left_whole(m, Reason(Kind.TYPES, detail=f"a weight of rank {rank}"))
    turned: tuple[Type, ...] = ()
    try:
        if rank == 2:
            turned = Transpose.infer([types[1]], _TURNED)
        (product_type,) = Matmul.infer([types[0], *(turned or types[1:2])], {})
        (sum_type,) = AddOptional.infer([product_type, types[2]], _GIVEN)
    except ProfuseError as error:
        return left_whole(m, Reason(Kind.TYPES, detail=error.what))  # running it is where that is reported
    if turned:
        weight = create(Transpose, [weight], _TURNED, turned, m.op).results[0]
    product = create(Matmul, [x, weight], {}, [product_type], m.op)
    total = create(AddOptional, [*product.results, bias], _GIVEN, [type_in_place_of(m.op.results[0], sum_type)], m.op)
    replace(m.op, list(total.results))
    return 1


@register_pass
@dataclass(frozen=True)
class SplitLinear(PatternPass):
    """``linear`` with a bias into a product with the turned weight and an optional sum.

    One whose operands' sizes are not all known, or whose weight is of another rank than 1 or 2,
    stays whole, with the reason; so does one of 16-bit floats, which are rounded after the bias has
    been added. What was seen of the strides of the result is forgotten.
    """

    name: ClassVar[str] = "split-linear"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("ops-split", (LinearMap,), _linear),)
