"""Kernels in which a thread may find that the run is void: it sets a flag, and ends."""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import ops_in, walk
from ..linalg.element import emit, int_type
from ..linalg.loop_builder import ASSERT

FLAG = "profuse.flag"  # of a kernel: the number of the parameter that is the flag's memory


def end_void_threads(kernel: ir.Operation) -> None:
    """Put branches in the place of assertions, in a kernel without structured control flow.

    Memory is passed as pointers by now.
    Threads that end wait for no others: kernels with assertions have no barriers.
    """
    if FLAG not in kernel.attributes:
        return
    body = kernel.regions[0]
    entry = body.blocks[0]
    flag = entry.arguments[ir.IntegerAttr(kernel.attributes[FLAG]).value]
    del kernel.attributes[FLAG]
    with kernel.location:
        void = body.blocks.append()
        with ir.InsertionPoint(void):
            byte = int_type(8)
            true = emit("llvm.mlir.constant", byte, value=ir.IntegerAttr.get(byte, 1))
            ir.Operation.create("llvm.store", operands=[true, flag])
            ir.Operation.create("gpu.return")
    for op in [op for op in walk(kernel) if op.name == ASSERT]:
        block = op.block
        order = ops_in(block)
        behind = block.create_after()
        for later in order[order.index(op) + 1 :]:
            behind.append(later)
        with ir.InsertionPoint(op), op.location:
            ir.Operation.create(
                "cf.cond_br",
                operands=[op.operands[0]],
                successors=[behind, void],
                attributes={
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
                    "branch_weights": ir.DenseI32ArrayAttr.get([_USUAL, 1]),
                },
            )
        op.erase()


_USUAL = 1 << 16
