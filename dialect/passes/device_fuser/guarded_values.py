"""Comparisons of the values of a run with those that groups are made for, beside their guards (R3.38 to R3.40)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlir import ir

from ...errors import InternalError
from ...ir.op import Op
from ...ir.program import Block, Instr, Program
from ...ir.types import BOOL_SCALAR, Type
from ...mlir.decode import decode_function
from ...mlir.decoded_module import DecodedModule
from ...ops.control_flow.control import If
from ...ops.create import Constant
from ...ops.late import Late
from ...ops.size_lists import AllTrue, BoolXor, SizeEq, ValueEq, ViewGuard
from ...ops.speculation import FallbackGraph
from ...reasons import Reason
from .shape_expressions import ShapeExpressions
from .speculated_values import ValueCheck


def insert_value_checks(module: ir.Module, speculated: Mapping[str, Sequence[ValueCheck]]) -> None:
    """Have guarded groups ask for values of the run as well.

    Args:
        module: where the groups are behind guards.
        speculated: name of the fallback of a group -> what has to be compared.
    """
    if not speculated:
        return
    graphs = DecodedModule(module)
    for name in list(graphs.with_ops(FallbackGraph)):
        program = graphs[name]
        for block, branch, call in list(_fallbacks(program.body)):
            checks = speculated.get(call.attrs["callee"])
            if checks:
                _insert(program, block, branch, call, graphs[call.attrs["callee"]], checks)
                graphs.mark(name)
    graphs.store()


def unexpressed_sizes(fallback: ir.Operation, checks: Sequence[ValueCheck]) -> Reason | None:
    """The reason why sizes that a check compares with do not follow from the operands of a group; None if they do."""
    body = decode_function(fallback)
    caller = Program("caller", Block(tuple(range(len(body.inputs)))), count=len(body.inputs) + len(body.outputs))
    call = Instr(FallbackGraph, caller.inputs, tuple(range(len(body.inputs), caller.count)))
    sizes = ShapeExpressions.before(caller, call, body)
    lates = [instr for instr in body.body.walk() if instr.op is Late]
    viewed = [lates[check.late].operands[0] for check in checks if check.late >= 0]
    return next((sizes.reason(value) for value in viewed if sizes.of(value) is None), None)


def _fallbacks(block: Block) -> Iterator[tuple[Block, Instr, Instr]]:
    """Each call of a fallback in a branch, with the branch and the block that this is in."""
    for instr in block.instrs:
        for inner in instr.blocks:
            if instr.op is If:
                yield from ((block, instr, call) for call in inner.instrs if call.op is FallbackGraph)
            yield from _fallbacks(inner)


def _insert(
    program: Program, block: Block, branch: Instr, call: Instr, body: Program, checks: Sequence[ValueCheck]
) -> None:
    sizes = ShapeExpressions.before(program, call, body)
    lates = [instr for instr in body.body.walk() if instr.op is Late]
    instrs: list[Instr] = []
    asked: list[int] = []

    def emit(op: type[Op], operands: Sequence[int], type_: Type = BOOL_SCALAR, **attrs: object) -> int:
        result = program.new_value(type_)
        instrs.append(Instr(op, tuple(operands), (result,), attrs, loc=call.loc))
        return result

    conditions = []
    for check in checks:
        value = call.operands[check.operand]
        if check.kind == "bool":
            profiled, true = (emit(Constant, [], value=number) for number in (check.value, True))
            conditions.append(emit(BoolXor, [emit(BoolXor, [value, profiled]), true]))
        elif check.kind == "value":
            conditions.append(emit(ValueEq, [value], value=check.value))
        else:
            own = sizes.of(lates[check.late].operands[0])
            if own is None:
                raise InternalError(str(sizes.reason(lates[check.late].operands[0])), loc=call.loc)
            asked.append(own)
            if check.kind == "view":
                conditions.append(emit(ViewGuard, [own, value], constraint=check.constraint))
            else:
                conditions.append(emit(SizeEq, [value, own], reference=tuple(check.value or ())))
    at = next(n for n, instr in enumerate(block.instrs) if instr is branch)
    (answer,) = branch.operands
    passed = emit(AllTrue, [*conditions, answer])
    block.instrs[at:at] = [*sizes.instrs(asked), *instrs]
    branch.operands = (passed,)
