"""Small differentiable subgraphs as the ops that they consist of (R1.34, R2.15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import IRError
from ...mlir.context import loc_of
from ...mlir.facts import is_constant_op
from ...mlir.rewrite import attrs_of, function_named, is_terminator, op_class, walk
from ...mlir.typed_values import main_functions
from ...ops.speculation import DiffGraph, Guard, Identity, Subgraph
from ..base import Pass, register_pass
from ..partition.alternatives import put_back


@register_pass
@dataclass(frozen=True)
class InlineDiffGraphs(Pass):
    """Put the ops of a differentiated subgraph of fewer than ``threshold`` back in its place.

    Ops in blocks count, constants do not. A subgraph that holds fusion groups, guards, calls, or
    ops that are not of the table stays.
    """

    name: ClassVar[str] = "inline-diff-graphs"
    counts_changes: ClassVar[bool] = True
    threshold: int = 2

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            for op in [op for op in walk(func) if op_class(op) is DiffGraph]:
                name = attrs_of(op)["forward"]
                if name is None:
                    continue
                forward = function_named(module, name)
                if forward is None:
                    raise IRError(f"no function @{name} in this module", loc=loc_of(op.location))
                if self._is_small(forward):
                    put_back(op, forward)
                    self.count("inlined")

    def _is_small(self, forward: ir.Operation) -> bool:
        ops = [op for op in walk(forward) if not is_terminator(op) and not is_constant_op(op)]
        classes = [op_class(op) for op in ops]
        stays = (Subgraph, Guard, DiffGraph)
        if any(cls is None or issubclass(cls, stays) for cls in classes):
            return False
        return sum(cls is not None and not issubclass(cls, Identity) for cls in classes) < (self.threshold)
