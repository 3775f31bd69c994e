"""Gradient blocks as branches on whether a gradient arrives (R1.24)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import IRError
from ...ir.types import BOOL_SCALAR, TensorType
from ...mlir.context import loc_of
from ...mlir.rewrite import YIELD, create, ops_in, replace, type_of, types_of, walk_backwards
from ...ops.control_flow.control import If
from ...ops.gradient_ops import AnyNonzero, AutogradZero, GradOf
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass


def _lower(m: Match) -> int:
    op, loc = m.op, m.op.location
    _check(op)
    test = create(AnyNonzero, list(op.operands), {}, [BOOL_SCALAR], op, loc)
    branch = create(If, list(test.results), {}, types_of(op.results), op, loc)
    then, other = (region.blocks.append() for region in branch.regions)
    *body, end = ops_in(op.regions[0].blocks[0])
    for inner in body:
        inner.detach_from_parent()
        then.append(inner)
    zeros = [create(AutogradZero, [], {}, [type_of(r)], other, loc).results[0] for r in op.results]
    for block, values in ((then, list(end.operands)), (other, zeros)):
        ir.Operation.create("scf.yield", operands=values, loc=loc, ip=ir.InsertionPoint(block))
    end.erase()
    replace(op, list(branch.results))
    return 1


@register_pass
@dataclass(frozen=True)
class LowerGradBlocks(PatternPass):
    """Make ``scf.if(any_nonzero(grads))`` of every ``grad_of``; its else block yields undefined.

    Raises IRError for a block that takes arguments or does not yield a tensor for each result.
    """

    name: ClassVar[str] = "lower-grad-blocks"
    patterns: ClassVar[Sequence[Pattern]] = (Pattern("blocks-lowered", (GradOf,), _lower),)
    order = staticmethod(walk_backwards)  # an outer block is moved as a whole


def _check(op: ir.Operation) -> None:
    blocks = list(op.regions[0].blocks)
    if len(blocks) != 1 or len(blocks[0].arguments):
        raise IRError("profuse.grad_of has one block, without arguments", loc=loc_of(op.location))
    ops = ops_in(blocks[0])
    end = ops[-1] if ops else None
    if end is None or end.name != YIELD:
        raise IRError(f"the block of profuse.grad_of must end in {YIELD}", loc=loc_of(op.location))
    yielded, result_types = [v.type for v in end.operands], [r.type for r in op.results]
    if yielded != result_types:
        shown = ", ".join(map(str, result_types))
        raise IRError(f"profuse.grad_of must yield ({shown})", loc=loc_of(end.location))
    for result in op.results:
        if not isinstance(type_of(result), TensorType):
            raise IRError(f"profuse.grad_of yields tensors, not {type_of(result)}", loc=loc_of(op.location))
