"""Programs that tests write op by op."""

from __future__ import annotations

import profuse.dialect.ops.seldom  # noqa: F401  (fills OPS)
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Instr, Program
from profuse.dialect.ir.types import TENSOR, ListType
from profuse.dialect.ops.backward import LISTS


class Graph:
    """A program under construction: calling it appends an op, and returns its first result."""

    def __init__(self, *inputs):
        self.program = Program("f")
        self.inputs = tuple(map(self.program.new_value, inputs))
        self.program.body.args = self.inputs
        self.instrs = self.program.body.instrs

    def __call__(self, name, *operands, type_=TENSOR, blocks=(), results=1, **attrs):
        made = tuple(self.program.new_value(type_) for _ in range(results))
        self.instrs.append(Instr(op_named(name), operands, made, attrs, blocks))
        return made[0] if made else None


class BackwardGraph(Graph):
    """A captured backward run, on its five lists."""

    def __init__(self):
        super().__init__(*[ListType() for _ in LISTS])

    def element(self, name, index):
        return self("list_get", self.inputs[LISTS.index(name)], index=index)

    def hook(self, kind, *operands, results=1):
        return self("call_hook", *operands, hook_type=kind, replaced=results, present=(True,), results=results)
