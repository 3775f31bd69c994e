"""Take observers out of a graph (R1.22)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...mlir.rewrite import body_of, erase, op_class, ops_in, replace, walk
from ...mlir.values import main_functions
from ...ops.speculation import Profile, ProfileCounter, ProfileValue
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class RemoveProfiling(Pass):
    """Delete the counter of the top block, and observers in all blocks, forwarding operands."""

    name: ClassVar[str] = "remove-profiling"

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            remove_counter(func)
            self.count("observers-removed", remove_observers(func))


def remove_counter(func: ir.Operation) -> None:
    """Delete one counter in the top block, if there is one."""
    for op in ops_in(body_of(func)):
        if op_class(op) is ProfileCounter:
            erase(op)
            return


def remove_observers(func: ir.Operation) -> int:
    """Delete ``profile`` and ``profile_value`` in all blocks; returns how many."""
    observers = [op for op in walk(func) if op_class(op) in (Profile, ProfileValue)]
    for op in observers:
        replace(op, list(op.operands))
    return len(observers)
