"""Forget what an earlier profile has said of values (R1.24)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.types import Type
from ...mlir.typed_values import main_functions, map_types
from ...profiling.observers import erased
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ClearProfileTypes(Pass):
    """Make the types of all values of graphs bare, those that guards give included.

    Records of observers stay: they are of this graph, not of the values it was made from.
    """

    name: ClassVar[str] = "clear-profile-types"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            self.count("constants-adopted", map_types(func, self._erased))

    def _erased(self, type_: Type) -> Type:
        new = erased(type_)
        self.count("types-cleared", int(new != type_))
        return new
