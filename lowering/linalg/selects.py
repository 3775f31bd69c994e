"""Branches that are none in kernels: both sides are computed, or one comparison does for two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlir import ir

from ...dialect.ir.dtypes import I64, U64
from ...dialect.ir.op import Op
from ...dialect.ir.program import Instr
from ...dialect.ir.types import ScalarType
from ...dialect.ops.create import Constant
from ...dialect.ops.elementwise.binary import Add, FloorDiv, Mul, Sub
from ...dialect.ops.elementwise.compare import Ge, Gt, Le, Lt
from ...dialect.ops.elementwise.unary import Neg
from .division import power_of_two
from .element import emit
from .scalar import Scalar

if TYPE_CHECKING:
    from .scf import LoopEnvironment

_LITTLE = 4  # operations on both sides of a branch, beside which a misprediction is long


def is_little(env: LoopEnvironment, instr: Instr) -> bool:
    """True if both sides of a branch only compute a few ints, of which some may leave 64 bits.

    A CPU that has predicted the wrong side loses more than the other side takes. Without ways out
    of the run LLVM sees to that itself.
    """
    inner = [i for block in instr.blocks for i in block.instrs if i.op is not Constant]
    values = [*instr.results, *(r for i in inner for r in i.results)]
    return (
        len(inner) <= _LITTLE
        and all(isinstance(env.function.type_of(v), ScalarType) for v in values)
        and all(i.op in (Add, Sub, Mul, Neg, FloorDiv) for i in inner)
        and all(_is_shift(env, i) for i in inner if i.op is FloorDiv)
        and any(i.results[0] not in env.ranges.bounded for i in inner)
    )


def _is_shift(env: LoopEnvironment, division: Instr) -> bool:
    divisor = _known(env, division.operands[1])
    return isinstance(divisor, int) and power_of_two(divisor) is not None


def _known(env: LoopEnvironment, value: int) -> Any:
    return getattr(env.types.get(value), "value", None)


def parity(condition: ir.Value) -> tuple[ir.Value, bool]:
    """A condition, and False; of one that an int is even, that it is odd, and True.

    LLVM makes fewer steps of a choice by the last bit itself than by its comparison with 0, in the
    chain that the next round waits for.
    """
    test = _made_by("arith.cmpi", condition)
    if test is not None and ir.IntegerAttr(test.attributes["predicate"]).value == _EQ:
        bit = _made_by("arith.andi", test.operands[0])
        if bit is not None and _is_number(test.operands[1], 0) and _is_number(bit.operands[1], 1):
            return emit("arith.trunci", condition.type, bit.operands[0]), True
    return condition, False


_EQ = 0  # of the predicates of ``arith.cmpi``


def _made_by(name: str, value: ir.Value) -> ir.Operation | None:
    op = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    return op if op is not None and op.name == name else None


def _is_number(value: ir.Value, number: int) -> bool:
    op = _made_by("arith.constant", value)
    return op is not None and ir.IntegerAttr(op.attributes["value"]).value == number


def is_within(env: LoopEnvironment, instr: Instr) -> Scalar | None:
    """The result of ``0 <= k < n``, or of ``k < 0 or k >= n``, if a branch is that.

    One comparison of unsigned numbers does: of a negative n, 0 takes the place.
    """
    first = env.compared.get(instr.operands[0])
    if first is None or len(instr.results) != 1:
        return None
    outside = False
    number = _operand(env, first, Ge, Le, 0)
    if number is None:
        outside = True
        number = _operand(env, first, Lt, Gt, 0)
    if number is None:
        return None
    side, other = instr.blocks[::-1] if outside else instr.blocks
    inner = [i for i in side.instrs if i.op is not Constant]
    if len(inner) != 1 or list(side.outputs) != [inner[0].results[0]]:
        return None
    constants = {i.results[0]: i.attrs.get("value") for i in (*side.instrs, *other.instrs)}
    (result,) = other.outputs
    if not all(i.op is Constant for i in other.instrs):
        return None
    if constants.get(result, _known(env, result)) is not outside:
        return None
    (second,) = inner
    ops = (Ge, Le) if outside else (Lt, Gt)
    bound = next(
        (
            second.operands[1 - place]
            for place, op in enumerate(ops)
            if second.op is op and second.operands[place] == number
        ),
        None,
    )
    if bound is None or bound not in env.values:
        return None
    if not _is_int(env, number) or not _is_int(env, bound):
        return None
    b = env.builder
    k, n = b.scalar(env.values[number]).cast(I64), b.scalar(env.values[bound]).cast(I64)
    condition = Scalar(k.value, U64) < Scalar(n.maximum(0).value, U64)
    return ~condition if outside else condition


def _operand(env: LoopEnvironment, compared: Instr, op: type[Op], swapped: type[Op], constant: int) -> int | None:
    """The value that is compared with a known int, by this comparison."""
    a, b = compared.operands
    if compared.op is op and _known(env, b) == constant:
        return a
    if compared.op is swapped and _known(env, a) == constant:
        return b
    return None


def _is_int(env: LoopEnvironment, value: int) -> bool:
    type_ = env.types.get(value)
    return isinstance(type_, ScalarType) and type_.dtype is I64
