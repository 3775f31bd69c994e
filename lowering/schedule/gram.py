"""Products of a matrix with its own transpose: one half is the mirror image of the other."""

from __future__ import annotations

from .graph import Product
from .memory import buffer_of

_LEAST = 64  # rows of the result; of fewer, the library takes as long for a half as for all


def is_gram(op: Product) -> bool:
    """True if a product is one of a matrix with its own transpose, and large enough for that."""
    if op.kind != "matmul" or op.init is not None or op.bias is not None:
        return False
    (left, rows), (right, columns) = op.left_view, op.right_view
    size = op.output.dims[0]
    if left is not right or (isinstance(size, int) and size < _LEAST):
        return False
    if buffer_of(left).windowed or buffer_of(op.output).windowed:
        return False
    return (rows.coefficient(0), rows.coefficient(1), rows.const, *op.left.dims) == (
        columns.coefficient(1),
        columns.coefficient(0),
        columns.const,
        *op.right.dims[::-1],
    )
