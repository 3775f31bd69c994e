"""The pass `to-linalg`: `lowering.linalg.to_linalg` on the fusion functions of a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...dialect.mlir.decode import decode_function
from ...dialect.mlir.rewrite import attrs_of, functions, is_a, symbol_of, walk
from ...dialect.ops.speculation import FusionGroup
from ...dialect.passes.base import Pass, register_pass
from .to_linalg import emit_function, load_dialects


@register_pass
@dataclass(frozen=True)
class ToLinalg(Pass):
    """Lower every function that a fusion_group names to linalg on tensors.

    In a module without fusion groups every function is lowered.  The functions get kernel
    arguments, so a module with fusion groups is for reading, not for running.
    """

    name: ClassVar[str] = "to-linalg"

    def run(self, module: ir.Module) -> None:
        load_dialects(module.context)
        groups = [op for op in walk(module) if is_a(op, FusionGroup)]
        callees = {attrs_of(op)["callee"] for op in groups}
        for func in functions(module):
            if groups and symbol_of(func) not in callees:
                continue
            program = decode_function(func)
            visibility = func.attributes.get("sym_visibility")
            with ir.InsertionPoint(func), func.location:
                lowered = emit_function(program)
            if visibility is not None:
                lowered.attributes["sym_visibility"] = visibility
            func.erase()
            self.count("functions-lowered")
