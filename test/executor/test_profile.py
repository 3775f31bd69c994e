"""The profiling record (R1.18 - R1.21) and tier 0."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect import ops  # noqa: F401
from profuse.dialect.base import op_named
from profuse.dialect.dtypes import F32, F64
from profuse.dialect.errors import Loc
from profuse.dialect.observers import instrument
from profuse.dialect.program import Block, Instr, Module, Program
from profuse.dialect.symbolic import Sym
from profuse.dialect.types import INT_SCALAR, TensorType
from profuse.executor.evaluate import Evaluator, evaluate
from profuse.executor.profile import Record, merge_frames


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
        (index, carried),
        [Instr(op_named("concatenate"), (carried, carried), (twice,), {"axis": 0})],
        (twice,),
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


def record_runs(module: Module, *calls: list, runs: int | None = None) -> Record:
    record = Record(instrument(module), runs or len(calls))
    for inputs in calls:
        frame, observe = record.frame()
        Evaluator(record.module.main, record.module, observe)(inputs)
        record.finish(frame)
    return record


def profiled(record: Record) -> list[TensorType | None]:
    return [
        i.attrs.get("profiled_type")
        for i in record.module.main.body.walk()
        if i.op.name == "profile"
    ]


def test_tier_0_is_numpy():
    x, y = np.arange(6.0).reshape(2, 3), np.float32(2)
    (out,) = evaluate(add_graph(), [x, y])
    np.testing.assert_array_equal(out, x + y)


def test_errors_carry_the_users_line():
    with pytest.raises(pf.ShapeError, match=r"model\.py:3.*broadcast") as caught:
        evaluate(add_graph(), [np.ones(3), np.ones(4)])
    assert isinstance(caught.value, ValueError)


def test_one_run_records_dtype_sizes_strides_device():
    """R1.18"""
    x = np.ones((4, 6), np.float32)[:, ::2]
    record = record_runs(add_graph(), [x, np.ones(3)])
    assert record.ready
    first, second, result = profiled(record)
    assert first == TensorType(F32, (4, 3), (6, 2), "cpu", False, True)
    assert second == TensorType(F64, (3,), "contiguous", "cpu", False, True)
    assert result == TensorType(F64, (4, 3), "contiguous", "cpu", False, True)


def test_hits_in_one_frame_merge():
    """R1.18, R1.19: a value of growing size inside a loop loses that size."""
    record = record_runs(loop_graph(), [np.ones((3, 2)), 3])
    inside = profiled(record)[0]
    assert inside is not None
    assert inside.dtype is F64
    assert inside.shape == (None, 2)


def test_frames_share_symbols():
    """R1.21: x (2,3) then (5,3), y (2) then (5): one symbol for both leading sizes."""
    frames = [
        {0: TensorType(F32, (2, 3)), 1: TensorType(F32, (2,)), 2: TensorType(F32, (7,))},
        {0: TensorType(F32, (5, 3)), 1: TensorType(F32, (5,)), 2: TensorType(F32, (7, 1))},
    ]
    merged = merge_frames(frames)
    assert merged[0].shape is not None
    assert merged[1].shape is not None
    assert isinstance(merged[0].shape[0], Sym)
    assert merged[0].shape[0] == merged[1].shape[0]
    assert merged[0].shape[1] == 3
    assert merged[2].shape is None


def test_not_ready_without_a_hit():
    """R1.20: if no observer recorded anything, the last decrement does not happen."""
    record = Record(instrument(add_graph()), 1)
    frame, _ = record.frame()
    assert not record.finish(frame)
    assert not record.ready


def test_ready_after_all_runs():
    """R1.20"""
    calls = [[np.ones(n), np.ones(n)] for n in (2, 3)]
    record = record_runs(add_graph(), calls[0], runs=2)
    assert not record.ready
    frame, observe = record.frame()
    Evaluator(record.module.main, record.module, observe)(calls[1])
    assert record.finish(frame)
    assert record.ready
