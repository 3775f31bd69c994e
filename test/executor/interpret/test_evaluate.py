"""Tier 0: what an op computes, and whose line an error names."""

from __future__ import annotations

import tracemalloc

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.executor.interpret.evaluate import Evaluator, evaluate
from small_graphs import add_graph


def test_tier_0_is_numpy():
    x, y = np.arange(6.0).reshape(2, 3), np.float32(2)
    (out,) = evaluate(add_graph(), [x, y])
    np.testing.assert_array_equal(out, x + y)


def test_errors_carry_the_users_line():
    with pytest.raises(pf.ShapeError, match=r"model\.py:3.*broadcast") as caught:
        evaluate(add_graph(), [np.ones(3), np.ones(4)])
    assert isinstance(caught.value, ValueError)


def test_of_an_array_whose_sizes_are_read_the_shape_stays():
    program = Program("main")
    x, a, b, c, out, size, rows = (program.new_value() for _ in range(7))
    program.body = Block(
        (x,),
        [
            Instr(op_named("exp"), (x,), (a,)),
            Instr(op_named("sin"), (a,), (b,)),  # the last that reads elements of it
            Instr(op_named("cos"), (b,), (c,)),
            Instr(op_named("sum_to"), (c, a), (out,)),
            Instr(op_named("size"), (a,), (size,)),
            Instr(op_named("dim"), (a,), (rows,), {"axis": 0}),
        ],
        (out, size, rows),
    )
    given, taken = np.linspace(-1, 1, 1 << 17).reshape(2, -1), []
    run = Evaluator(program, Module(program), on_op=lambda: taken.append(tracemalloc.get_traced_memory()[0]))
    tracemalloc.start()
    try:
        found = run([given])
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found[0], np.cos(np.sin(np.exp(given))))
    assert found[1:] == [1 << 17, 2]
    arrays = [round(bytes_ / given.nbytes) for bytes_ in taken]
    assert arrays == [1, 2, 2, 1, 1, 1], "after each op: the third has not three"
