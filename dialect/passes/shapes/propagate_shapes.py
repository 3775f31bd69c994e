"""Dtypes, ranks and sizes of all values, from those of the inputs (R2.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.propagation import Propagation
from ...mlir.typed_values import main_functions
from ..base import Pass, register_pass
from ..cleanup.remove_profiling import remove_observers


@register_pass
@dataclass(frozen=True)
class PropagateShapes(Pass):
    """Infer the type of every value from the types of the function's inputs; observers go.

    A branch's result has what both sides agree on, what a loop carries what holds in every round.
    """

    name: ClassVar[str] = "propagate-shapes"

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            facts = Propagation(func)
            facts.run()
            remove_observers(func)
            self.count("types-found", facts.write())
