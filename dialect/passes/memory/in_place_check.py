"""Refuse in-place ops that write what is not the graph's own (R1.24, R1.26)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import IRError
from ...mlir.aliases import WrittenMemory
from ...mlir.context import loc_of
from ...mlir.rewrite import functions, op_class, walk
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class InPlaceCheck(Pass):
    """Check what ops with ``writes`` write, through views; it changes nothing.

    What the verifier asks of a graph that comes in, asked again of what passes have made of it.
    Raises IRError, located, for an op that may write an argument or a constant.
    """

    name: ClassVar[str] = "in-place-check"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        for func in functions(module):
            if not func.regions[0].blocks:
                continue
            memory = WrittenMemory(func)
            for op in walk(func):
                cls = op_class(op)
                if cls is None or not cls.writes:
                    continue
                self.count("writes-checked")
                complaint = memory.forbidden(op)
                if complaint:
                    raise IRError(f"'{op.name}' {complaint}", loc=loc_of(op.location))
