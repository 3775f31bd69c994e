"""A subgraph and its fallback, side by side behind a guard: what passes of speculation share."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mlir import ir

from ...errors import IRError
from ...ir.op import Op
from ...ir.types import Type
from ...mlir.context import loc_of
from ...mlir.rewrite import (
    attrs_of,
    body_of,
    create,
    function_named,
    is_terminator,
    op_class,
    ops_in,
    replace,
    symbol_of,
    terminator_of,
    types_of,
    unique_symbol,
)
from ...mlir.typed_values import clone_tree, map_types
from ...ops.control_flow.control import If
from ...ops.speculation import FallbackGraph
from ...profiling.observers import erased


def callee_of(module: ir.Module, op: ir.Operation) -> ir.Operation:
    """The function that an op names as its callee; raises IRError if there is none."""
    name = attrs_of(op)["callee"]
    callee = function_named(module, name)
    if callee is None:
        raise IRError(f"no function @{name} in this module", loc=loc_of(op.location))
    return callee


def unspecialised(module: ir.Module, callee: ir.Operation, prefix: str) -> ir.Operation:
    """A private copy of a function without anything known of its types.

    Its name is that of the function with "fallback" for ``prefix``.
    """
    name = symbol_of(callee).replace(prefix, "fallback")
    if function_named(module, name) is not None:
        name = unique_symbol(module, "fallback")
    copy = callee.clone(ip=ir.InsertionPoint(module.body)).operation
    copy.attributes["sym_name"] = ir.StringAttr.get(name)
    map_types(copy, erased)
    return copy


def guarded(
    op: ir.Operation,
    guard: type[Op],
    checked: list[int],
    expected: Sequence[Type],
    fallback: str,
    asked: Mapping[str, Any] = MappingProxyType({}),
    speculated: Container[int] = (),
    *,
    keeps_types: bool = False,
) -> list[ir.Value]:
    """``guard(…)``, then ``scf.if`` with the op or a fallback, in place of a call of a subgraph.

    Args:
        op: the call.
        guard: the class of the check.
        checked: the operands that it checks.
        expected: their types.
        fallback: name of the function that runs where the check fails.
        asked: more attributes of the check.
        speculated: operands that the fallback alone takes.
        keeps_types: True = what stands for the results has their types (R3.35); else it is bare.

    Returns what stands for the op's results.
    """
    loc, cls = op.location, op_class(op)
    assert cls is not None
    operands, attrs = list(op.operands), {"types": tuple(expected), **asked}
    inputs = [operands[k] for k in checked]
    check = create(guard, inputs, attrs, guard.infer(expected, attrs), op, loc)
    refined = list(operands)
    for k, value in zip(checked, check.results, strict=False):
        refined[k] = value
    outputs = [t if keeps_types else erased(t) for t in types_of(op.results)]
    branch = create(If, [check.results[len(checked)]], {}, outputs, op, loc)
    same = [v for k, v in enumerate(refined) if k not in speculated]
    for region, kind, callee, args in (
        (branch.regions[0], cls, attrs_of(op)["callee"], same),
        (branch.regions[1], FallbackGraph, fallback, operands),
    ):
        block = region.blocks.append()
        inner = create(kind, args, {"callee": callee}, outputs, block, loc)
        ir.Operation.create("scf.yield", operands=list(inner.results), loc=loc, ip=ir.InsertionPoint(block))
    replace(op, list(branch.results))
    return list(branch.results)


def put_back(op: ir.Operation, source: ir.Operation) -> None:
    """Put the body of a function in the place of a call, which may have fewer results."""
    body = body_of(source)
    mapping = dict(zip(body.arguments, op.operands, strict=True))
    for inner in ops_in(body):
        if not is_terminator(inner):
            clone_tree(inner, mapping, ir.InsertionPoint(op))
    returned = list(terminator_of(body).operands)[: len(op.results)]
    replace(op, [mapping.get(v, v) for v in returned])
