"""Chunks of library products: by matrices of a batch, rows, or columns of the result.

A product of fewer rows than two chunks need has chunks of columns. These are wide, because some
kernels of the library need a call for each of them, which packs the left operand again (`calls`).
"""

from __future__ import annotations

from .calls import ELEMENTS, ROWS, Calls, form
from .chunks import BYTE, FEW, MULTIPLY, Chunks, Division
from .gram import is_gram
from .graph import Product
from .memory import element_bytes

_HALF = 128  # rows of a chunk of a product with a mirrored half, or a multiple
_COLUMNS = 512  # of a chunk
_HALVED = 4  # chunks of a product with a mirrored half: their rows get shorter and shorter


def product_chunks(op: Product) -> Chunks | None:
    """How a library product is divided; None = not at all."""
    if op.kind != "batch_matmul" and form(op) not in ("matmul", "matvec"):
        return None
    size, shared = element_bytes(op.output.element), op.left.dims[-1]
    cost = MULTIPLY[size] if form(op) == op.kind != "matvec" else BYTE * size
    found = Chunks(_choices(op, size), ((cost, (*op.output.dims, shared)),))
    return None if found.is_one else found


def _choices(op: Product, size: int) -> list[Division]:
    rows, columns, shared = op.output.dims[0], op.output.dims[-1], op.left.dims[-1]
    if op.kind == "batch_matmul":
        return [Division(None, rows, 1)]
    if form(op) == "matvec":
        calls = Calls(ELEMENTS, False, ELEMENTS)
        return [Division(None, rows, ELEMENTS, calls=calls)]
    if is_gram(op):
        return [Division(None, rows, _HALF, _HALVED)]
    by_rows = Division(None, rows, ROWS, calls=Calls(ROWS, False, ROWS, (columns, shared)))
    calls = Calls(_COLUMNS, size == 4, _COLUMNS, (rows, shared))
    by_columns = Division(None, columns, _COLUMNS // 4, FEW, columns=True, calls=calls)
    if isinstance(rows, int):
        return [by_columns if rows < 2 * ROWS else by_rows]
    is_narrow = isinstance(columns, int) and columns < 2 * _COLUMNS
    return [by_rows] if is_narrow else [by_rows, by_columns]
