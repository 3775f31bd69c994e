"""The order of operations in a block, and tests of whether two of them speak of one part of an array."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from ..linalg.element import emit

LISTS = ("static_offsets", "static_sizes", "static_strides")
"""The attributes of slices, in the order of their operands."""


def order_in(block: ir.Block) -> dict[ir.Operation, int]:
    """The operations of a block -> their places."""
    return {view.operation: number for number, view in enumerate(block.operations)}


def enclosing(op: ir.Operation, order: Mapping[ir.Operation, int]) -> ir.Operation | None:
    """The operation of a block that an operation is, or is in; None if it is elsewhere."""
    inner = op
    while inner not in order:
        if inner.parent is None or inner.name == "func.func":
            return None
        inner = inner.parent.operation
    return inner


def is_part(value: ir.Value, insert: ir.Operation) -> bool:
    """True if a value is what an array has in the very part that an insertion replaces."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "tensor.extract_slice":
        return False
    op = value.owner
    return (
        op.operands[0] == insert.operands[1]
        and value.type == insert.operands[0].type
        and list(op.operands)[1:] == list(insert.operands)[2:]
        and all(op.attributes[n] == insert.attributes[n] for n in LISTS)
    )


def same_part(array: ir.Value, insert: ir.Operation) -> ir.Value:
    """Take the part that an insertion replaces from an array."""
    counts = list(ir.DenseI32ArrayAttr(insert.attributes["operandSegmentSizes"]))
    return emit(
        "tensor.extract_slice",
        insert.operands[0].type,
        array,
        *list(insert.operands)[2:],
        **{name: insert.attributes[name] for name in LISTS},
        operandSegmentSizes=ir.DenseI32ArrayAttr.get(counts[1:]),
    )
