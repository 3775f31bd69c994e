"""Tests that places are on their axis: in each round, or once before the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from ...dialect.ir.dtypes import I64, U64
from ...dialect.ir.size_algebra import bounds
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.mlir.nesting import is_inside
from .element import emit, storage_type
from .scalar import Scalar

if TYPE_CHECKING:
    from .loop_builder import LoopBuilder


def on_axis(b: LoopBuilder, index: Scalar, size: Dim, where: Any) -> Scalar:
    """An index as a place on an axis; the run ends where there is none.

    What counts from the end is dealt with aside: the usual way has one branch. It stays in the loop
    even of an index that is the same in all rounds, for LLVM takes out no test that may end the
    run; so such an index is tested before.
    """
    count = b.size(size)
    loops = b.loops_around(index.value, *([count.value] if isinstance(size, Sym) else []))
    if loops:
        return _before(b, loops, index, size, where)
    within = _is_below(index, count)
    if _is_plain(where):
        b.end_if(~within)
        return index
    branch = ir.Operation.create("scf.if", results=[index.value.type], operands=[within.value], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        ir.Operation.create("scf.yield", operands=[index.value])
    with ir.InsertionPoint(branch.regions[1].blocks.append()):
        from_end = index + count
        b.end_if(~_is_below(from_end, count))
        ir.Operation.create("scf.yield", operands=[from_end.value])
    return Scalar(branch.results[0], I64)


def _before(b: LoopBuilder, loops: Sequence[ir.Operation], index: Scalar, size: Dim, where: Any) -> Scalar:
    """`on_axis` of an index that is the same in all rounds of these loops, innermost first.

    A run without rounds does not end.
    """
    place = index
    if not _is_plain(where):
        with ir.InsertionPoint(loops[-1]):
            count = b.size(size)
            place = _is_below(index, count).select(index, index + count)
    tested = [loops[0]]
    for loop in loops[1:]:
        if any(is_inside(end, loop) for inner in tested for end in _ends(inner)):
            break
        tested.append(loop)
    with ir.InsertionPoint(tested[-1]):
        outside = ~_is_below(place, b.size(size))
        for loop in tested:
            begin, end = (Scalar(emit("arith.index_cast", storage_type(I64), v), I64) for v in _ends(loop))
            outside = outside & (begin < end)
        b.end_if(outside)
    return place


def _is_plain(where: Any) -> bool:
    """True if an index counts from the start in all rounds."""
    return isinstance(where, Sym) and bounds(where)[0] >= 0


def _is_below(index: Scalar, count: Scalar) -> Scalar:
    return Scalar(index.value, U64) < Scalar(count.value, U64)


def _ends(loop: ir.Operation) -> list[ir.Value]:
    return list(loop.operands)[:2]
