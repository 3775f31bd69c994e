"""Sums that are added up in an order of ours: what is fused with them is our choice, too.

LLVM fuses a product with a sum where both may be contracted and end up side by side: whether they
do depends on the vectors of the CPU. So additions are fused here, and carry no flags.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import walk
from ..schedule.graph import definition
from .loop_ops import EXPANDED, IN_ORDER, Ops

CONTRACT = "contract"


def settle_sums(ops: Ops, function: ir.Operation, exact: bool) -> None:
    """Fuse the marked additions of a function with products that only they read, on CPUs that can.

    ``exact``: none is fused.
    """
    for op in list(walk(function)):
        if EXPANDED in op.attributes:
            del op.attributes[EXPANDED]
        if IN_ORDER not in op.attributes:
            continue
        del op.attributes[IN_ORDER]
        op.attributes["fastmath"] = ops.rounded
        if ops.fused and not exact:
            _fuse(ops, op)


def _fuse(ops: Ops, add: ir.Operation) -> None:
    for number, value in enumerate(add.operands):
        product = definition(value)
        if product is None or product.name != "arith.mulf" or product.block != add.block:
            continue
        if CONTRACT not in str(product.attributes["fastmath"]) or _readers(value) > 1:
            continue
        with ir.InsertionPoint(add), add.location:
            a, b = product.operands
            fused = ops.create("math.fma", value.type, a, b, add.operands[1 - number])
        add.results[0].replace_all_uses_with(fused)
        add.erase()
        product.erase()
        return


def _readers(value: ir.Value) -> int:
    return sum(1 for _ in value.uses)
