"""Replace calls between graph functions by the callee's body (R1.24)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import IRError
from ...mlir.context import loc_of
from ...mlir.rewrite import (
    body_of,
    function_named,
    functions,
    is_terminator,
    ops_in,
    replace,
    symbol_of,
    terminator_of,
    walk,
)
from ...mlir.typed_values import clone_tree
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class InlineCalls(Pass):
    """Put the body of the callee in the place of every ``func.call``, callees first.

    Recursion cannot be inlined: it raises IRError, located at a call of the cycle. Fusion groups
    and fallbacks are no calls; they stay.
    """

    name: ClassVar[str] = "inline-calls"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        done: set[str] = set()
        for func in functions(module):
            self._function(module, func, done, ())

    def _function(self, module: ir.Module, func: ir.Operation, done: set[str], inside: tuple[str, ...]) -> None:
        name = symbol_of(func)
        if name in done:
            return
        for op in [op for op in walk(func) if op.name == "func.call"]:
            callee = str(op.attributes["callee"].value)
            if callee in (*inside, name):
                raise IRError(f"@{callee} calls itself", loc=loc_of(op.location))
            target = function_named(module, callee)
            if target is None:
                raise IRError(f"no function @{callee} in this module", loc=loc_of(op.location))
            if not target.regions[0].blocks:
                raise IRError(f"function @{callee} has no body", loc=loc_of(op.location))
            self._function(module, target, done, (*inside, name))
            _inline(op, target)
            self.count("calls-inlined")
        done.add(name)


def _inline(call: ir.Operation, target: ir.Operation) -> None:
    body = body_of(target)
    mapping = dict(zip(body.arguments, call.operands, strict=True))
    for op in ops_in(body):
        if not is_terminator(op):
            clone_tree(op, mapping, ir.InsertionPoint(call))
    replace(call, [mapping.get(v, v) for v in terminator_of(body).operands])
