"""Index-set splitting: splits loops at bounds with which their bodies compare the loop index.

The body of an assignment to a slice compares the loop index with the slice's bounds, to select the
new elements or the old ones, and reads the new ones at clamped indices; that of a concatenation, to
select the source. After the split, each loop runs on one side of the bound: it needs no comparison,
and no clamp of what it reads, since the bounds of the loop imply that. LLVM
finds that out for literal sizes alone, so clamps are taken out here: a clamped index is no
contiguous one, and keeps a loop from being vectorized.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mlir import ir

from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ir.symbolic import Dim, Sym, symbol
from ...dialect.mlir.rewrite import ops_in, walk
from ...dialect.ops.sizes import is_nonnegative
from ..schedule.graph import definition
from ..schedule.size_expressions import SizeReader
from .loop_ops import EXTENT, Ops, literal

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


@dataclass(frozen=True, eq=False)
class _Bound:
    """A bound of a loop's index.

    Attributes:
        limit: the value that the index is compared with.
        size: the same as a size expression; None = it has none.
        places: positions of the comparisons among the operations of the loop.
    """

    limit: ir.Value
    size: Dim | None
    places: tuple[int, ...]


def _visit(ops: Ops, block: ir.Block, symbols: Mapping[str, ir.Value]) -> None:
    for op in ops_in(block):
        if op.name != "scf.for":
            continue
        bounds, size, clamped = _bounds(op, symbols)
        is_split = clamped and bounds and size * (len(bounds) + 1) <= _MAX_SIZE
        # With larger steps, one iteration may have indices on both sides of a bound.
        if is_split and literal(op.operands[2]) == 1:
            for piece in _split(ops, op, bounds, symbols):
                _visit(ops, piece.regions[0].blocks[0], symbols)
        else:
            _visit(ops, op.regions[0].blocks[0], symbols)


def _bounds(loop: ir.Operation, symbols: Mapping[str, ir.Value]) -> tuple[list[_Bound], int, bool]:
    """Bounds to split at, number of operations, whether indices are clamped."""
    index = loop.regions[0].blocks[0].arguments[0]
    inside, sizes = list(walk(loop)), _reader(loop, symbols)
    bounds: dict[Any, _Bound] = {}
    # A concatenation compares with its last bound first.
    for position, op in reversed(list(enumerate(inside))):
        if op.name != "arith.cmpi" or op.operands[0] != index:
            continue
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        limit = op.operands[1]
        bound = definition(limit)
        if predicate == _LESS and (bound is None or bound not in inside):
            size = sizes.known_size(limit)
            key = limit if size is None else size
            places = bounds[key].places if key in bounds else ()
            bounds[key] = _Bound(limit, size, (*places, position))
    literal = [b for b in bounds.values() if isinstance(b.size, int)]
    others = [b for b in bounds.values() if not isinstance(b.size, int)]
    ordered = [*sorted(literal, key=lambda b: cast(int, b.size)), *others]
    clamped = any(op.name in _CLAMPS for op in inside)
    return ordered[:_MAX_BOUNDS], len(inside), clamped


def _split(ops: Ops, loop: ir.Operation, bounds: list[_Bound], symbols: Mapping[str, ir.Value]) -> list[ir.Operation]:
    low, high, *_ = loop.operands
    carried = list(loop.operands)[3:]
    pieces: list[ir.Operation] = []
    with ir.InsertionPoint(loop), loop.location:
        for number in range(len(bounds) + 1):
            end = high
            if number < len(bounds):
                # Bounds outside the loop, or out of order, leave a piece empty.
                end = ops.create("arith.maxsi", ops.i64, bounds[number].limit, low)
                end = ops.create("arith.minsi", ops.i64, end, high)
            piece = loop.clone(ir.InsertionPoint.current)
            piece.operands[0], piece.operands[1] = low, end
            for k, value in enumerate(carried):
                piece.operands[3 + k] = value
            _decide(ops, piece, bounds, number)
            first = bounds[number - 1].size if number else 0
            stop = bounds[number].size if number < len(bounds) else _extent(loop)
            _unclamp(piece, _reader(piece, symbols), first, stop)
            carried = list(piece.results)
            low = end
            pieces.append(piece)
    for old, new in zip(loop.results, carried, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()
    return pieces


def _decide(ops: Ops, piece: ir.Operation, bounds: list[_Bound], number: int) -> None:
    """Fold comparisons in piece ``number``: with earlier bounds false, with its own true.

    True, too, are those with later bounds that are certainly no smaller than its own.
    """
    inside = list(walk(piece))
    for k, bound in enumerate(bounds):
        if k > number:
            own = bounds[number].size
            if own is None or bound.size is None or not is_nonnegative(bound.size - own):
                continue
        for position in bound.places:
            comparison = inside[position]
            with ir.InsertionPoint(comparison), comparison.location:
                answer = ops.constant(int(k >= number), ops.i1)
            comparison.results[0].replace_all_uses_with(answer)
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
