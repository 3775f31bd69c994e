"""Steps in blocks: for each block, the products and the nests of the step."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from ..schedule.block_steps import BlockStep
from ..schedule.graph import Buffer, Product
from ..schedule.groups import Group
from ..schedule.memory import buffer_of
from ..schedule.panels import Panels
from .cblas import ProductEmitter, Range, emit_sizes
from .loop_ops import Ops, Sizes


def emit_blocks(
    ops: Ops,
    step: BlockStep,
    sizes: Sizes,
    pointer: Callable[[Buffer], ir.Value],
    declare: Callable[[str, list[ir.Type]], None],
    part: Range,
    nest: Callable[[Group, ir.Value, Range], None],
) -> None:
    """Emit the loop over blocks at the current insertion point.

    Args:
        sizes, pointer, declare: as `ProductEmitter` explains them.
        part: the first block, and the one behind the last one. Blocks of a matrix follow one
            another.
        nest: emits the call of the nest of a group, for iterations of its divided loop and one
            matrix.
    """
    for op in step.products:
        emit_sizes(op, sizes)
    point = ir.InsertionPoint.current
    if isinstance(step, Panels):
        # In front of the loop, as all sizes.
        for size in (1, step.width, step.block_rows * step.width):
            sizes.value(size, point)
    per_matrix, end = sizes.value(step.per_matrix, point), sizes.value(step.rows, point)
    rows = sizes.value(step.block_rows, point)
    emitter = ProductEmitter(
        ops, lambda d: sizes.value(d, ir.InsertionPoint.current), lambda t: pointer(buffer_of(t)), declare
    )
    low, high = part
    loop = ops.loop(low, high, ops.constant(1), [])
    with ir.InsertionPoint(loop.body):
        block = loop.induction_variable
        matrix = ops.digit(block, per_matrix, rest=False)
        begin = ops.mul(ops.digit(block, per_matrix, rest=True), rows)
        span = begin, ops.least(ops.add(begin, rows), end)
        for one in step.parts:
            if isinstance(step, Panels):
                factor = step.width if isinstance(one, Product) else step.columns_of(one)
                part = _times(ops, span, sizes.value(factor, ir.InsertionPoint.current))
                if isinstance(one, Product):
                    room = step.block_rows * step.width
                    emitter.emit_panel(one, matrix, part, room, transposed=step.axes.transposed)
                else:
                    nest(one, matrix, part)
            elif isinstance(one, Product):
                emitter.emit_rows(one, matrix, span)
            else:
                nest(one, matrix, span)
        ir.Operation.create("scf.yield")


def _times(ops: Ops, span: Range, factor: ir.Value) -> Range:
    """A range in units of which each of the range has so many."""
    low, high = (ops.mul(end, factor) for end in span)
    return low, high
