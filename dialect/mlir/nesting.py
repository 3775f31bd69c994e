"""Tests of nesting: which operations and values are in blocks of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir


def encloses(op: ir.Operation, inner: ir.Operation) -> bool:
    """True if an operation is another one, or holds it in its blocks."""
    while inner != op:
        if inner.parent is None:
            return False
        inner = inner.parent.operation
    return True


def is_inside(value: ir.Value, op: ir.Operation) -> bool:
    """True if a value is defined in a block of an operation, or of one inside."""
    from mlir import ir

    block = value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
    return encloses(op, block.owner.operation)
