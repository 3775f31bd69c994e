"""Arithmetic on Python's numbers inside of loops. Python's ints do not wrap: a run in which one
leaves 64 bits is void.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.dtypes import BOOL, F64, I64, U64
from ...dialect.ir.op import Attrs, Op
from ...dialect.ir.types import ScalarType, Type
from ...dialect.mlir.nesting import is_inside
from ...dialect.ops.control_flow.native import raises_for_infinities
from ...dialect.ops.elementwise.binary import Add, Div, FloorDiv, Mul, Sub
from ...dialect.ops.elementwise.compare import Compare, ShiftLeft
from ...dialect.ops.elementwise.powers import Pow
from ...dialect.ops.elementwise.unary import Abs, Neg
from .element import emit, int_type, storage_type
from .loop_builder import LoopBuilder
from .scalar import Scalar, constant

_EXACT = 2**53  # ints up to here are floats of 64 bits


def lower_number(
    b: LoopBuilder,
    op: type[Op],
    attrs: Attrs,
    types: tuple[Type, ...],
    operands: Sequence[Type],
    args: Sequence[Any],
    bounded: bool = False,
    near: Sequence[bool] = (),
) -> Any:
    """The number that an op computes of numbers; a run in which Python may raise is void.

    ``bounded``: an int is known to stay within 64 bits (`Ranges.bounded`). ``near``: which operands
    are known to stay within 2**61.
    Raises LoweringError where that cannot be told from the number.
    """
    result, reason = types[0], op.can_lower_types(operands, attrs)
    assert isinstance(result, ScalarType)
    if reason is not None:
        if not raises_for_infinities(reason, result):
            raise LoweringError(f"{op.full_name()} {reason.why}")
        number = b.scalar(op.lower(b, attrs, types, *args))  # type: ignore[arg-type]
        b.note(~number.isfinite())
        return number
    ints = [t.dtype.is_int or t.dtype.kind == "b" for t in operands if isinstance(t, ScalarType)]
    if len(ints) == len(args) and all(ints):
        numbers = [b.scalar(x).cast(I64) for x in args]
        if result.dtype is I64 and op in (Add, Sub, Mul, Neg):
            if op in (Add, Sub) and not bounded:
                bounded = any(is_near and _is_near_before(b, numbers[1 - place]) for place, is_near in enumerate(near))
            return (_unchecked if bounded else _checked)(b, op, *numbers)
        if op is Div:
            for x in numbers:
                b.note((x > _EXACT) | (x < -_EXACT))
        if op is FloorDiv and not bounded:
            b.note(numbers[0].eq(-(2**63)))
        if op in (ShiftLeft, Pow, Abs) and result.dtype is I64:
            b.note(_is_too_large(op, numbers, operands))
    elif issubclass(op, Compare) and any(ints):
        # Python compares an int with a float as they are; here the int becomes a float.
        for x, type_, is_int in zip(args, operands, ints, strict=True):
            if is_int and type_.value is None:  # type: ignore[union-attr]
                number = b.scalar(x).cast(I64)
                b.note((number > _EXACT) | (number < -_EXACT))
    return op.lower(b, attrs, types, *args)


def _is_too_large(op: type[Op], numbers: Sequence[Scalar], operands: Sequence[Type]) -> Scalar:
    """True where a shift, a power or an absolute value of an i64 leaves 64 bits."""
    x = numbers[0]
    if op is Abs:
        return x.eq(-(2**63))
    exponent = getattr(operands[1], "value", None)
    if not isinstance(exponent, int) or exponent < 0:
        raise LoweringError(f"{op.full_name()} of ints by one that is known at run time only")
    if op is ShiftLeft:
        return x.shl(exponent).shr(exponent).ne(x)
    if exponent < 2:
        return constant(False, BOOL)
    most = _root(2**63 - 1, exponent)
    least = -_root(2**63, exponent) if exponent % 2 else -most
    return (x > most) | (x < least)


def _root(number: int, degree: int) -> int:
    """The largest int whose power of this degree is no larger than a number."""
    root = 0
    for bit in reversed(range(64 // degree + 1)):
        if (root | 1 << bit) ** degree <= number:
            root |= 1 << bit
    return root


def _is_near_before(b: LoopBuilder, x: Scalar) -> bool:
    """True if an int is made before the loop around; the run ends there if it exceeds 2**62."""
    loop = b.loop_around
    if loop is None or is_inside(x.value, loop):
        return False
    with ir.InsertionPoint(loop):
        b.end_if((x > 2**62) | (x < -(2**62)))
    return True


def _unchecked(b: LoopBuilder, op: type[Op], x: Scalar, y: Scalar | None = None) -> Scalar:
    if y is None:
        return -x
    return x + y if op is Add else x - y if op is Sub else x * y


def _checked(b: LoopBuilder, op: type[Op], x: Scalar, y: Scalar | None = None) -> Scalar:
    """A sum, a difference or a product of two i64."""
    if y is None:
        x, y, op = x.const(0), x, Sub
    line = _line(b, op, x, y)
    if line is not None:
        # Waiting for the result would take longer than looking at what it is made of.
        b.note(_leaves(*line))
        result = _unchecked(b, op, x, y)
        b.lines[result.value] = line
        return result
    if not b.is_straight:
        return _ending(b, _WITH_OVERFLOW[op], x, y)
    if op is Mul:
        wide = x.cast(F64) * y.cast(F64)
        b.note(~(abs(wide) < 2.0**62))
        return x * y
    result = x + y if op is Add else x - y
    # The operands have, or have not, the same sign, and the result has the other one.
    signs = (x ^ result) & (y ^ result) if op is Add else (x ^ y) & (x ^ result)
    b.note(signs < 0)
    return result


def _line(b: LoopBuilder, op: type[Op], x: Scalar, y: Scalar) -> tuple[Scalar, tuple[int, int], int, int] | None:
    """A result as number * factor + addend, if it is known to be so for a factor other than 1.

    The number is given with its ends.
    """
    if op is not Sub and isinstance(x.known, int):
        x, y = y, x
    if not isinstance(y.known, int):
        return None
    ends = b.within.get(x.value, (-(2**63), 2**63 - 1))
    base, ends, factor, addend = b.lines.get(x.value, (x, ends, 1, 0))
    if op is Mul:
        factor, addend = factor * y.known, addend * y.known
    else:
        addend += y.known if op is Add else -y.known
    return (base, ends, factor, addend) if factor not in (0, 1) else None


def _leaves(x: Scalar, ends: tuple[int, int], factor: int, addend: int) -> Scalar:
    """True where x * factor + addend leaves 64 bits; x is within the ends, and the factor not 0."""
    limits = (-(2**63) - addend, 2**63 - 1 - addend)
    least, most = limits if factor > 0 else reversed(limits)
    low, high = max(-(least // -factor), -(2**63)), min(most // factor, 2**63 - 1)
    if low > high:
        return constant(True, BOOL)
    if ends[0] >= low:
        return x > high
    if ends[1] <= high:
        return x < low
    return Scalar((x - low).value, U64) > high - low


_WITH_OVERFLOW: dict[type[Op], str] = {Add: "sadd", Sub: "ssub", Mul: "smul"}


def _ending(b: LoopBuilder, word: str, x: Scalar, y: Scalar) -> Scalar:
    """The result of an operation that ends the run where it leaves 64 bits."""
    types = [storage_type(I64), int_type(1)]
    pair = ir.Type.parse("!llvm.struct<(i64, i1)>")
    result = emit(f"llvm.intr.{word}.with.overflow", pair, x.value, y.value)
    value, over = (
        emit("llvm.extractvalue", type_, result, position=ir.DenseI64ArrayAttr.get([number]))
        for number, type_ in enumerate(types)
    )
    b.end_if(Scalar(over, BOOL))
    return Scalar(value, I64)
