"""Batches of small products: which ones run as loops, which take less time than the library."""

from __future__ import annotations

from .graph import Product

MOST = 16  # rows, columns and multiplications per element; with 20, the library is as fast


def is_small(op: Product) -> bool:
    """True if a product of a batch runs as vector code, without the library."""
    if op.kind != "batch_matmul":
        return False
    sizes = (*op.left.dims[1:], op.output.dims[-1])
    return all(isinstance(n, int) and 0 < n <= MOST for n in sizes)
