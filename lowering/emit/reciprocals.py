"""Division by a loop-invariant value as multiplication by its reciprocal, rounded correctly.

``q = x * r; q - (q * s - x) * r`` with ``r = 1 / s`` and fused multiply-adds is the correctly
rounded quotient, if no intermediate value overflows or underflows (Markstein). In this order of
operations, it also keeps the sign of zeros for positive divisors. The loop is emitted twice, and a
test of the divisor before the loop selects the version. If the correction is NaN, ``q`` itself is
the result: infinity or NaN. If the numerator is so small that the remainder is subnormal, the
result may be off by one unit in the last place.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import ops_in
from ..schedule.graph import definition
from .loop_ops import Ops

_LIMIT = 80  # operations in a loop body up to which it is worth a second copy
# Divisors between 2**-n and 2**n have a normal reciprocal with room to spare.
_RANGE = {"f32": 60, "f64": 500}


def hoist_reciprocals(ops: Ops, function: ir.Operation) -> None:
    """Rewrite the innermost loops of a function that divide by invariant values."""
    for loop in _innermost(function.regions[0].blocks[0]):
        body = loop.regions[0].blocks[0]
        divisions = _divisions(body)
        if divisions:
            _version(ops, loop, divisions)


def _innermost(block: ir.Block) -> list[ir.Operation]:
    loops: list[ir.Operation] = []
    for op in ops_in(block):
        if op.name == "scf.for":
            inner = _innermost(op.regions[0].blocks[0])
            loops += inner or [op]
    return loops


def _divisions(body: ir.Block) -> list[int]:
    """Positions of divisions by values from outside the loop."""
    positions = []
    count = 0
    for count, view in enumerate(body.operations):
        op = view.operation
        if op.name != "arith.divf" or str(op.results[0].type) not in _RANGE:
            continue
        if _is_outside(op.operands[1], body) and not _is_outside(op.operands[0], body):
            positions.append(count)
    return positions if count <= _LIMIT else []


def _is_outside(value: ir.Value, body: ir.Block) -> bool:
    op = definition(value)
    return (value.owner if op is None else op.block) != body


def _version(ops: Ops, loop: ir.Operation, divisions: list[int]) -> None:
    body = ops_in(loop.regions[0].blocks[0])
    divisors = list(dict.fromkeys(body[k].operands[1] for k in divisions))
    unsure = [d for d in divisors if not _is_safe_constant(d)]
    with ir.InsertionPoint(loop), loop.location:
        if not unsure:
            _use_reciprocals(ops, loop, divisions)
            return
        safe = _in_range(ops, unsure[0])
        for divisor in unsure[1:]:
            safe = ops.create("arith.andi", ops.i1, safe, _in_range(ops, divisor))
        choice = ir.Operation.create("scf.if", results=[r.type for r in loop.results], operands=[safe], regions=2)
        for region, fast in zip(choice.regions, (True, False), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                copy = loop.clone(ir.InsertionPoint.current)
                ir.Operation.create("scf.yield", operands=list(copy.results))
            if fast:
                _use_reciprocals(ops, copy, divisions)
    for old, new in zip(loop.results, choice.results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _is_safe_constant(value: ir.Value) -> bool:
    op = definition(value)
    if op is None or op.name != "arith.constant":
        return False
    size = ir.FloatAttr(op.attributes["value"]).value
    limit = _RANGE[str(value.type)]
    return 2.0**-limit <= size <= 2.0**limit


def _in_range(ops: Ops, divisor: ir.Value) -> ir.Value:
    limit = _RANGE[str(divisor.type)]
    low = ops.float_constant(2.0**-limit, divisor.type)
    high = ops.float_constant(2.0**limit, divisor.type)
    # Ordered comparisons: NaN is out of range.
    above = ops.compare("oge", divisor, low)
    below = ops.compare("ole", divisor, high)
    return ops.create("arith.andi", ops.i1, above, below)


def _use_reciprocals(ops: Ops, loop: ir.Operation, divisions: list[int]) -> None:
    body = ops_in(loop.regions[0].blocks[0])
    reciprocals: dict[ir.Value, ir.Value] = {}
    for position in divisions:
        division = body[position]
        numerator, divisor = division.operands
        type_ = divisor.type
        if divisor not in reciprocals:
            with ir.InsertionPoint(loop), division.location:
                one = ops.float_constant(1.0, type_)
                reciprocals[divisor] = ops.create("arith.divf", type_, one, divisor)
        factor = reciprocals[divisor]
        with ir.InsertionPoint(division), division.location:
            quotient = ops.create("arith.mulf", type_, numerator, factor)
            negative = ops.create("arith.negf", type_, numerator)
            excess = ops.create("math.fma", type_, quotient, divisor, negative)
            negative = ops.create("arith.negf", type_, excess)
            better = ops.create("math.fma", type_, negative, factor, quotient)
            ordered = ops.compare("ord", better, better)
            result = ops.select(ordered, better, quotient)
        division.results[0].replace_all_uses_with(result)
        division.erase()
