"""Make in-place ops pure where the graph made the memory itself (R3.1 step 3, R3.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.functional import functionalize
from ...mlir.decode import decode_function
from ...mlir.parse import replace_function
from ...mlir.rewrite import functions, op_class, walk
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class Functionalize(Pass):
    """Turn in-place ops on memory that the graph itself made into pure ops.

    Writing through a view gives its base, and with it every other view, a new value. Writes
    stay where it is not certain which values share the memory, where an index is known only at
    run time, and where the graph is not the owner; these are noted with the reason.
    """

    name: ClassVar[str] = "functionalize"

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            if any((cls := op_class(op)) is not None and cls.writes for op in walk(func)):
                self._function(func)

    def _function(self, func: ir.Operation) -> None:
        program = decode_function(func)
        made_pure, reasons = functionalize(program)
        if made_pure:
            self.count("ops-made-pure", made_pure)
        for reason in reasons:
            self.note(reason)
        replace_function(func, program)
