"""Make a function of its own of the ops of a fusion group, and a call of it where they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from ...errors import ProfuseError
from ...ir.types import TensorType, Type
from ...mlir.rewrite import (
    add_function,
    add_return,
    attrs_of,
    create,
    defining_op,
    op_class,
    refresh_signature,
    set_type,
    symbol_of,
    type_of,
    unique_symbol,
)
from ...mlir.values import Types, clone_op
from ...ops.speculation import FusionGroup
from ...reasons import Kind, Reason
from .fusion_types import argument_type


def outline(
    module: ir.Module,
    members: Sequence[ir.Operation],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    constants: Mapping[ir.Value, Type],
) -> Reason | None:
    """Move ops into a new private function, and call it; the reason where they have to stay.

    Args:
        module: where the function is added.
        members: the ops, which stand side by side in the order of the block.
        inputs: what the function gets of the values that they read; it copies other constants.
        outputs: their results that something else reads.
        constants: the types of the constants among the values that the ops read.
    """
    last = members[-1]
    name = unique_symbol(module, "fusion")
    args = [argument_type(v) for v in inputs]
    func, body = add_function(module, name, args, [], loc=last.location)
    mapping = dict(zip(inputs, body.arguments, strict=True))
    reason = _fill(body, members, mapping, constants)
    if reason is not None:
        func.erase()
        return reason
    add_return(body, [mapping[v] for v in outputs], last.location)
    refresh_signature(func)
    types = [type_of(v) for v in outputs]
    call = create(FusionGroup, inputs, {"callee": symbol_of(func)}, types, last, last.location)
    for old, new in zip(outputs, call.results, strict=True):
        old.replace_all_uses_with(new)
    for op in reversed(members):
        op.erase()
    return None


def _fill(
    body: ir.Block,
    members: Sequence[ir.Operation],
    mapping: dict[ir.Value, ir.Value],
    constants: Mapping[ir.Value, Type],
) -> Reason | None:
    """Copy the members; the reason if their types do not follow from the arguments alone."""
    types = Types()
    ip = ir.InsertionPoint(body)
    for op in members:
        for value in op.operands:
            source = defining_op(value)
            if value not in mapping and source is not None:
                types[clone_op(source, mapping, ip).results[0]] = constants[value]
        copy = clone_op(op, mapping, ip)
        cls, attrs, ins = op_class(copy), attrs_of(copy), types.of(copy)
        assert cls is not None
        try:
            inferred = cls.infer(ins, attrs)
        except ProfuseError as error:
            return Reason(Kind.TYPES, detail=error.what)
        reason = cls.can_lower_types(ins, attrs)
        if reason is not None:
            return reason
        for value, type_ in zip(copy.results, inferred, strict=True):
            if isinstance(type_, TensorType):
                if not type_.is_complete:
                    return Reason(Kind.RUN_TIME_SIZES)
                set_type(value, type_)
            else:
                types[value] = type_
    return None
