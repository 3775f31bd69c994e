"""Chunks of library products: by matrices of a batch, rows, or columns of the result.

A product of fewer rows than two chunks need has chunks of columns. These are wide, because some
kernels of the library need a call for each of them, which packs the left operand again (`calls`).

Parts of a product with a mirrored half (`gram`) never have the bits of the whole, and are computed
apart on one thread, too. So there are parts only where they cost next to nothing: of very many
multiplications for an element, sums of parts of these are added up; of many rows, parts pack the
operand again, which takes the less of their time the more rows they have.
"""

from __future__ import annotations

from .chunks import BYTE, FEW, MOST_APART, MULTIPLY, Chunks, DividedLoop, Merged
from .gram import is_gram
from .graph import Combiner, Product
from .library_calls import ELEMENTS, ROWS, Calls, JoinableKernels, form
from .memory import element_bytes

_COLUMNS = 512  # of a chunk
# Of a product with a mirrored half: what the rows of a chunk are a multiple of, rows of a chunk at
# least, and bytes of the numbers that are multiplied for an element of a chunk that is added up.
_TILE, _HALF, _ADDED = 64, 1024, 65536


def product_chunks(op: Product) -> Chunks | None:
    """The division of a library product; None = it is whole."""
    if op.kind != "batch_matmul" and form(op) not in ("matmul", "matvec"):
        return None
    size, shared = element_bytes(op.output.element), op.left.dims[-1]
    cost = MULTIPLY[size] if form(op) == op.kind != "matvec" else BYTE * size
    chunks = Chunks(_choices(op, size), ((cost, (*op.output.dims, shared)),))
    return None if chunks.is_one else chunks


def _choices(op: Product, size: int) -> list[DividedLoop]:
    rows, columns, shared = op.output.dims[0], op.output.dims[-1], op.left.dims[-1]
    if op.kind == "batch_matmul":
        return [DividedLoop(None, rows, 1)]
    if form(op) == "matvec":
        calls = Calls(ELEMENTS, JoinableKernels.ALL, ELEMENTS)
        return [DividedLoop(None, rows, ELEMENTS, calls=calls)]
    if is_gram(op):
        is_tall = isinstance(shared, int) and shared * size >= 2 * _ADDED
        if is_tall and isinstance(rows, int) and rows < 2 * _HALF:
            sums = [Merged(op.output, Combiner("arith.addf", ordered=False))]
            return [DividedLoop(None, shared, _ADDED // size, MOST_APART, sums)]
        return [DividedLoop(None, rows, _TILE, calls=Calls(_HALF, JoinableKernels.NONE, _HALF))]
    by_rows = DividedLoop(None, rows, ROWS, calls=Calls(ROWS, JoinableKernels.ALL, ROWS, (columns, shared)))
    joined = JoinableKernels.SOME if size == 4 else JoinableKernels.ALL
    calls = Calls(_COLUMNS, joined, _COLUMNS, (rows, shared))
    by_columns = DividedLoop(None, columns, _COLUMNS // 4, FEW, columns=True, calls=calls)
    if isinstance(rows, int):
        return [by_columns if rows < 2 * ROWS else by_rows]
    is_narrow = isinstance(columns, int) and columns < 2 * _COLUMNS
    return [by_rows] if is_narrow else [by_rows, by_columns]
