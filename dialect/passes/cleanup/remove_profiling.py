"""Take observers out of a graph (R1.22)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.op import Op
from ...mlir.facts import is_conditional
from ...mlir.rewrite import body_of, erase, op_class, ops_in, replace, users, walk
from ...mlir.typed_values import main_functions
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


def remove_observers(
    func: ir.Operation, classes: tuple[type[Op], ...] = (Profile, ProfileValue), *, speculated: bool = True
) -> int:
    """Delete observers of these classes in all blocks; returns how many.

    ``speculated``: also those that a conditional constant depends on (R3.6).
    """
    observers = [op for op in walk(func) if op_class(op) in classes]
    if not speculated:
        observers = [op for op in observers if not any(map(is_conditional, users(op.results[0])))]
    for op in observers:
        replace(op, list(op.operands))
    return len(observers)
