"""Sizes that broadcast, worked out once (R3.34)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.readers import readers
from ...ir.program import Block, Instr, Program
from ...mlir.decoded_module import DecodedModule
from ...ops.size_lists import BroadcastSizes
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ShapePeephole(Pass):
    """Shorten ``broadcast_sizes``: of one operand it is that operand, and equal operands count once.

    One that only another ``broadcast_sizes`` reads becomes part of that one.
    """

    name: ClassVar[str] = "shape-peephole"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        graphs = DecodedModule(module)
        for name in list(graphs.with_ops(BroadcastSizes)):
            program = graphs[name]
            blocks = [program.body, *(b for instr in program.body.walk() for b in instr.blocks)]
            if count := sum(_shorten(program, block) for block in blocks):
                self.count("shape-ops-removed", count)
                graphs.mark(name)
        graphs.store()


def _shorten(program: Program, block: Block) -> int:
    """Rewrite the instructions of one block, first to last; returns how often."""
    count = 0
    for instr in [i for i in block.instrs if i.op is BroadcastSizes]:
        if len(set(instr.operands)) < len(instr.operands):
            # Numbers of values follow the program: the order says nothing of how it was built.
            instr.operands = tuple(sorted(set(instr.operands)))
            count += 1
        operands = instr.operands
        users = readers(program.body).get(instr.results[0], [])
        if len(operands) == 1:
            program.body.replace({instr.results[0]: operands[0]})
        elif len(users) == 1 and isinstance(users[0], Instr) and _folds(instr, users[0]):
            user = users[0]
            user.operands = (*(v for v in user.operands if v != instr.results[0]), *operands)
        else:
            continue
        block.instrs[:] = [i for i in block.instrs if i is not instr]
        count += 1
    return count


def _folds(instr: Instr, user: Instr) -> bool:
    return user.op is BroadcastSizes and user.operands.count(instr.results[0]) == 1
