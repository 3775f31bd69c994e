"""The affine maps, over loops, by which operations that only move elements read their operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from ...dialect.ir.symbolic import Dim
from .generic import Expr, dims, literal


def broadcast_map(shape: Sequence[Dim], loops: Sequence[Expr]) -> list[Expr]:
    """The map by which loops over the result read an operand of this shape, which is broadcast."""
    aligned = loops[len(loops) - len(shape) :]
    return [literal(0) if d == 1 else e for d, e in zip(shape, aligned, strict=True)]


def slice_map(
    source: Sequence[Dim], starts: Sequence[Any], steps: Sequence[int], sizes: Sequence[Dim]
) -> list[Expr] | None:
    """The map by which a slice reads its operand; None if no affine expression describes it."""
    exprs: list[Expr] = []
    loops = dims(len(source))
    for loop, size, start, step, length in zip(loops, source, starts, steps, sizes, strict=True):
        if not isinstance(start, int):
            return None
        if start or step != 1 or size == length:
            exprs.append(loop * step + start)
        elif isinstance(size, int):
            # A bare loop index would say that the loop covers the whole axis.
            exprs.append(ir.AffineExpr.get_mod(loop, size))
        else:
            return None
    return exprs
