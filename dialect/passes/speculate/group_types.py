"""Types of all values of a fusion function, as they follow from those of its arguments."""

from __future__ import annotations

from mlir import ir

from ...errors import ProfuseError
from ...ir.types import ListedType, ScalarType, TensorType
from ...mlir.facts import is_constant_op
from ...mlir.rewrite import attrs_of, body_of, op_class, ops_in, set_type, type_of
from ...mlir.typed_values import Types, constant_type, unused_and_undefined
from ...ops.structural import unproven_sizes
from ...reasons import Kind, Reason
from ..partition.outline import GroupRefused
from .loop_types import infer_function


def infer_group(func: ir.Operation) -> None:
    """Infer all types of a fusion function, and write those of tensors; raises GroupRefused.

    Then the types inside are left half changed: try others, or drop the function.
    """
    if any(len(op.regions) for op in ops_in(body_of(func))):
        infer_function(func)
        return
    types = Types()
    for op in ops_in(body_of(func)):
        infer_op(op, types)
        for value in op.results:
            if not is_constant_op(op) and isinstance(type_ := types[value], TensorType):
                set_type(value, type_)


def infer_op(op: ir.Operation, types: Types) -> None:
    """Infer the types of the results of an op in a fusion function; raises GroupRefused.

    Nothing is written but to ``types``.
    """
    if is_constant_op(op):
        value = op.results[0]
        types[value] = constant_type(value) or type_of(value)
        return
    cls = op_class(op)
    if cls is None:
        return
    operands = types.of(op)
    try:
        attrs = attrs_of(op)
        results = cls.infer(operands, attrs)
    except ProfuseError as error:
        raise GroupRefused(Reason(Kind.TYPES, detail=error.what), op, error.sizes) from None
    undefined = unused_and_undefined(op, operands)
    for k, (value, type_) in enumerate(zip(op.results, results, strict=False)):
        if k in undefined:
            continue
        if not isinstance(type_, (ScalarType, ListedType)) and not (
            isinstance(type_, TensorType) and type_.is_complete
        ):
            raise GroupRefused(Reason(Kind.SIZES_WITHOUT_SYMBOLS), op)
        types[value] = type_
    reason = cls.can_lower_types(operands, attrs)
    if reason is not None:
        raise GroupRefused(reason, op, unproven_sizes(cls, operands, attrs))
