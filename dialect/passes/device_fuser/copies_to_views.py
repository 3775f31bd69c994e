"""Copies that no device group has taken as the views that they were (R3.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.program import Instr
from ...mlir.decoded_module import DecodedModule
from ...ops.late import Late
from ...ops.nn.copies import ViewCopy
from ...ops.speculation import CudaGroup
from ..base import Pass, register_pass
from .views_to_copies import op_of


@register_pass
@dataclass(frozen=True)
class CopiesToViews(Pass):
    """Make views of the copies that `views-to-copies` has made, but in the bodies of device groups.

    Nested blocks and fallbacks are searched as well. A copy that was one from the beginning stays.
    """

    name: ClassVar[str] = "copies-to-views"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        graphs = DecodedModule(module)
        bodies = set(graphs.callees(CudaGroup))
        for name in list(graphs.with_ops(ViewCopy, Late, main=False)):
            copies = [i for i in graphs[name].body.walk() if _was_view(i)]
            if name in bodies or not copies:
                continue
            for copy in copies:
                _view(copy)
            self.count("copies-reverted", len(copies))
            graphs.mark(name)
        graphs.store()


def _was_view(instr: Instr) -> bool:
    if not issubclass(op_of(instr), ViewCopy):
        return False
    return "implicit" in instr.attrs["names"] if instr.op is Late else instr.attrs["implicit"]


def _view(copy: Instr) -> None:
    op = op_of(copy)
    assert issubclass(op, ViewCopy)
    if copy.op is not Late:
        copy.op = op.view
        copy.attrs = {name: value for name, value in copy.attrs.items() if name != "implicit"}
        return
    names = copy.attrs["names"]
    gone = names.index("implicit") - len(names)  # counted from the end, as values of attributes are
    operands = list(copy.operands)
    del operands[gone]
    copy.operands = tuple(operands)
    copy.attrs = {**copy.attrs, "op": op.view.name, "names": tuple(n for n in names if n != "implicit")}
