"""The notes by which a run is void: a thread that finds so ends, whichever way the function notes it.

Loops that CPUs run as vectors have no way out: they note in a byte what is forbidden, and the byte
is tested behind them. A thread that computes one round has nothing to gain from that.
"""

from __future__ import annotations

from mlir import ir

from ....dialect.mlir.rewrite import walk
from ...linalg.element import emit, int_type
from ...linalg.loop_builder import ASSERT, NOTED
from ...stages import run_passes

_SIMPLIFY = "builtin.module(func.func(mem2reg),lower-affine,canonicalize,cse)"
_EQUAL = 0


def settle_flag(module: ir.Module, func: ir.Operation, flag: ir.Value | None) -> None:
    """Have assertions alone tell that a run is void, and simplify the function.

    ``flag`` is the memory in which the function says that its run is void; it is not written any
    more: that is left to whoever lowers the assertions.
    """
    cells = [op.results[0] for op in walk(func) if NOTED in op.attributes]
    for cell in (*cells, *([] if flag is None else [flag])):
        for op in [use.owner.operation for use in cell.uses]:
            with ir.InsertionPoint(op), op.location:
                _settle(op)
            op.erase()
    run_passes(_SIMPLIFY, module, "loops on memory do not simplify")


def _settle(op: ir.Operation) -> None:
    """Put what an access of the byte means before it."""
    byte = int_type(8)
    zero = emit("arith.constant", byte, value=ir.IntegerAttr.get(byte, 0))
    if op.name == "memref.load":  # a thread that has noted something does not come here
        op.results[0].replace_all_uses_with(zero)
        return
    predicate = ir.IntegerAttr.get(int_type(64), _EQUAL)
    holds = emit("arith.cmpi", int_type(1), op.operands[0], zero, predicate=predicate)
    ir.Operation.create(ASSERT, operands=[holds], attributes={"msg": ir.StringAttr.get("void")})
