"""Forget which tensors are defined: a double backward may pass undefined ones (R1.24)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from ...ir.types import TensorType, Type
from ...mlir.rewrite import functions
from ...mlir.typed_values import map_types
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ClearUndefinedness(Pass):
    """Take ``defined`` off the types of all values of all functions; the rest of them stays."""

    name: ClassVar[str] = "clear-undefinedness"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            self.count("constants-adopted", map_types(func, self._cleared))

    def _cleared(self, type_: Type) -> Type:
        if isinstance(type_, TensorType) and type_.defined is not None:
            self.count("types-cleared")
            return replace(type_, defined=None)
        return type_
