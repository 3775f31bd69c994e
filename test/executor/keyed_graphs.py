"""Graphs and arrays for the tests of the spec-keyed executor."""

from __future__ import annotations

import numpy as np
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.types import BOOL_SCALAR
from profuse.executor.tiers.keyed import KeyedExecutor
from profuse.executor.tiers.profiling import Options


def f32(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def scaled(x, b):
    return np.tanh(x + b) * 0.5


def add_executor(*, background: bool = False) -> KeyedExecutor:
    """An executor for any dtypes and ranks: ``tanh(x + y)``."""
    program = Program("main")
    x, y, s, t = (program.new_value() for _ in range(4))
    body = [Instr(op_named("add"), (x, y), (s,)), Instr(op_named("tanh"), (s,), (t,))]
    program.body = Block((x, y), body, (t,))
    return KeyedExecutor(Module(program), Options(background=background))


def optional_bias() -> Module:
    """``tanh(x + b) if b is there else exp(x)``"""
    program = Program("main")
    x, b, s, t, e, out = (program.new_value() for _ in range(6))
    there = program.new_value(BOOL_SCALAR)
    then = [Instr(op_named("add"), (x, b), (s,)), Instr(op_named("tanh"), (s,), (t,))]
    other = [Instr(op_named("exp"), (x,), (e,))]
    instrs = [
        Instr(op_named("any_nonzero"), (b,), (there,)),
        Instr(op_named("scf.if"), (there,), (out,), {}, (Block((), then, (t,)), Block((), other, (e,)))),
    ]
    program.body = Block((x, b), instrs, (out,))
    return Module(program)
