"""Calls of the library: which parts of a product may be calls of their own, with the same bits.

The library takes tiles of a result, and adds up the products of an element in an order that depends
on the tile. Measured on the kernels of OpenBLAS for x86-64 (Nehalem to AVX-512), in f32 and f64:

* Rows of a product of matrices may be cut at multiples of `ROWS`, and the parts have the bits of
  the whole, for transposed operands and sums into a result, too, if no part has fewer rows than
  that, or so few multiplications (`FEW`) that the library has other code for it.
* Columns may be cut at multiples of `ELEMENTS`, if the rest of a division by that number is a call
  of its own on any number of threads. In f32, that holds for some kernels only: in that for AVX2,
  the order depends on the blocks that the library makes of all columns (`thread_pool.COLUMNS`).
* Elements of a product of a matrix and a vector may be cut at multiples of `ELEMENTS`, too; where
  the matrix is transposed, in f32, the rest has to stay apart. (In f64, `adds_rows`.)

So a thread may take any number of neighbouring chunks in one call, and one thread takes all of
them, without an operand that is packed twice.
"""

from __future__ import annotations

from enum import Enum

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .graph import Product

ROWS = 24
ELEMENTS = 16
FEW = 1_000_000  # multiplications


class JoinableKernels(Enum):
    """Kernels of the library that give neighbouring chunks, in one call, the bits of several."""

    ALL = 0
    SOME = 1
    NONE = 2


@dataclass(eq=False)
class Calls:
    """The calls that the rows or columns of a product become.

    Attributes:
        least: iterations of a chunk, where there are enough for two: a call packs the whole of the
            other operand.
        joined: with which kernels of the library neighbouring chunks are one call.
        last: iterations of the last chunk, at least.
        each: sizes whose product is the number of multiplications of an iteration, where no chunk
            may have as few as `FEW`; None = any may.
    """

    least: int
    joined: JoinableKernels
    last: int
    each: tuple[Dim, ...] | None = None

    def lowest(self, unit: int) -> int | None:
        """Iterations of every chunk, at least, in multiples of ``unit``; None = not known."""
        if self.each is None:
            return self.last
        each = ix.product(self.each)
        if not isinstance(each, int):
            return None
        return max(unit * (FEW // (unit * max(each, 1)) + 1), self.last)


def form(op: Product) -> str:
    """The kind of a product, or of the one of a matrix and a vector that it is.

    Such products have functions of their own in the library, which need no packing.
    """
    if op.kind in ("matmul", "batch_matmul"):
        rows, columns = op.output.dims[-2:]
        if rows == 1:
            return "vecmat"
        if columns == 1:
            return "matvec"
    return op.kind


def adds_rows(op: Product) -> bool:
    """True if a product of a vector and a matrix adds up rows in memory, without the library.

    The library's latest releases take up to 1.4 times as long for that in f64 as older ones.
    """
    if not isinstance(op.output.element, ir.F64Type) or form(op) not in ("matvec", "vecmat"):
        return False
    if form(op) == "matvec":
        dims, offset = op.left.dims, op.left_view[1]
        along, across = len(dims) - 2, len(dims) - 1
    else:
        dims, offset = op.right.dims, op.right_view[1]
        along, across = len(dims) - 1, len(dims) - 2
    are_sums_along_rows = offset.coefficient(across) == 1 or dims[across] == 1
    return offset.coefficient(along) == 1 and not are_sums_along_rows


def has_rest(op: Product) -> bool:
    """True if parts of a vector, or of columns, leave the rest of a division apart."""
    if form(op) != "matvec":
        return True
    _, offset = op.left_view
    is_transposed = offset.coefficient(1) != 1 and op.left.dims[1] != 1
    return is_transposed and isinstance(op.output.element, ir.F32Type)
