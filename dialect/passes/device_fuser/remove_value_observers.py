"""Values of the run in the place of constants that stand for them: step 10 of R3.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.facts import is_conditional
from ...mlir.rewrite import functions, is_a, replace, walk
from ...ops.speculation import ProfileValue
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class RemoveValueObservers(Pass):
    """Remove observers of values, and have what reads conditional constants read the values (R3.7)."""

    name: ClassVar[str] = "remove-value-observers"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            for op in [op for op in walk(func) if is_conditional(op)]:
                replace(op, list(op.operands))
                self.count("constants-removed")
            for op in [op for op in walk(func) if is_a(op, ProfileValue)]:
                replace(op, list(op.operands))
                self.count("observers-removed")
