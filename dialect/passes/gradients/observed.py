"""Observed types of the operands of differentiable ops (R1.30)."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from ...ir.types import TENSOR, TensorType
from ...mlir.facts import is_constant
from ...mlir.rewrite import attrs_of, blocks_in, defining_op, op_class, type_of, walk
from ...ops.speculation import Profile


def seen_at(value: ir.Value) -> TensorType | None:
    """The type that the observer which makes a value has seen; None if something else makes it."""
    source = defining_op(value)
    if source is None or op_class(source) is not Profile:
        return None
    type_ = attrs_of(source)["profiled_type"]
    return None if type_ in (None, TENSOR) else type_


def seen_in(ops: Iterable[ir.Operation], value: ir.Value) -> TensorType | None:
    """The type that the first observer of a value in some ops has seen, those in their blocks included.

    An observer in a branch that no run has taken has seen nothing.
    """
    for op in ops:
        if op_class(op) is Profile and op.operands[0] == value:
            type_ = seen_at(op.results[0])
            if type_ is not None:
                return type_
    return None


def is_enough(seen: TensorType | None) -> bool:
    """True if gradients can be recorded for the type that was seen: dtype and rank are known."""
    return seen is not None and seen.dtype is not None and seen.shape is not None and seen.defined is not False


def is_observed(op: ir.Operation, inside: Iterable[ir.Value]) -> bool:
    """True if enough was seen of each array that an op reads, in its blocks or in front of it.

    ``inside``: values of which it need not be known, since they are made in the same subgraphs.
    """
    every = [op, *walk(op)]
    own = {r for inner in every for r in inner.results}
    own |= {a for inner in every for b in blocks_in(inner) for a in b.arguments}
    exempt = own.union(inside)
    return all(
        v in exempt
        or not isinstance(type_of(v), TensorType)
        or is_constant(v)
        or is_enough(seen_at(v))
        or is_enough(seen_in(every, v))
        for inner in every
        for v in inner.operands
    )
