"""The facts that the clean-up passes ask of values: constants, and whether memory can be seen outside.

NumPy's results are either fresh memory or views.  A pass that makes one array out of two, or an
array out of a copy of it, must not do so where the caller would see that they share memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir import ir

from ..ir.attrs import VALUE
from ..ir.types import ListedType, ScalarType, Type
from ..ops.speculation import FusionGroup, Identity, Subgraph
from .rewrite import defining_op, functions, is_a, is_terminator, op_class, symbol_of, type_of, walk

# IR text may use MLIR's own op beside ours.
CONSTANTS = frozenset({"profuse.constant", "arith.constant"})


def behind_observers(value: ir.Value) -> ir.Value:
    """The value that observers, if any, pass on as ``value``: they change nothing."""
    while (op := defining_op(value)) is not None:
        cls = op_class(op)
        if cls is None or not issubclass(cls, Identity):
            break
        value = op.operands[0]
    return value


def source_of(value: ir.Value) -> ir.Operation | None:
    """The op that makes a value, observers left aside; None for a block argument."""
    return defining_op(behind_observers(value))


def is_constant(value: ir.Value) -> bool:
    """True if a value is the result of a constant op, observed or not."""
    op = source_of(value)
    return op is not None and is_constant_op(op)


def is_constant_op(op: ir.Operation) -> bool:
    """True for an op that makes a constant, whatever the run is.

    A constant with an operand is none: it stands for what an observer has seen of that operand.
    """
    return op.name in CONSTANTS and not len(op.operands)


def is_conditional(op: ir.Operation) -> bool:
    """True for an op that makes a conditional constant (R3.6)."""
    return op.name in CONSTANTS and len(op.operands) > 0


def speculated_value(value: ir.Value) -> tuple[ir.Value, Any] | None:
    """The observed value that a conditional constant stands for, and the constant's own; None for others (R3.6)."""
    op = source_of(value)
    if op is None or not is_conditional(op):
        return None
    return op.operands[0], VALUE.decode(op.attributes["value"])


def constant_value(value: ir.Value) -> Any:
    """The value of a constant, see `Constant`; None for other values, which `is_constant` tells."""
    op = source_of(value)
    if op is None or not is_constant_op(op):
        return None
    return VALUE.decode(op.attributes["value"])


def known_type(value: ir.Value) -> Type:
    """The type of a value, with the value itself if it is a constant, but for arrays."""
    type_ = type_of(value)
    if isinstance(type_, (ScalarType, ListedType)) and is_constant(value):
        return replace(type_, value=constant_value(value))
    return type_


def kernel_bodies(module: ir.Module) -> set[str]:
    """Names of fusion functions: their results are always written to memory of their own."""
    return {str(op.attributes["callee"].value) for op in walk(module) if is_a(op, FusionGroup)}


def sharing_matters(module: ir.Module) -> dict[str, bool]:
    """For each function, whether its caller can see that two results share memory."""
    names = list(map(symbol_of, functions(module)))
    # A graph alone calls no kernel: there is nothing to look for.
    kernels = kernel_bodies(module) if len(names) > 1 else set()
    return {name: name not in kernels for name in names}


def escapes(value: ir.Value) -> bool:
    """True if the memory of a value may be what its block returns, directly or through views."""
    if isinstance(type_of(value), (ScalarType, ListedType)):
        return False
    seen: set[ir.Value] = set()
    todo = [value]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in current.uses:
            user = use.owner.operation
            if is_terminator(user) or passes_on(user):
                if is_terminator(user) or user.regions or _is_call(user):
                    return True
                todo.extend(user.results)
    return False


def passes_on(op: ir.Operation) -> bool:
    """True if a result of ``op`` may share memory with an operand."""
    cls = op_class(op)
    if cls is None or cls.regions or issubclass(cls, Subgraph):
        return True
    count = len(op.operands)
    return any(cls.shared_operands(k, count) for k in range(len(op.results)))


def is_fresh(value: ir.Value) -> bool:
    """True if a value is memory that its op made, and no constant's."""
    op = defining_op(value)
    return op is not None and op.name not in CONSTANTS and not passes_on(op)


def _is_call(op: ir.Operation) -> bool:
    cls = op_class(op)
    return cls is None or issubclass(cls, Subgraph)
