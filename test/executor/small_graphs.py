"""Small graphs, made without tracing."""

from __future__ import annotations

from profuse.dialect.errors import Loc
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.types import INT_SCALAR
from profuse.dialect.ops import seldom  # noqa: F401


def add_graph() -> Module:
    program = Program("main")
    x, y = program.new_value(), program.new_value()
    out = program.new_value()
    instr = Instr(op_named("add"), (x, y), (out,), loc=Loc("model.py", 3))
    program.body = Block((x, y), [instr], (out,))
    return Module(program)


def loop_graph() -> Module:
    """for _ in range(n): x = concatenate([x, x])"""
    program = Program("main")
    x, n = program.new_value(), program.new_value(INT_SCALAR)
    zero, one, index = (program.new_value(INT_SCALAR) for _ in range(3))
    carried, twice, out = (program.new_value() for _ in range(3))
    constant = op_named("constant")
    body = Block(
        (index, carried), [Instr(op_named("concatenate"), (carried, carried), (twice,), {"axis": 0})], (twice,)
    )
    program.body = Block(
        (x, n),
        [
            Instr(constant, (), (zero,), {"value": 0}),
            Instr(constant, (), (one,), {"value": 1}),
            Instr(op_named("scf.for"), (zero, n, one, x), (out,), {}, (body,)),
        ],
        (out,),
    )
    return Module(program)
