"""Constants that LLVM does not see, where it would take an extremum's loop apart.

LLVM makes ``select(c, acc, max(acc, x))`` of ``max(acc, select(c, -inf, x))``, since a maximum with
-inf is the other number. The first form is a recurrence that its vectoriser does not know, so the
loop would have no SIMD code. It does the like with a NaN, with the least and the largest integer,
and with what it computes of constants first, as in ``max(acc, -select(c, inf, x))``.

So the constants among which selects choose for an accumulated extremum come out of a fence in
front of the loop. That is no instruction; LLVM only does not know the number behind it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

from mlir import ir

from ...dialect.mlir.nesting import is_inside
from ...dialect.mlir.rewrite import ops_in, walk
from ..linalg.element import emit, int_type
from ..schedule.graph import definition

_EXPONENT = 52  # where the exponent of an f64 begins
_FENCE = "llvm.arithmetic.fence"
_EXTREMA = frozenset(f"arith.{word}{kind}" for word in ("max", "min") for kind in ("imumf", "numf", "si", "ui"))
_PURE = ("arith.", "math.")


def hide_constants(module: ir.Module) -> None:
    """Hide the constants that selects give to extrema which loops of a module accumulate."""
    for loop in [op for op in walk(module.operation) if op.name == "scf.for"]:
        if any(op.name == "scf.for" for op in walk(loop)):
            continue
        hidden: dict[tuple[ir.Operation, ir.Attribute], ir.Value] = {}
        for select in _selects(_accumulated(loop)):
            place = loop if is_inside(select.results[0], loop) else select
            for constant in map(definition, list(select.operands)[1:]):
                if not _is_number(constant):
                    continue
                key = place, constant.attributes["value"]
                if key not in hidden:
                    with ir.InsertionPoint(place), loop.location:
                        hidden[key] = _hidden(constant.clone().results[0])
                bounding = _bounding(select)
                if bounding is not None and is_inside(bounding.results[0], loop):
                    _replace(bounding, key[1], hidden[key])
                _replace(select, key[1], hidden[key])


def _replace(op: ir.Operation, number: ir.Attribute, value: ir.Value) -> None:
    """Use a value where an operation uses a constant of this number."""
    for k, operand in enumerate(op.operands):
        constant = definition(operand)
        if _is_number(constant) and constant.attributes["value"] == number:
            op.operands[k] = value


def _accumulated(loop: ir.Operation) -> list[ir.Operation]:
    """The extrema of an innermost loop that depend on the round before.

    That has left a value which the loop carries, or in memory at a place that all rounds write.
    """
    block = loop.regions[0].blocks[0]
    inside = ops_in(block)
    places = [list(op.operands)[1:] for op in inside if op.name == "memref.store"]
    earlier = set(list(block.arguments)[1:])
    extrema = []
    for op in inside:
        is_kept = op.name == "memref.load" and list(op.operands) in places
        if is_kept and not any(is_inside(v, loop) for v in op.operands):
            earlier.add(op.results[0])
        elif any(v in earlier for v in op.operands):
            earlier.update(op.results)
            if op.name in _EXTREMA:
                extrema.append(op)
    return extrema


def _selects(readers: Iterable[ir.Operation]) -> list[ir.Operation]:
    """The selects that LLVM may take operations into, since nothing else reads the choice."""
    waiting = [v for op in readers for v in op.operands]
    selects: list[ir.Operation] = []
    while waiting:
        op = definition(value := waiting.pop())
        if op is None or not op.name.startswith(_PURE) or len(_readers(value)) > 1:
            continue
        if op.name == "arith.select":
            selects.append(op)
        waiting += list(op.operands)[op.name == "arith.select" :]
    return selects


def _readers(value: ir.Value) -> set[ir.Operation]:
    """The operations that read a value, without those whose results nothing reads."""
    readers = {use.owner.operation for use in value.uses}
    return {op for op in readers if not op.results or any(True for r in op.results for _ in r.uses)}


def _bounding(select: ir.Operation) -> ir.Operation | None:
    """The comparison of a number with a bound, of which a select chooses one: so LLVM sees a bound."""
    comparison = definition(select.operands[0])
    if comparison is not None and comparison.name == "arith.cmpi":
        byte = definition(comparison.operands[0])
        if byte is not None and byte.name == "arith.extui":  # a truth as arrays have it
            comparison = definition(byte.operands[0])
    if comparison is None or comparison.name not in ("arith.cmpf", "arith.cmpi"):
        return None
    compared = list(comparison.operands)
    chosen = [v for v in list(select.operands)[1:] if not _is_number(definition(v))]
    return comparison if any(v in compared for v in chosen) else None


def _is_number(op: ir.Operation | None) -> bool:
    """True if an operation is a constant, and no truth: LLVM makes logic of choices of these."""
    if op is None or op.name != "arith.constant":
        return False
    type_ = op.results[0].type
    return isinstance(type_, (ir.IntegerType, ir.FloatType)) and type_.width > 1


def _hidden(constant: ir.Value) -> ir.Value:
    """The same number, which LLVM does not know. Its bits pass the fence as those of an f64."""
    type_, i64, f64 = constant.type, int_type(64), ir.F64Type.get()
    bits = int_type(type_.width)
    flipped = emit("arith.constant", i64, value=ir.IntegerAttr.get(i64, _flipped(constant)))
    number = _cast("arith.extui", i64, _cast("arith.bitcast", bits, constant))
    number = emit("arith.xori", i64, number, flipped)
    fenced = emit(
        "llvm.call_intrinsic",
        f64,
        emit("arith.bitcast", f64, number),
        intrin=ir.StringAttr.get(_FENCE),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0]),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
    )
    number = emit("arith.xori", i64, emit("arith.bitcast", i64, fenced), flipped)
    return _cast("arith.bitcast", type_, _cast("arith.trunci", bits, number))


def _flipped(constant: ir.Value) -> int:
    """The bits to flip for an f64 that is not 0 or infinite: of these, LLVM knows fenced ones."""
    value = definition(constant).attributes["value"].value
    if isinstance(value, float):
        is_usual = constant.type.width == 64 and sys.float_info.min <= abs(value) < math.inf
    else:
        is_usual = value >> _EXPONENT & 0x7FF not in (0, 0x7FF)
    return 0 if is_usual else 1 << 62  # of the exponent


def _cast(name: str, type_: ir.Type, value: ir.Value) -> ir.Value:
    return value if value.type == type_ else emit(name, type_, value)
