"""Chains of reshapes in device groups as one (R3.48)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.readers import drop_unread, makers
from ...ir.program import Instr, Program
from ...ir.types import TensorType
from ...mlir.decoded_module import DecodedModule
from ...ops.manipulation.shape import Reshape
from ...ops.nn.copies import ReshapeCopy
from ...ops.sizes import product
from ...ops.speculation import CudaGroup
from ..base import Pass, register_pass

VIEWS = (Reshape, ReshapeCopy)
"""Ops that give the elements of their first operand, in C order, another shape."""


@register_pass
@dataclass(frozen=True)
class JoinViews(Pass):
    """Have a reshape of a reshape read what the first one reads, in the bodies of device groups.

    The first one goes if nothing else reads it. It is passed over only where the types show that
    it keeps the number of elements, so that no error is lost with it.
    """

    name: ClassVar[str] = "join-views"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        graphs = DecodedModule(module)
        for name in graphs.callees(CudaGroup):
            if count := _join(graphs[name]):
                self.count("views-joined", count)
                graphs.mark(name)
        graphs.store()


def _join(program: Program) -> int:
    """Join the reshapes of a body; returns how many read another value now."""
    count = 0
    sources = makers(program.body)
    for instr in list(program.body.walk()):
        if not issubclass(instr.op, VIEWS):
            continue
        parent = sources.get(instr.operands[0])
        if parent is not None and issubclass(parent.op, VIEWS) and _keeps_elements(program, parent):
            instr.operands = (parent.operands[0], *instr.operands[1:])
            drop_unread(program.body, parent.results)
            count += 1
    return count


def _keeps_elements(program: Program, view: Instr) -> bool:
    """True if a reshape certainly fits the elements of its operand."""
    types = program.type_of(view.operands[0]), program.type_of(view.results[0])
    sizes = [product(t.shape or (None,)) if isinstance(t, TensorType) else None for t in types]
    return sizes[0] is not None and sizes[0] == sizes[1]
