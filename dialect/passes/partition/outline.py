"""Make a function of its own of the ops of a group, and a call of it where they were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mlir import ir

from ...ir.op import Op
from ...ir.types import ListedType, ScalarType, TensorType, Type
from ...mlir.context import loc_of
from ...mlir.facts import is_constant_op
from ...mlir.rewrite import (
    add_function,
    add_return,
    blocks_in,
    create,
    defining_op,
    is_used,
    refresh_signature,
    short_name,
    symbol_of,
    types_of,
    unique_symbol,
    walk,
)
from ...mlir.typed_values import clone_tree, constant_type
from ...ops.sizes import product
from ...reasons import Reason

# A larger constant is handed to a function instead of becoming part of it, and of a kernel's code.
MAX_EMBEDDED = 64


def is_embedded(type_: Type | None) -> bool:
    """True for the types of constants that are copied into groups; None = it is no constant."""
    if isinstance(type_, TensorType):
        return type_.is_static and product(type_.shape or ()) <= MAX_EMBEDDED  # type: ignore[operator]
    return isinstance(type_, (ScalarType, ListedType))


class GroupRefused(Exception):
    """The reason why a group gets no function, and the sizes that would have to fit."""

    def __init__(self, reason: Reason, op: ir.Operation, sizes: Sequence = ()) -> None:
        self.reason = replace(reason, op=short_name(op), loc=loc_of(op.location))
        self.sizes = tuple(sizes)
        super().__init__(str(self.reason))


def free_values(ops: Iterable[ir.Operation]) -> list[ir.Value]:
    """The values that ops and those in their blocks read, and none of them makes, once each, in order."""
    own: set[ir.Value] = set()
    reads: dict[ir.Value, None] = {}
    for outer in ops:
        for op in (outer, *walk(outer)):
            own.update(op.results)
            own.update(a for block in blocks_in(op) for a in block.arguments)
            reads.update(dict.fromkeys(op.operands))
    return [v for v in reads if v not in own]


class Outliner:
    """Moves groups of ops into private functions, and calls these where the ops were.

    Attributes:
        call: the class of the ops that call the functions.
        prefix: what names of functions begin with.
        copies_first: False = copies of constants stand before the ops that read them first.
    """

    call: type[Op]
    prefix: str
    copies_first = True

    def __init__(self, module: ir.Module) -> None:
        self.module = module

    def is_copied(self, value: ir.Value) -> bool:
        """True for a constant that functions have copies of; other values are their arguments."""
        source = defining_op(value)
        return source is not None and is_constant_op(source) and is_embedded(constant_type(value))

    def inputs(self, members: list[ir.Operation]) -> list[ir.Value]:
        """The values that the function of a group takes, in order; those that it copies are not among them."""
        return [v for v in free_values(members) if not self.is_copied(v)]

    def argument_types(self, values: list[ir.Value]) -> Sequence[Type]:
        """The types of a function's arguments, which stand for these values; may raise GroupRefused."""
        return types_of(values)

    def refine(self, func: ir.Operation, outputs: list[ir.Value]) -> Sequence[Type]:
        """Infer types in a function; returns those of its call's results; may raise GroupRefused."""
        return types_of(outputs)

    def outline(self, members: list[ir.Operation], outputs: list[ir.Value], at: ir.Operation) -> None:
        """Copy ops into a function, call it, and erase those of the ops that nothing reads any more.

        Args:
            members: the ops, in the order of their block.
            outputs: their results that something else reads: what the function returns.
            at: the op before which it is called; all that the members read is made before that.

        Raises GroupRefused; then all is as it was.
        """
        inputs = self.inputs(members)
        types = self.argument_types(inputs)
        func, body = add_function(self.module, unique_symbol(self.module, self.prefix), types, [], loc=at.location)
        mapping = dict(zip(inputs, body.arguments, strict=True))
        ip = ir.InsertionPoint(body)
        for ops in [members] if self.copies_first else [[op] for op in members]:
            for value in free_values(ops):
                source = defining_op(value)
                if value not in mapping and source is not None:
                    clone_tree(source, mapping, ip)
            for op in ops:
                clone_tree(op, mapping, ip)
        add_return(body, [mapping[v] for v in outputs], at.location)
        try:
            types = self.refine(func, outputs)
        except GroupRefused:
            func.erase()
            raise
        refresh_signature(func)
        call = create(self.call, inputs, {"callee": symbol_of(func)}, types, at, at.location)
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(members):
            if not is_used(op):
                op.erase()
