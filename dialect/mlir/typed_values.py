"""The helpers of the passes of speculation: types of many values at once, and copies of bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mlir import ir

from ..ir.op import op_named
from ..ir.types import ListedType, ScalarType, TensorType, Type
from ..ir.types import type_of as type_of_value
from ..ops.nn.composite import Composite
from .facts import constant_value, is_constant
from .rewrite import (
    attrs_of,
    blocks_in,
    body_of,
    create,
    functions,
    is_private,
    op_class,
    refresh_signature,
    set_type,
    type_of,
    types_of,
    walk,
)
from .rewrite import replace as replace_op


def main_functions(module: ir.Module) -> list[ir.Operation]:
    """The functions that are graphs of their own; private ones are subgraphs of these."""
    return [func for func in functions(module) if not is_private(func)]


def values_of(func: ir.Operation) -> Iterator[ir.Value]:
    """Every value of a function: block arguments and results, nested blocks included."""
    yield from body_of(func).arguments
    for op in walk(func):
        yield from op.results
        for block in blocks_in(op):
            yield from block.arguments


def unused_and_undefined(op: ir.Operation, types: Sequence[Type]) -> frozenset[int]:
    """The numbers of the results of an op, of these operand types, that are undefined and have no use."""
    cls = op_class(op)
    if cls is None or not issubclass(cls, Composite):
        return frozenset()
    undefined = cls.undefined_results(types, attrs_of(op))
    return frozenset(k for k in undefined if next(iter(op.results[k].uses), None) is None)


def adopt_constants(func: ir.Operation) -> int:
    """Turn tensors of ``arith.constant``, the type of which is fixed, into constants of ours.

    Returns how many.
    """
    count = 0
    for op in list(walk(func)):
        if op.name == "arith.constant" and isinstance(type_of(op.results[0]), TensorType):
            attrs = {"value": constant_value(op.results[0])}
            own = create(op_named("constant"), [], attrs, types_of(op.results), op, op.location)
            replace_op(op, list(own.results))
            count += 1
    return count


def map_types(func: ir.Operation, change: Callable[[Type], Type]) -> int:
    """Give every value of a function the type that ``change`` makes of its own.

    Returns how many tensors of ``arith.constant`` have become constants of ours on the way.
    """
    adopted = adopt_constants(func)
    for value in list(values_of(func)):
        old = type_of(value)
        new = change(old)
        if new != old:
            set_type(value, new)
    refresh_signature(func)
    return adopted


def clone_op(op: ir.Operation, mapping: dict[ir.Value, ir.Value], ip: ir.InsertionPoint) -> ir.Operation:
    """A copy of ``op`` at ``ip`` reading ``mapping``'s values, which it adds to.

    Ops in blocks of the copy still read the old values: see `clone_tree`.
    """
    copy = op.clone(ip=ip).operation
    for index, operand in enumerate(op.operands):
        copy.operands[index] = mapping.get(operand, operand)
    mapping.update(zip(op.results, copy.results, strict=True))
    return copy


def clone_tree(op: ir.Operation, mapping: dict[ir.Value, ir.Value], ip: ir.InsertionPoint) -> ir.Operation:
    """`clone_op` for an op that may have blocks, in which ``mapping`` applies too."""
    copy = clone_op(op, mapping, ip)
    if len(op.regions):
        for inner in walk(copy):
            for index, operand in enumerate(inner.operands):
                if operand in mapping:
                    inner.operands[index] = mapping[operand]
    return copy


def constant_type(value: ir.Value) -> Type | None:
    """The type that a constant's own attribute gives it, but for arrays with its value; None for others."""
    if not is_constant(value):
        return None
    constant = constant_value(value)
    type_ = type_of_value(constant)
    if isinstance(type_, (ScalarType, ListedType)):
        return replace(type_, value=constant)
    return type_.without_layout() if isinstance(type_, TensorType) else type_


class Types:
    """Types of values as `Op.infer` sees them: with the known values of scalars.

    IR types cannot carry a scalar's value, so it is kept here while a block is walked.
    """

    def __init__(self) -> None:
        self.known: dict[ir.Value, Type] = {}

    def __getitem__(self, value: ir.Value) -> Type:
        type_ = self.known.get(value)
        return type_of(value) if type_ is None else type_

    def __setitem__(self, value: ir.Value, type_: Type) -> None:
        self.known[value] = type_

    def of(self, op: ir.Operation) -> list[Type]:
        """Types of the operands of an op."""
        return [self[v] for v in op.operands]

    def infer(self, op: ir.Operation) -> tuple[Type, ...]:
        """Types of the results of an op of the table; raises ProfuseError if they cannot be."""
        cls = op_class(op)
        return cls.infer(self.of(op), attrs_of(op)) if cls is not None else ()
