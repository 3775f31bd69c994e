"""The ops that join a group under ``exact``: those that kernels compute to the last bit as NumPy does.

What NumPy computes of a group's results depends on their layout as well: a sum adds up elements in
the order in which they lie in memory. Kernels give C order. So an op joins a group only where NumPy
would give C order, too, which it does where all operands of two axes or more lie so; and no group
returns a view, whose strides would be others.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...ir.dtypes import BOOL, DType
from ...ir.op import Fusion, Op
from ...ir.types import TensorType, Type
from ...mlir.rewrite import op_class, ops_in
from ...mlir.typed_values import Types, clone_op
from ...reasons import Kind, Reason

_FLOATS = ("f32", "f64")


def exact_refusal(
    op: ir.Operation, cls: type[Op], types: Sequence[Type], results: Sequence[Type], fusible: set[ir.Value]
) -> Reason | None:
    """The reason why a kernel may compute other bits than NumPy does; None = it computes the same.

    ``fusible``: results of ops that may be fused, which are therefore in C order, or views of what
    is, with their axes in the same order.
    """
    if not cls.exact:
        return Reason(Kind.INEXACT)
    operand_dtypes, result_dtypes = ([_dtype(t) for t in group] for group in (types, results))
    if not all(d is None or d is BOOL or d.is_int or d.name in _FLOATS for d in (*operand_dtypes, *result_dtypes)):
        return Reason(Kind.INEXACT)
    if any(d is not None and d.is_float for d in operand_dtypes) and any(
        d is not None and d.is_int and d is not BOOL for d in result_dtypes
    ):  # what becomes of NaN, and of what is out of range, is the machine's choice
        return Reason(Kind.INEXACT)
    if cls.fusion is Fusion.QUERY:
        return None
    for index, (value, type_) in enumerate(zip(op.operands, types, strict=True)):
        if not isinstance(type_, TensorType) or value in fusible or type_.strides == "contiguous":
            continue
        if type_.shape is None or len(type_.shape) > 1:
            return Reason(Kind.OTHER_LAYOUT, operand=index)
    return None


def split_views(block: ir.Block, fusible: set[ir.Value], types: Types) -> None:
    """Give each user of a view that may be fused a view of its own; others read one outside."""
    for op in reversed(ops_in(block)):
        cls = op_class(op)
        if cls is None or cls.fusion is not Fusion.VIEW or op.results[0] not in fusible:
            continue
        value = op.results[0]
        fusible.discard(value)
        for use in list(value.uses):
            owner = use.owner.operation
            if not len(owner.results) or owner.results[0] not in fusible:
                continue
            copy = clone_op(op, {}, ir.InsertionPoint(op))
            types[copy.results[0]] = types[value]
            fusible.add(copy.results[0])
            owner.operands[use.operand_number] = copy.results[0]


def _dtype(type_: Type) -> DType | None:
    return getattr(type_, "dtype", None)
