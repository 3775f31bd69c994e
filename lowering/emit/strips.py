"""Short rows of unknown length in strips, of which the last one may overlap the one before.

LLVM makes SIMD code of a loop for several vectors at a time, and of what is left over a loop of single
elements: all of a row of 14 numbers, or of 28. Where the length is known it makes straight code instead. For
lengths that are known at run time alone, a row goes strip by strip here: each is a loop of `STRIP` elements,
straight code, and the last one begins so that it ends with the row. Elements in two strips are computed twice,
with the same result, so nothing may read what the loop writes, and all that it may carry is whether any element
was such and such.
"""

from __future__ import annotations

from mlir import ir

from ...dialect.mlir.rewrite import blocks_in, ops_in, terminator_of, walk
from ..schedule.graph import definition
from .loop_ops import EXTENT, IN_PLACE, OVER_BLOCKS, STRAIGHT, Ops, base_of, literal

STRIP = 8  # elements
_LONGEST = 64  # elements of a row; longer ones fill LLVM's loop over several vectors
_MAX_SIZE = 60  # operations of a body, which there is twice
_OTHERS = ("scf.if", "scf.while", "func.call", "llvm.call", "arith.divsi", "arith.remsi", "arith.shrsi")
"""Operations for which vectors are of little use: branches, calls, and indices that are divided."""


def strip_short_rows(ops: Ops, function: ir.Operation) -> None:
    """Add a version in strips to innermost loops of a nest whose lengths are not known."""
    loops = _loops_with_extent(function)
    if IN_PLACE not in function.attributes and not all(_extent(loop).isdigit() for loop in loops):
        for loop in _innermost_in_loops(function.regions[0].blocks[0], 0):
            if _can_be_stripped(loop):
                _strip(ops, loop)
        loops = _loops_with_extent(function)
    for loop in loops:
        del loop.attributes[EXTENT]


def _loops_with_extent(function: ir.Operation) -> list[ir.Operation]:
    return [op for op in walk(function) if op.name == "scf.for" and EXTENT in op.attributes]


def _extent(loop: ir.Operation) -> str:
    return ir.StringAttr(loop.attributes[EXTENT]).value


def _innermost_in_loops(block: ir.Block, depth: int) -> list[ir.Operation]:
    loops = []
    for op in ops_in(block):
        deeper = depth + int(op.name == "scf.for" and EXTENT in op.attributes)
        inside = [o for b in blocks_in(op) for o in _innermost_in_loops(b, deeper)]
        if op.name == "scf.for" and not inside and depth and not _holds_loop(op):
            loops.append(op)
        loops += inside
    return loops


def _holds_loop(op: ir.Operation) -> bool:
    return any(other.name == "scf.for" for other in walk(op))


def _can_be_stripped(loop: ir.Operation) -> bool:
    """True for a loop of unknown length and unit steps, whose elements may be computed twice."""
    if (
        EXTENT not in loop.attributes
        or _extent(loop).isdigit()
        or literal(loop.operands[2]) != 1
        or not _only_notes(loop)
    ):
        return False
    inside = list(walk(loop))
    if len(inside) > _MAX_SIZE or any(op.name in _OTHERS for op in inside):
        return False
    written = {base_of(op.operands[1]) for op in inside if op.name == "llvm.store"}
    read = {base_of(op.operands[0]) for op in inside if op.name == "llvm.load"}
    return bool(written) and written.isdisjoint(read)


def _only_notes(loop: ir.Operation) -> bool:
    """True for a loop that carries nothing but disjunctions, in which an element may count twice."""
    block = loop.regions[0].blocks[0]
    carried = list(block.arguments)[1:]
    end = terminator_of(block)
    return all(_is_disjunction(value, before) for value, before in zip(end.operation.operands, carried, strict=True))


def _is_disjunction(value: ir.Value, before: ir.Value) -> bool:
    while value != before:
        op = definition(value)
        if op is None or op.name != "arith.ori" or str(value.type) != "i1":
            return False
        value = op.operands[0]
    return True


def _strip(ops: Ops, loop: ir.Operation) -> None:
    """Have a loop run in strips where it is as long as one strip, and no longer than `_LONGEST`."""
    low, high, one, *start = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        length = ops.subtract(high, low)
        is_long = ops.less(ops.constant(STRIP - 1), length)
        fits = ops.create("arith.andi", ops.i1, is_long, ops.less(length, ops.constant(_LONGEST + 1)))
        last = ops.subtract(high, ops.constant(STRIP))
        types = [value.type for value in loop.results]
        choice = ir.Operation.create("scf.if", results=types, operands=[fits], regions=2)
        for old, new in zip(loop.results, choice.results, strict=True):
            old.replace_all_uses_with(new)
    with ir.InsertionPoint(choice.regions[0].blocks.append()), loop.location:
        strips = ops.loop(low, high, ops.constant(STRIP), start)
        strips.operation.attributes[OVER_BLOCKS] = ir.UnitAttr.get()
        with ir.InsertionPoint(strips.body):
            index, *carried = strips.body.arguments
            begin = ops.least(index, last)
            inner = ops.loop(ops.constant(0), ops.constant(STRIP), one, carried)
            inner.operation.attributes[STRAIGHT] = ir.UnitAttr.get()
            with ir.InsertionPoint(inner.body):
                place, *carried = inner.body.arguments
                _copy_body(loop, [ops.add(begin, place), *carried])
            ir.Operation.create("scf.yield", operands=list(inner.operation.results))
        ir.Operation.create("scf.yield", operands=list(strips.operation.results))
    with ir.InsertionPoint(choice.regions[1].blocks.append()), loop.location:
        whole = loop.clone(ir.InsertionPoint.current)
        del whole.attributes[EXTENT]
        ir.Operation.create("scf.yield", operands=list(whole.results))
    loop.erase()


def _copy_body(loop: ir.Operation, arguments: list[ir.Value]) -> None:
    """Emit the operations of a loop for other arguments of its block."""
    block = loop.regions[0].blocks[0]
    copies: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    for op in ops_in(block):
        copy = op.clone(ir.InsertionPoint.current)
        for number, value in enumerate(op.operands):
            copy.operands[number] = copies.get(value, value)
        copies.update(zip(op.results, copy.results, strict=True))
