"""Index maps of the operations that the scheduler reads."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .graph import Tensor


def reshape_mapping(source: Sequence[Dim], result: Sequence[Dim]) -> tuple[ix.AffineIndex, ...] | None:
    """The source index over result axes, if every source axis is kept or split; else None."""
    if any(d == 0 for d in (*source, *result)):
        return None
    mapping: list[ix.AffineIndex] = []
    axis = 0
    for size in source:
        if size == 1:
            mapping.append(ix.constant(0))
            continue
        parts: list[int] = []
        covered: Dim = 1
        while covered != size:
            if axis == len(result) or len(parts) > len(result):
                return None
            covered = covered * result[axis]
            parts.append(axis)
            axis += 1
        index, stride = ix.constant(0), 1
        step: Dim = stride
        for part in reversed(parts):
            if result[part] != 1:
                index = index + ix.atom(part).scale(step)
            step = step * result[part]
        mapping.append(index)
    return tuple(mapping) if all(d == 1 for d in result[axis:]) else None


def affine(expr: ir.AffineExpr) -> ix.AffineIndex:
    """An affine expression over a generic's loops; raises LoweringError for other expressions."""
    if isinstance(expr, ir.AffineDimExpr):
        return ix.atom(expr.position)
    if isinstance(expr, ir.AffineConstantExpr):
        return ix.constant(expr.value)
    if isinstance(expr, ir.AffineAddExpr):
        return affine(expr.lhs) + affine(expr.rhs)
    if isinstance(expr, ir.AffineMulExpr):
        left, right = affine(expr.lhs), affine(expr.rhs)
        if not right.terms:
            return left.scale(right.const)
        if not left.terms:
            return right.scale(left.const)
    if isinstance(expr, (ir.AffineModExpr, ir.AffineFloorDivExpr)):
        left, right = affine(expr.lhs), affine(expr.rhs)
        if not right.terms:
            return ix.quotient(left, right.const, isinstance(expr, ir.AffineModExpr))
    raise LoweringError(f"index expression {expr} cannot be scheduled")


def within(index: ix.AffineIndex, sizes: Sequence[Dim]) -> ix.AffineIndex:
    """``index`` without the remainder that `linalg.maps.slice_map` adds to slices from 0 on.

    Without the remainder, linalg would infer that the loop covers the whole axis. The loop ends
    before, so the remainder is the loop index itself.
    """
    rest = index.single
    if not isinstance(rest, ix.Quotient) or not rest.rest or not isinstance(rest.of.single, int):
        return index
    size, by = sizes[rest.of.single], rest.by
    return rest.of if isinstance(size, int) and isinstance(by, int) and size <= by else index


def output_loop(index: ix.AffineIndex, op: ir.Operation) -> int:
    """The loop of a result's axis; raises LoweringError if the index is not a single loop."""
    loop = index.single
    if not isinstance(loop, int):
        raise LoweringError(f"{op.name}: an output map is not a projected permutation")
    return loop


def extents(
    count: int, tensors: Sequence[Tensor], indices: Sequence[tuple[ix.AffineIndex, ...]], inputs: int
) -> tuple[Dim, ...]:
    """Sizes of the loops: parallel loops from the outputs, reductions from reads of whole axes."""
    extents: list[Dim | None] = [None] * count
    order = [*range(inputs, len(tensors)), *range(inputs)]
    for number in order:
        for dim, index in zip(tensors[number].dims, indices[number], strict=True):
            loop = index.single
            if not isinstance(loop, int):
                continue
            if extents[loop] is None:
                extents[loop] = dim
            elif number >= inputs and extents[loop] != dim:
                raise LoweringError(f"results of one operation have sizes {extents[loop]} and {dim} along a loop")
    for loop, extent in enumerate(extents):
        if extent is None:
            raise LoweringError(f"the size of loop {loop} of a linalg.generic is not determined")
    return tuple(e for e in extents if e is not None)
