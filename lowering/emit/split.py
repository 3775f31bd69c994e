"""Index-set splitting: splits loops at bounds with which their bodies compare the loop index.

The body of a concatenation compares the loop index with a bound to select the source array, and
reads both sources at clamped indices. After the split, each loop runs on one side of the bound: it
needs no comparison, and its reads are contiguous.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import walk
from ..schedule.graph import definition
from .base import Ops

_MAX_BOUNDS = 4  # largest number of bounds at which a loop is split
_MAX_SIZE = 600  # largest number of operations after splitting
_LESS = 2  # predicate slt of arith.cmpi
_CLAMPS = ("arith.minsi", "arith.maxsi")


def split_loops(ops: Ops, function: ir.Operation) -> None:
    """Split the loops of a function whose bodies compare the loop index with a fixed bound."""
    _visit(ops, function.regions[0].blocks[0])


def _visit(ops: Ops, block: ir.Block) -> None:
    for view in list(block.operations):
        op = view.operation
        if op.name != "scf.for":
            continue
        choices, size, clamped = _choices(op)
        if clamped and choices and size * (len(choices) + 1) <= _MAX_SIZE:
            for piece in _split(ops, op, choices):
                _visit(ops, piece.regions[0].blocks[0])
        else:
            _visit(ops, op.regions[0].blocks[0])


def _choices(loop: ir.Operation) -> tuple[list[int], int, bool]:
    """Positions of comparisons to split at, number of operations, whether indices are clamped."""
    index = loop.regions[0].blocks[0].arguments[0]
    inside = list(walk(loop))
    found: list[int] = []
    for position, op in enumerate(inside):
        if op.name == "arith.cmpi" and op.operands[0] == index:
            predicate = ir.IntegerAttr(op.attributes["predicate"]).value
            bound = definition(op.operands[1])
            if predicate == _LESS and (bound is None or bound not in inside):
                found.append(position)
    clamped = any(op.name in _CLAMPS for op in inside)
    # A concatenation compares with its last bound first.
    return found[::-1][:_MAX_BOUNDS], len(inside), clamped


def _split(ops: Ops, loop: ir.Operation, choices: list[int]) -> list[ir.Operation]:
    inside = list(walk(loop))
    bounds = [inside[k].operands[1] for k in choices]
    low, high, *_ = loop.operands
    carried = list(loop.operands)[3:]
    pieces: list[ir.Operation] = []
    with ir.InsertionPoint(loop), loop.location:
        for number in range(len(choices) + 1):
            end = high
            if number < len(choices):
                # Bounds outside the loop, or out of order, leave a piece empty.
                end = ops.create("arith.maxsi", ops.i64, bounds[number], low)
                end = ops.create("arith.minsi", ops.i64, end, high)
            piece = loop.clone(ir.InsertionPoint.current)
            piece.operands[0], piece.operands[1] = low, end
            for k, value in enumerate(carried):
                piece.operands[3 + k] = value
            _decide(ops, piece, choices, number)
            carried = list(piece.results)
            low = end
            pieces.append(piece)
    for old, new in zip(loop.results, carried, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()
    return pieces


def _decide(ops: Ops, piece: ir.Operation, choices: list[int], number: int) -> None:
    """Fold comparisons in piece ``number``: the earlier ones are false, its own is true."""
    inside = list(walk(piece))
    for k, position in enumerate(choices[: number + 1]):
        comparison = inside[position]
        with ir.InsertionPoint(comparison), comparison.location:
            known = ops.constant(int(k == number), ops.i1)
        comparison.results[0].replace_all_uses_with(known)
        comparison.erase()
