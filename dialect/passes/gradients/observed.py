"""What observers have seen of the operands of differentiable ops (R1.30)."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from ...ir.types import TENSOR, TensorType
from ...mlir.facts import is_constant
from ...mlir.rewrite import attrs_of, defining_op, op_class, type_of, walk
from ...ops.speculation import Profile


def seen_at(value: ir.Value) -> TensorType | None:
    """What the observer that makes a value has seen; None if it is made by something else."""
    source = defining_op(value)
    if source is None or op_class(source) is not Profile:
        return None
    found = attrs_of(source)["profiled_type"]
    return None if found in (None, TENSOR) else found


def seen_in(ops: Iterable[ir.Operation], value: ir.Value) -> TensorType | None:
    """What the first observer of a value in some ops has seen, those in their blocks included.

    An observer in a branch that no run has taken has seen nothing.
    """
    for op in ops:
        if op_class(op) is Profile and op.operands[0] == value:
            found = seen_at(op.results[0])
            if found is not None:
                return found
    return None


def is_enough(seen: TensorType | None) -> bool:
    """Whether gradients can be recorded for what was seen: dtype and rank are known."""
    return (
        seen is not None and seen.dtype is not None and seen.shape is not None
        and seen.defined is not False
    )  # fmt: skip


def is_observed(op: ir.Operation, made: Iterable[ir.Value]) -> bool:
    """Whether enough was seen of each array that an op reads, in its blocks or in front of it.

    ``made``: values of which it need not be known, since they are made in the same subgraphs.
    """
    every = [op, *walk(op)]
    own = {r for inner in every for r in inner.results}
    own |= {a for inner in every for region in inner.regions for b in region.blocks
            for a in b.arguments}  # fmt: skip
    known = own.union(made)
    return all(
        v in known
        or not isinstance(type_of(v), TensorType)
        or is_constant(v)
        or is_enough(seen_at(v))
        or is_enough(seen_in(every, v))
        for inner in every for v in inner.operands
    )  # fmt: skip


__all__ = ["is_enough", "is_observed", "seen_at", "seen_in"]
