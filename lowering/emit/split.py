"""Index-set splitting: splits loops at bounds with which their bodies compare the loop index.

The body of a concatenation compares the loop index with a bound to select the source array, and
reads both sources at clamped indices. After the split, each loop runs on one side of the bound: it
needs no comparison, and no clamp of what it reads, since the bounds of the loop imply that. LLVM
finds that out for literal sizes alone, so clamps are taken out here: a clamped index is no
contiguous one, and keeps a loop from being vectorized.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ir.symbolic import Dim, Sym, symbol
from ...dialect.mlir.rewrite import walk
from ...dialect.ops.sizes import is_nonnegative
from ..schedule.graph import definition
from ..schedule.sizes import SizeReader
from .base import EXTENT, Ops

_MAX_BOUNDS = 4  # largest number of bounds at which a loop is split
_MAX_SIZE = 600  # largest number of operations after splitting
_LESS = 2  # predicate slt of arith.cmpi
_CLAMPS = ("arith.minsi", "arith.maxsi")
_INDEX = symbol("index")


def split_loops(ops: Ops, function: ir.Operation, symbols: Mapping[str, ir.Value]) -> None:
    """Split the loops of a function whose bodies compare the loop index with a fixed bound.

    ``symbols``: the values of size symbols in the function.
    """
    _visit(ops, function.regions[0].blocks[0], symbols)
    for op in walk(function):
        if EXTENT in op.attributes:
            del op.attributes[EXTENT]


def _visit(ops: Ops, block: ir.Block, symbols: Mapping[str, ir.Value]) -> None:
    for view in list(block.operations):
        op = view.operation
        if op.name != "scf.for":
            continue
        choices, size, clamped = _choices(op)
        if clamped and choices and size * (len(choices) + 1) <= _MAX_SIZE:
            for piece in _split(ops, op, choices, symbols):
                _visit(ops, piece.regions[0].blocks[0], symbols)
        else:
            _visit(ops, op.regions[0].blocks[0], symbols)


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


def _split(
    ops: Ops, loop: ir.Operation, choices: list[int], symbols: Mapping[str, ir.Value]
) -> list[ir.Operation]:
    inside = list(walk(loop))
    limits = [inside[k].operands[1] for k in choices]
    low, high, *_ = loop.operands
    carried = list(loop.operands)[3:]
    pieces: list[ir.Operation] = []
    with ir.InsertionPoint(loop), loop.location:
        for number in range(len(choices) + 1):
            end = high
            if number < len(choices):
                # Bounds outside the loop, or out of order, leave a piece empty.
                end = ops.create("arith.maxsi", ops.i64, limits[number], low)
                end = ops.create("arith.minsi", ops.i64, end, high)
            piece = loop.clone(ir.InsertionPoint.current)
            piece.operands[0], piece.operands[1] = low, end
            for k, value in enumerate(carried):
                piece.operands[3 + k] = value
            _decide(ops, piece, choices, number)
            sizes = _reader(piece, symbols)
            first = sizes.known_size(limits[number - 1]) if number else 0
            stop = sizes.known_size(limits[number]) if number < len(limits) else _extent(loop)
            _unclamp(piece, sizes, first, stop)
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


def _reader(piece: ir.Operation, symbols: Mapping[str, ir.Value]) -> SizeReader:
    sizes = SizeReader()
    for name, value in symbols.items():
        sizes.define(value, symbol(name))
    sizes.define(piece.regions[0].blocks[0].arguments[0], _INDEX)
    return sizes


def _extent(loop: ir.Operation) -> Dim | None:
    if EXTENT not in loop.attributes:
        return None
    return parse_dim(ir.StringAttr(loop.attributes[EXTENT]).value)


def _unclamp(piece: ir.Operation, sizes: SizeReader, first: Dim | None, stop: Dim | None) -> None:
    """Drop clamps that change no index from ``first`` to before ``stop``."""
    for op in list(walk(piece)):
        if op.name not in _CLAMPS:
            continue
        value, limit = op.operands
        at, least = sizes.known_size(value), sizes.known_size(limit)
        if at is None or least is None:
            continue
        offset = at - _INDEX
        if isinstance(offset, Sym) and "index" in offset.symbols:
            continue
        if op.name == "arith.maxsi":
            room = None if first is None else first + offset - least
        else:
            room = None if stop is None else least - (stop - 1) - offset
        if room is not None and is_nonnegative(room, least=0):
            op.results[0].replace_all_uses_with(value)
            op.erase()
