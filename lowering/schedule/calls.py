"""Calls of the library: which parts of a product may be calls of their own, with the same bits.

The library takes tiles of a result, and adds up the products of an element in an order that depends
on the tile. Measured on the kernels of OpenBLAS for x86-64 (Nehalem to AVX-512), in f32 and f64:

* Rows of a product of matrices may be cut at multiples of `ROWS`, and the parts have the bits of the
  whole, for transposed operands and sums into a result, too, if no part has fewer rows than that, or
  so few multiplications (`FEW`) that the library has other code for it.
* Columns may not: in f32 the order changes from block to block, and in f64 at the tail.
* Elements of a product of a matrix and a vector may be cut at multiples of `ELEMENTS`. Where the
  matrix is transposed, in f32, the rest of a division by that number has to stay apart.

So a thread may take any number of neighbouring chunks of rows in one call, and one thread takes all
of them, without an operand that is packed twice.
"""

from __future__ import annotations

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Dim
from . import index as ix

ROWS = 24
ELEMENTS = 16
FEW = 1_000_000  # multiplications


@dataclass(eq=False)
class Calls:
    """How the rows or columns of a product become calls.

    Attributes:
        least: iterations of a chunk, where there are enough for two: a call packs the whole of the
            other operand.
        joined: True = neighbouring chunks may be one call.
        each: sizes whose product is the number of multiplications of an iteration.
        last: iterations of the last chunk, at least; 0 = so many that their multiplications are
            more than `FEW`.
    """

    least: int
    joined: bool
    each: tuple[Dim, ...]
    last: int = 0

    def lowest(self, unit: int) -> int | None:
        """Iterations of every chunk, at least, in multiples of ``unit``; None = not known."""
        if self.last:
            return self.last
        each = ix.product(self.each)
        return unit * (FEW // (unit * max(each, 1)) + 1) if isinstance(each, int) else None
