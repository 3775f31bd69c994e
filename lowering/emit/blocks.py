"""Steps in blocks of rows: for each block, rows of a product, a nest, rows of another product."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from ..schedule.blocks import Blocks
from ..schedule.graph import Buffer
from ..schedule.memory import buffer_of
from .base import Ops, Sizes
from .products import ProductEmitter, Range, emit_sizes


def emit_blocks(
    ops: Ops, step: Blocks, sizes: Sizes, pointer: Callable[[Buffer], ir.Value],
    declare: Callable[[str, list[ir.Type]], None], part: Range,
    nest: Callable[[ir.Value, Range], None],
) -> None:  # fmt: skip
    """Emit the loop over blocks at the current insertion point.

    Args:
        sizes, pointer, declare: as `ProductEmitter` explains them.
        part: the first block, and the one behind the last one. Blocks of a matrix follow one
            another.
        nest: emits the call of the nest, for the rows of one matrix.
    """
    for op in (step.first, step.second):
        emit_sizes(op, sizes)
    point = ir.InsertionPoint.current
    per_matrix, end = sizes.value(step.per_matrix, point), sizes.value(step.rows, point)
    rows = ops.constant(step.height)
    emitter = ProductEmitter(
        ops, lambda d: sizes.value(d, ir.InsertionPoint.current),
        lambda t: pointer(buffer_of(t)), declare,
    )  # fmt: skip
    low, high = part
    loop = ops.loop(low, high, ops.constant(1), [])
    with ir.InsertionPoint(loop.body):
        block = loop.induction_variable
        matrix = ops.digit(block, per_matrix, rest=False)
        begin = ops.mul(ops.digit(block, per_matrix, rest=True), rows)
        taken = begin, ops.least(ops.add(begin, rows), end)
        emitter.emit_rows(step.first, matrix, taken)
        if step.nest is not None:
            nest(matrix, taken)
        emitter.emit_rows(step.second, matrix, taken)
        ir.Operation.create("scf.yield")
