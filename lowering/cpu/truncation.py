"""Floats that become ints of Python, on x86-64: one instruction converts them, and tells if it can.

What `int` does with a float is two tests elsewhere: that the run ends unless the float is below
2**62, and what NumPy makes of others. The instruction gives -2**63 for a float that has no int of
64 bits; so its result is all that is looked at.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import walk
from ..linalg.element import emit, int_type
from ..linalg.loop_builder import ASSERT

_INSTRUCTION = "llvm.x86.sse2.cvttsd2si64"
_NONE = -(2**63)  # the result of a float without an int
_OLT, _NE = 4, 1  # of the predicates of ``arith.cmpf`` and ``arith.cmpi``


def truncate_at_once(module: ir.Module) -> None:
    """Have ints that end the run if there is none be made by x86-64's instruction."""
    with ir.Location.unknown(module.context):
        for op in [op for op in walk(module.operation) if op.name == "arith.fptosi"]:
            if isinstance(op.operands[0].type, ir.F64Type) and op.results[0].type == int_type(64):
                _truncate(op)


def _truncate(convert: ir.Operation) -> None:
    number, result = convert.operands[0], convert.results[0]
    sizes = [op.results[0] for op in _readers(number, "math.absf")]
    tests = [op.results[0] for size in sizes for op in _readers(size, "arith.cmpf")]
    before = _before(convert)
    for test in tests:
        readers = [use.owner.operation for use in test.uses]
        if not _is_below(test, 2.0**62) or [op.name for op in readers] != [ASSERT]:
            continue
        (assertion,) = readers
        if assertion not in before:
            continue
        with ir.InsertionPoint(assertion):
            integer, none = _instruction(number), _constant(_NONE)
            predicate = ir.IntegerAttr.get(int_type(64), _NE)
            assertion.operands[0] = emit("arith.cmpi", int_type(1), integer, none, predicate=predicate)
        for choice in _readers(result, "arith.select"):
            condition, one, other = choice.operands
            is_known = any(condition == t and _is_below(t, 2.0**63) for t in tests)
            if is_known and one == result and _is_constant(other, _NONE):
                choice.results[0].replace_all_uses_with(integer)
        result.replace_all_uses_with(integer)
        return


def _readers(value: ir.Value, name: str) -> list[ir.Operation]:
    owners = [use.owner.operation for use in value.uses]
    return [op for op in owners if op.name == name]


def _before(op: ir.Operation) -> list[ir.Operation]:
    """The operations that stand before one in its block."""
    operations: list[ir.Operation] = []
    for view in op.block.operations:
        if view.operation == op:
            break
        operations.append(view.operation)
    return operations


def _is_below(truth: ir.Value, limit: float) -> bool:
    """True if a comparison asks that its first operand be below a number."""
    test = truth.owner.operation
    bound = test.operands[1]
    if ir.IntegerAttr(test.attributes["predicate"]).value != _OLT:
        return False
    if isinstance(bound, ir.BlockArgument) or bound.owner.name != "arith.constant":
        return False
    return ir.FloatAttr(bound.owner.attributes["value"]).value == limit


def _is_constant(value: ir.Value, number: int) -> bool:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    return ir.IntegerAttr(value.owner.attributes["value"]).value == number


def _instruction(number: ir.Value) -> ir.Value:
    pair, zero = ir.VectorType.get([2], number.type), _constant(0)
    vector = emit("llvm.insertelement", pair, emit("llvm.mlir.poison", pair), number, zero)
    return emit(
        "llvm.call_intrinsic",
        int_type(64),
        vector,
        intrin=ir.StringAttr.get(_INSTRUCTION),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0]),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
    )


def _constant(number: int) -> ir.Value:
    type_ = int_type(64)
    return emit("arith.constant", type_, value=ir.IntegerAttr.get(type_, number))
