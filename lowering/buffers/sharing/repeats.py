"""While loops that surely end: a number steps towards a bound that does not move.

In a void run, others might go on for ever, though Python would not have come to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from ....dialect.mlir.nesting import is_inside
from ....dialect.mlir.rewrite import terminator_of
from .linear import constant_of

_NE, _SLT, _SLE, _SGT, _SGE = 1, 2, 3, 4, 5  # of arith.cmpi
_MIRRORED = {_SLT: _SGT, _SLE: _SGE, _SGT: _SLT, _SGE: _SLE}
_STEPS = {"arith.addi": 1, "llvm.intr.sadd.with.overflow": 1, "arith.subi": -1, "llvm.intr.ssub.with.overflow": -1}


def ends_surely(loop: ir.Operation) -> bool:
    """True if an ``scf.while`` ends whatever its numbers are.

    It goes on only as long as a number that each round moves on by 1 has not reached a bound.
    """
    before, after = (region.blocks[0] for region in loop.regions)
    condition, *handed = terminator_of(before).operands
    yielded = list(terminator_of(after).operands)
    for op in _implied(condition):
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        a, b = op.operands
        for number, bound, sign in ((a, b, predicate), (b, a, _MIRRORED.get(predicate))):
            if sign not in (_SLT, _SGT) or not _is_argument(number, before):
                continue
            if is_inside(bound, loop):
                continue
            step = _step(yielded[number.arg_number], after, handed, number)
            if step == (1 if sign == _SLT else -1):
                return True
    return False


def _implied(condition: ir.Value) -> Iterator[ir.Operation]:
    """Comparisons of ints that hold where a condition does."""
    waiting = [condition]
    while waiting:
        value = waiting.pop()
        if isinstance(value, ir.BlockArgument):
            continue
        op = value.owner.operation
        if op.name == "arith.cmpi":
            is_flag = ir.IntegerAttr(op.attributes["predicate"]).value == _NE
            if is_flag and constant_of(op.operands[1]) == 0:
                waiting.append(op.operands[0])
            else:
                yield op
        elif op.name == "arith.extui":
            waiting.append(op.operands[0])
        elif op.name == "arith.andi" and str(value.type) == "i1":
            waiting += list(op.operands)
        elif op.name == "scf.if":
            number = ir.OpResult(value).result_number
            one, two = (terminator_of(r.blocks[0]).operands[number] for r in op.regions)
            if constant_of(two) == 0:
                waiting += [op.operands[0], one]
        elif op.name == "arith.select" and constant_of(op.operands[2]) == 0:
            waiting += list(op.operands)[:2]


def _step(value: ir.Value, after: ir.Block, handed: list[ir.Value], number: ir.Value) -> int | None:
    """By how much a round moves on what the loop carries; None = that is not known."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.operation
    if op.name == "llvm.extractvalue":
        if list(ir.DenseI64ArrayAttr(op.attributes["position"])) != [0]:
            return None
        aggregate = op.operands[0]
        if isinstance(aggregate, ir.BlockArgument):
            return None
        op = aggregate.owner.operation
    if op.name not in _STEPS:
        return None
    a, b = op.operands
    if constant_of(a) is not None and _STEPS[op.name] == 1:
        a, b = b, a
    constant = constant_of(b)
    if constant is None or not _is_argument(a, after) or handed[a.arg_number] != number:
        return None
    return constant * _STEPS[op.name]


def _is_argument(value: ir.Value, block: ir.Block) -> bool:
    return isinstance(value, ir.BlockArgument) and value.owner == block
