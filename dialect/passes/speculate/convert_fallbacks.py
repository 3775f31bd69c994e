"""Turn fallback graphs into calls of executors of their own (R1.41)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.rewrite import attrs_of, create, functions, op_class, replace, symbol_of, types_of, walk
from ...ops.speculation import CallFallback, FallbackGraph
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ConvertFallbacks(Pass):
    """Replace each ``fallback_graph``, in nested blocks too, by a ``call_fallback``.

    Bodies of fallback graphs are left alone: the executor made of one converts its own.
    """

    name: ClassVar[str] = "convert-fallbacks"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        fallbacks = [op for op in walk(module) if op_class(op) is FallbackGraph]
        bodies = {attrs_of(op)["callee"] for op in fallbacks}
        for func in functions(module):
            if symbol_of(func) in bodies:
                continue
            for op in [op for op in walk(func) if op_class(op) is FallbackGraph]:
                attrs = {"callee": attrs_of(op)["callee"]}
                call = create(CallFallback, list(op.operands), attrs, types_of(op.results), op)
                replace(op, list(call.results))
                self.count("fallbacks")
