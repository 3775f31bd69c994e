"""Symmetric matrices of which one half is computed: parts of it, and its mirror image."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import scf

from ..schedule.memory import element_bytes
from .loop_ops import SCALAR, Ops
from .transposes import transposer

_MIRRORED = 32  # rows and columns of a tile that is mirrored
_SQUARE = 32  # bytes of the rows of what is mirrored in registers
_WHOLE = 48  # the rows of a part are a multiple, so that tiles of the library are whole


def row_of_share(ops: Ops, row: ir.Value, size: ir.Value) -> ir.Value:
    """The row above which the upper half has the share that rows up to ``row`` have of all.

    So parts of as many rows become parts of as many elements.
    """
    height, share = (ops.create("arith.sitofp", ops.f64, x) for x in (size, row))
    share = ops.create("arith.divf", ops.f64, share, height)
    one = ops.float_constant(1.0, ops.f64)
    root = ops.create("math.sqrt", ops.f64, ops.create("arith.subf", ops.f64, one, share))
    above = ops.create("arith.subf", ops.f64, one, root)
    above = ops.create("arith.mulf", ops.f64, height, above)
    tiles = ops.create("arith.fptosi", ops.i64, above)
    tiles = ops.create("arith.divsi", ops.i64, tiles, ops.constant(_WHOLE))
    result = ops.mul(tiles, ops.constant(_WHOLE))
    return ops.select(ops.less(row, size), result, size)


def mirror(ops: Ops, element: ir.Type, out: ir.Value, size: ir.Value, low: ir.Value, high: ir.Value) -> None:
    """Copy what is right of the diagonal in some rows to where it belongs below it.

    ``low``, ``high``: the first row, and the one behind the last; below, these are columns.
    """
    one, tile = ops.constant(1), ops.constant(_MIRRORED)

    def place(row: ir.Value, column: ir.Value) -> ir.Value:
        return ops.offset(out, ops.add(ops.mul(row, size), column), element)

    def loop(start: ir.Value, end: ir.Value, step: ir.Value) -> scf.ForOp:
        return ops.loop(start, end, step, [])

    def close() -> None:
        ir.Operation.create("scf.yield")

    bits = 8 * element_bytes(element)
    side = 8 * _SQUARE // bits

    def by_elements(top: ir.Value, bottom: ir.Value, left: ir.Value, right: ir.Value) -> None:
        row = loop(top, bottom, one)
        with ir.InsertionPoint(row.body):
            i = row.induction_variable
            column = loop(left, ops.least(right, i), one)
            column.operation.attributes[SCALAR] = ir.UnitAttr.get()
            with ir.InsertionPoint(column.body):
                j = column.induction_variable
                ops.store(ops.load(place(j, i), element), place(i, j))
                close()
            close()

    rows = loop(low, size, tile)
    with ir.InsertionPoint(rows.body):
        top = rows.induction_variable
        bottom = ops.least(ops.add(top, tile), size)
        columns = loop(low, ops.least(bottom, high), tile)
        with ir.InsertionPoint(columns.body):
            left = columns.induction_variable
            right = ops.least(ops.add(left, tile), high)
            height, width = ops.subtract(bottom, top), ops.subtract(right, left)
            # Below the diagonal, and large enough for squares.
            is_below, is_low = ops.less(left, top), ops.less(height, ops.constant(side))
            is_narrow = ops.less(width, ops.constant(side))
            is_small = ops.create("arith.ori", ops.i1, is_low, is_narrow)
            by_squares = ops.select(is_small, ops.constant(0, ops.i1), is_below)
            branch = ir.Operation.create("scf.if", operands=[by_squares], regions=2)
            with ir.InsertionPoint(branch.regions[0].blocks.append()):
                name = transposer(ops, _module(), side, None, bits)
                ops.call(name, [place(left, top), size, place(top, left), height, width, size])
                close()
            with ir.InsertionPoint(branch.regions[1].blocks.append()):
                by_elements(top, bottom, left, right)
                close()
            close()
        close()


def _module() -> ir.Operation:
    """The module into which is emitted."""
    op = ir.InsertionPoint.current.block.owner.operation
    while op.name != "builtin.module":
        op = op.parent.operation
    return op
