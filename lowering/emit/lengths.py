"""Lengths of complex numbers that are compared with a number: no root is taken.

A root that is rounded correctly grows with its argument. So there is one number from which on the
sum of squares has a root of at least, or of more than, the number that lengths are compared with:
`abs(z) < 2` is a comparison of `z.real**2 + z.imag**2`, and has the bits that it has with a root.
"""

from __future__ import annotations

import ctypes
import math
import struct

from mlir import ir

from ...dialect.mlir.rewrite import walk
from ..linalg.element import LENGTH, SQUARES, emit
from ..schedule.graph import definition

_OGT, _OGE, _OLT, _OLE = 2, 3, 4, 5  # predicates of arith.cmpf
_SWAPPED = {_OGT: _OLT, _OGE: _OLE, _OLT: _OGT, _OLE: _OGE}
# Outside of it, the squares of a length as large may have left the range of f64.
_RANGE = 1e-100, 1e100


def compare_squares(function: ir.Operation) -> None:
    """Rewrite the comparisons of lengths with constants, where nothing else asks for a length."""
    for length in [op for op in walk(function) if LENGTH in op.attributes]:
        users = [use.owner.operation for use in length.results[0].uses]
        comparisons = [_comparison(user, length) for user in users]
        squares, infinite = _parts(length)
        if squares is None or infinite is None or not all(comparisons):
            continue
        for user, comparison in zip(users, comparisons, strict=True):
            assert comparison is not None
            _rewrite(user, *comparison, squares, infinite)


def _comparison(user: ir.Operation, length: ir.Operation) -> tuple[int, float] | None:
    """The predicate of a comparison, and the number, if a length is compared with one."""
    if user.name != "arith.cmpf":
        return None
    predicate = ir.IntegerAttr(user.attributes["predicate"]).value
    one, other = user.operands
    if one != length.results[0]:
        one, other, predicate = other, one, _SWAPPED.get(predicate, predicate)
    constant = definition(other)
    if predicate not in _SWAPPED or constant is None or constant.name != "arith.constant":
        return None
    number = ir.FloatAttr(constant.attributes["value"]).value
    return (predicate, number) if _RANGE[0] <= number <= _RANGE[1] else None


def _parts(length: ir.Operation) -> tuple[ir.Value | None, ir.Value | None]:
    """The sum of squares that a length is the root of, and whether a part is infinite."""
    squares = infinite = None
    waiting = [length]
    while waiting:
        op = waiting.pop()
        if SQUARES in op.attributes:
            squares = op.results[0]
        elif op.name in _CHAIN:
            if op.name == "arith.select" and _is_infinity(op.operands[1]):
                infinite = op.operands[0]
            waiting += [producer for producer in map(definition, op.operands) if producer is not None]
    return squares, infinite


# What `complexes.hypot` puts between a length and the sum of squares. The scaled sum under the root
# is not of it: beyond that are the parts of the number, which may come from other lengths.
_CHAIN = ("arith.truncf", "arith.mulf", "arith.select", "arith.cmpf", "arith.xori", "math.sqrt")


def _is_infinity(value: ir.Value) -> bool:
    op = definition(value)
    if op is None or op.name != "arith.constant" or not isinstance(value.type, ir.F64Type):
        return False
    return ir.FloatAttr(op.attributes["value"]).value == math.inf


def _rewrite(user: ir.Operation, predicate: int, number: float, squares: ir.Value, infinite: ir.Value) -> None:
    is_f32 = isinstance(user.operands[0].type, ir.F32Type)
    limit = _least(number, predicate in (_OGT, _OLE), is_f32)
    is_less = predicate in (_OLT, _OLE)
    i64 = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(user), user.location:
        bound = emit("arith.constant", squares.type, value=ir.FloatAttr.get(squares.type, limit))
        code = ir.IntegerAttr.get(i64, _OLT if is_less else _OGE)
        condition = emit("arith.cmpf", user.results[0].type, squares, bound, predicate=code)
        if not is_less:  # beside NaN, too
            condition = emit("arith.ori", user.results[0].type, condition, infinite)
    user.results[0].replace_all_uses_with(condition)
    user.erase()


def _least(number: float, more: bool, is_f32: bool) -> float:
    """The least sum of squares whose root is at least ``number``, or more than it."""

    def reaches(squares: float) -> bool:
        root = math.sqrt(squares)
        if is_f32:
            root = ctypes.c_float(root).value
        return root > number if more else root >= number

    low, high = _bits(0.0), _bits(math.inf)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(_float(middle)) else (middle, high)
    return _float(high)


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])
