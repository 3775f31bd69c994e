"""Views of memory that nobody writes as copies, which device groups take (R3.11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from ...analysis.alias import Aliases
from ...ir.op import Op, op_named
from ...ir.program import Block, Instr, Program
from ...ir.types import BOOL_SCALAR, TensorType
from ...mlir.decoded_module import DecodedModule
from ...ops.create import Constant
from ...ops.late import Late
from ...ops.nn.copies import ReshapeCopy, SqueezeCopy, UnsqueezeCopy, ViewCopy
from ...ops.speculation import Subgraph
from ..base import Pass, register_pass

COPIES: dict[type[Op], type[ViewCopy]] = {copy.view: copy for copy in (ReshapeCopy, SqueezeCopy, UnsqueezeCopy)}
"""The views that become copies, and the copies."""


def op_of(instr: Instr) -> type[Op]:
    """The class of an instruction; of a ``late`` one that of the op that it stands for."""
    return op_named(instr.attrs["op"]) if instr.op is Late else instr.op


@register_pass
@dataclass(frozen=True)
class ViewsToCopies(Pass):
    """Make copies of ``reshape``, ``squeeze`` and ``expand_dims`` where nothing writes what they share.

    What shares the memory of the operand, or of the result, is not written anywhere in the graph:
    only then nothing tells the copy from the view. `copies-to-views` makes views of those copies
    again that no group has taken.
    """

    name: ClassVar[str] = "views-to-copies"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        graphs = DecodedModule(module)
        for name in list(graphs.with_ops(*COPIES, Late)):
            program = graphs[name]
            aliases = Aliases(program.body, program.type_of)
            tied = _tied(program)
            count = 0
            for block in [program.body, *(b for instr in program.body.walk() for b in instr.blocks)]:
                for view in list(block.instrs):
                    # A copy has memory of its own, so that what is known of views of it only gets less.
                    copy = COPIES.get(op_of(view))
                    if copy is not None and not _is_written(aliases, view):
                        _copy(program, block, view, copy, tied)
                        count += 1
            if count:
                self.count("views-copied", count)
                graphs.mark(name)
        graphs.store()


def _is_written(aliases: Aliases, view: Instr) -> bool:
    return aliases.is_written(view.operands[0]) or aliases.is_written(view.results[0])


def _tied(program: Program) -> set[int]:
    """The values whose types those of others have to be: what blocks take and give, and calls."""
    tied: set[int] = set()
    for instr in program.body.walk():
        for block in instr.blocks:
            tied.update(block.outputs)
        if instr.blocks or issubclass(instr.op, Subgraph):
            tied.update(instr.operands)
    return tied


def _copy(program: Program, block: Block, view: Instr, copy: type[ViewCopy], tied: set[int]) -> None:
    """Make a copy of a view, which lies in C order: strides that were seen are those of the view."""
    if view.op is Late:
        mark = Instr(Constant, (), (program.new_value(BOOL_SCALAR),), {"value": True}, loc=view.loc)
        at = next(n for n, instr in enumerate(block.instrs) if instr is view)
        block.instrs.insert(at, mark)
        view.operands = (*view.operands, *mark.results)
        view.attrs = {**view.attrs, "op": copy.name, "names": (*view.attrs["names"], "implicit")}
    else:
        view.op, view.attrs = copy, {**view.attrs, "implicit": True}
    (result,) = view.results
    type_ = program.type_of(result)
    if isinstance(type_, TensorType) and result not in tied:
        program.types[result] = replace(type_, strides=None)
